"""A small certificate authority that writes membership directories, for trying the ordering service out.

Called by `twinlog order crypto`, by `order up` for a bus that brings no identities of its own, and by tests.
Each organisation gets an authority for identities and one for TLS, an administrator, and nodes and users as
asked for, laid out as Fabric's tools lay them out (`mspdir`):

    ORG/msp/                    what others need to know of the organisation: goes into genesis
    ORG/NAME/msp/, tls/         one node's or user's own: certificates, and keys that only the owner can read
    ORG/ca/, ORG/tlsca/         the authorities, with their keys

What is there already is left as it is, so a command that was killed can be run again.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from twinlog.durable import make_private_directory, write_secret, write_text
from twinlog.ordering.certification import with_low_s
from twinlog.ordering.identity import Signer

ADMIN: Final = "admin"
CLIENT: Final = "client"
ORDERER: Final = "orderer"
PEER: Final = "peer"
_VALIDITY: Final = timedelta(days=10 * 365)
_SKEW: Final = timedelta(minutes=5)  # clocks of other machines may be behind
_UNITS_FILE: Final = """\
# Which organizational unit (OU) of a certificate marks which kind of node.
NodeOUs:
  Enable: true
  ClientOUIdentifier: {Certificate: cacerts/ca.pem, OrganizationalUnitIdentifier: client}
  PeerOUIdentifier: {Certificate: cacerts/ca.pem, OrganizationalUnitIdentifier: peer}
  AdminOUIdentifier: {Certificate: cacerts/ca.pem, OrganizationalUnitIdentifier: admin}
  OrdererOUIdentifier: {Certificate: cacerts/ca.pem, OrganizationalUnitIdentifier: orderer}
"""


@dataclass(frozen=True, eq=False)
class Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> bytes:
        """The certificate as text."""
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key as text."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def signer(self, mspid: str) -> Signer:
        """Somebody who signs with it."""
        return Signer(mspid, self.pem, self.key)


@dataclass(frozen=True)
class Wanted:
    """What a certificate shall say."""

    name: str
    units: Sequence[str] = ()
    hosts: Collection[str] = ()  # of TLS servers; with any, the certificate is one for TLS
    is_authority: bool = False
    not_before: datetime | None = None
    not_after: datetime | None = None


@dataclass(frozen=True, eq=False)
class Authority(Issued):
    """An authority: signs certificates and lists of revoked ones."""

    def issue(self, wanted: Wanted) -> Issued:
        """A new key and a certificate for it."""
        key = _new_key()
        return Issued(_certificate(wanted, key.public_key(), self.certificate, self.key), key)

    def issue_authority(self, name: str) -> Authority:
        """An authority below this one."""
        issued = self.issue(Wanted(name, is_authority=True))
        return Authority(issued.certificate, issued.key)

    def revoke(self, *certificates: x509.Certificate) -> bytes:
        """A list of revoked certificates, as text."""
        now = datetime.now(UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.certificate.subject)
            .last_update(now)
            .next_update(now + _VALIDITY)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )
        for certificate in certificates:
            entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
            builder = builder.add_revoked_certificate(entry.revocation_date(now).build())
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)


def new_authority(name: str) -> Authority:
    """A root authority with a new key."""
    key = _new_key()
    return Authority(_certificate(Wanted(name, is_authority=True), key.public_key(), None, key), key)


def write_organisation(
    directory: Path,
    mspid: str,
    *,
    orderers: Mapping[str, Collection[str]] | None = None,
    clients: Sequence[str] = (),
    peers: Sequence[str] = (),
) -> None:
    """Have an organisation's directory with the nodes and users named; an orderer has its host names."""
    base = directory / mspid
    make_private_directory(base)
    ca = _have_authority(base / "ca", f"ca.{mspid}")
    tls_ca = _have_authority(base / "tlsca", f"tlsca.{mspid}")
    _write_shared(base / "msp", ca, tls_ca)
    _have_node(base, ADMIN, [ADMIN], (), ca, tls_ca)
    for name in clients:
        _have_node(base, name, [CLIENT], (), ca, tls_ca)
    for name in peers:
        _have_node(base, name, [PEER], (), ca, tls_ca)
    for name, hosts in (orderers or {}).items():
        _have_node(base, name, [ORDERER], hosts, ca, tls_ca)


def _have_authority(directory: Path, name: str) -> Authority:
    certificate_path, key_path = directory / "ca.pem", directory / "ca.key"
    if not certificate_path.exists():  # written last, so what is there is whole
        made = new_authority(name)
        make_private_directory(directory)
        write_secret(key_path, made.key_pem)
        write_text(certificate_path, made.pem)
    key = load_pem_private_key(key_path.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return Authority(x509.load_pem_x509_certificate(certificate_path.read_bytes()), key)


def _have_node(
    base: Path, name: str, units: Sequence[str], hosts: Collection[str], ca: Authority, tls_ca: Authority
) -> None:
    msp, tls = base / name / "msp", base / name / "tls"
    certificate_path = msp / "signcerts" / f"{name}.pem"
    if certificate_path.exists():
        return
    _write_shared(msp, ca, tls_ca)
    own = ca.issue(Wanted(name, units))
    secured = tls_ca.issue(Wanted(name, hosts=hosts or (name,)))
    for directory in (msp / "keystore", tls):
        make_private_directory(directory)
    write_text(tls / "ca.crt", tls_ca.pem)
    write_secret(tls / "server.key", secured.key_pem)
    write_text(tls / "server.crt", secured.pem)
    write_secret(msp / "keystore" / "key.pem", own.key_pem)
    certificate_path.parent.mkdir(exist_ok=True)
    write_text(certificate_path, own.pem)


def _write_shared(msp: Path, ca: Authority, tls_ca: Authority) -> None:
    for folder, authority in (("cacerts", ca), ("tlscacerts", tls_ca)):
        (msp / folder).mkdir(parents=True, exist_ok=True)
        write_text(msp / folder / "ca.pem", authority.pem)
    write_text(msp / "config.yaml", _UNITS_FILE)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _certificate(
    wanted: Wanted,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    begin = wanted.not_before or datetime.now(UTC) - _SKEW
    subject = x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit) for unit in wanted.units),
            x509.NameAttribute(NameOID.COMMON_NAME, wanted.name),
        ]
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(wanted.not_after or begin + _VALIDITY)
        .add_extension(x509.BasicConstraints(wanted.is_authority, None), critical=True)
        .add_extension(_usage(wanted), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if wanted.hosts:
        names = x509.SubjectAlternativeName([_host(name) for name in sorted(wanted.hosts)])
        both_ways = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(names, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(both_ways), critical=False)
    made = builder.sign(issuer_key, hashes.SHA256())
    # Providers compare certificates in their low form, and not all of them bring a named one into it first.
    return with_low_s(made, issuer or made)


def _usage(wanted: Wanted) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=wanted.is_authority,
        crl_sign=wanted.is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
