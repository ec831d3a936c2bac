"""Making and judging X.509 certificates. Pure: no disk, and the time is handed in.

`pki` keeps what is made here. Names are encoded in the order O, OU, CN, because Java prints them
the other way round and Kafka's principal rules are written against what Java prints:
`CN=shop,OU=user,O=orders`. Every certificate begins some minutes early, so that a host whose clock
is behind accepts it at once, and none outlives the authority that signed it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from twinlog.errors import UsageError
from twinlog.sites.authorities import Kind

BACKDATED = timedelta(minutes=5)
MIN_RSA_BITS = 2048


# Nodes are both ends of LINK, voters both ends of a vote; to Kafka a voter is nobody. A server
# certificate that could be shown as a client's would let a stolen one in where users come in.
_USAGES = {
    Kind.NODE: (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH),
    Kind.SERVER: (ExtendedKeyUsageOID.SERVER_AUTH,),
    Kind.USER: (ExtendedKeyUsageOID.CLIENT_AUTH,),
    Kind.LINK: (ExtendedKeyUsageOID.CLIENT_AUTH,),
    Kind.VOTE: (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH),
}


class State(StrEnum):
    """What should be done about a certificate."""

    OK = "ok"
    RENEW = "renew"
    EXPIRED = "expired"


@dataclass(frozen=True)
class Authority:
    """A certificate that signs others, with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        """The certificate alone, as text."""
        return certificate_pem(self.certificate)


@dataclass(frozen=True)
class Wanted:
    """What a certificate should say."""

    bus: str
    kind: Kind
    name: str
    names: frozenset[str]  # DNS names and IP addresses
    validity: timedelta
    renew_before: timedelta


def new_key() -> ec.EllipticCurvePrivateKey:
    """A fresh private key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """A private key as PKCS#8 text, the form that Java and librdkafka both read."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def certificate_pem(certificate: x509.Certificate) -> str:
    """A certificate as text."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def make_authority(
    bus: str, name: str, key: ec.EllipticCurvePrivateKey, validity: timedelta, now: datetime
) -> x509.Certificate:
    """A self-signed certificate that may sign leaves and nothing deeper."""
    subject = _subject(bus, "authority", name)
    builder = _builder(subject, key.public_key(), now, now + validity).issuer_name(subject)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    return builder.sign(key, hashes.SHA256())


def make_leaf(
    wanted: Wanted, public_key: CertificatePublicKeyTypes, authority: Authority, now: datetime
) -> x509.Certificate:
    """A certificate for a server or a client."""
    issuer = authority.certificate
    builder = _builder(
        _subject(wanted.bus, wanted.kind, wanted.name), public_key, now, _end(wanted, authority, now)
    ).issuer_name(issuer.subject)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(_USAGES[wanted.kind]), critical=False)
    ski = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ski), critical=False
    )
    if wanted.names:
        general = [_general_name(name) for name in sorted(wanted.names)]
        builder = builder.add_extension(x509.SubjectAlternativeName(general), critical=False)
    return builder.sign(authority.key, hashes.SHA256())


def why_reissue(present: x509.Certificate, wanted: Wanted, authority: Authority, now: datetime) -> str:
    """Why a certificate must be made anew, in words; empty if it is good as it is."""
    if not _signed_by(present, authority.certificate):
        return "another authority signs now"
    if present.subject != _subject(wanted.bus, wanted.kind, wanted.name):
        return "its subject changed"
    if names_of(present) != wanted.names:
        return "its names changed"
    state = state_of(present, wanted.renew_before, now)
    # A leaf that ends with its authority is not renewed again and again for the same end.
    if state is not State.OK and _end(wanted, authority, now) > present.not_valid_after_utc:
        return "it has ended" if state is State.EXPIRED else "it ends soon"
    return ""


def state_of(certificate: x509.Certificate, renew_before: timedelta, now: datetime) -> State:
    """Whether a certificate is good, should be renewed, or has ended."""
    if now >= certificate.not_valid_after_utc:
        return State.EXPIRED
    return State.RENEW if now > renewal_due(certificate, renew_before) else State.OK


def renewal_due(certificate: x509.Certificate, renew_before: timedelta) -> datetime:
    """When a certificate should be renewed."""
    end = certificate.not_valid_after_utc
    lifetime = end - certificate.not_valid_before_utc
    # A window longer than the life of a short certificate would renew it at every look.
    return end - min(renew_before, lifetime / 3)


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """The DNS names and addresses that a certificate is valid for."""
    try:
        value = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in value.get_values_for_type(x509.IPAddress))
    return frozenset((*value.get_values_for_type(x509.DNSName), *addresses))


def normal_names(names: Collection[str]) -> frozenset[str]:
    """Names and addresses in the form in which a certificate gives them back."""
    return frozenset(_normal(name) for name in names)


def subject_text(certificate: x509.Certificate) -> str:
    """The subject as Java prints it."""
    return certificate.subject.rfc4514_string()


def load_request(csr_pem: str) -> x509.CertificateSigningRequest:
    """A signing request whose own signature holds and whose key is strong enough."""
    try:
        request = x509.load_pem_x509_csr(csr_pem.encode())
    except ValueError as error:
        raise UsageError(
            "this is not a certificate signing request in PEM form",
            hint="openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
            "-subj /CN=USER -keyout USER.key -out USER.csr",
        ) from error
    if not request.is_signature_valid:
        raise UsageError("the request is not signed by its own key", hint="was the file changed on its way?")
    key = request.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < MIN_RSA_BITS:
            raise UsageError(
                f"the request's RSA key has {key.key_size} bits; {MIN_RSA_BITS} is the least",
                hint="make a new key: EC P-256, or RSA with 3072 bits",
            )
    elif not isinstance(key, ec.EllipticCurvePublicKey):
        raise UsageError("the request's key is neither EC nor RSA", hint="make a new key: EC P-256")
    return request


def requested_name(request: x509.CertificateSigningRequest) -> str:
    """The one common name of a signing request."""
    common = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(common) != 1 or not common[0].value:
        raise UsageError(
            f"the request has {len(common)} common names", hint="its subject must be /CN= and the user's name"
        )
    return str(common[0].value)


def utc_now() -> datetime:
    """The time by the machine's clock."""
    return datetime.now(UTC)


def _builder(
    subject: x509.Name, public_key: CertificatePublicKeyTypes, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - BACKDATED)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _subject(bus: str, kind: str, name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, bus),
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, str(kind)),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )


def _end(wanted: Wanted, authority: Authority, now: datetime) -> datetime:
    # X.509 counts whole seconds.
    end = (now + wanted.validity).replace(microsecond=0)
    return min(end, authority.certificate.not_valid_after_utc)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):  # wrong name, wrong kind of key, wrong key
        return False
    return True


def _normal(name: str) -> str:
    bare = name.removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        pass
    try:
        return name.lower() if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        raise UsageError(f"{name!r} is neither a host name nor an address") from None


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
