"""Chains of X.509 certificates, judged as a membership provider judges them.

Used when a membership provider is set up, and for each identity that it meets for the first time. Expiry
is not looked at: a chain is judged at one second after the certificate's own start, and whoever cares for
expiry asks apart. There must be exactly one chain, so that it is clear who vouches. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID, SignatureAlgorithmOID

from twinlog.ordering.signatures import low_s

Chain = tuple[x509.Certificate, ...]  # from the certificate up to its root

_ECDSA: Final = frozenset(
    {
        SignatureAlgorithmOID.ECDSA_WITH_SHA1,
        SignatureAlgorithmOID.ECDSA_WITH_SHA256,
        SignatureAlgorithmOID.ECDSA_WITH_SHA384,
        SignatureAlgorithmOID.ECDSA_WITH_SHA512,
    }
)
_UNDERSTOOD: Final = frozenset(
    {
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.SUBJECT_KEY_IDENTIFIER,
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER,
        ExtensionOID.CERTIFICATE_POLICIES,
    }
)
# A certificate that limits its use must allow this one: what Go's verifier asks for when nobody says what to.
_USES: Final = frozenset({ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})
_LONGEST_CHAIN: Final = 10
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


class Authorities:
    """The certificates that a membership provider trusts, and the chains that end at them."""

    def __init__(self, roots: Sequence[x509.Certificate], intermediates: Sequence[x509.Certificate]) -> None:
        self.roots = tuple(dict.fromkeys(roots))
        self.intermediates = tuple(dict.fromkeys(intermediates))

    def chain_of(self, certificate: x509.Certificate) -> Chain:
        """The one chain from a certificate to a root; raises ValueError if there is none, or another."""
        if certificate in self.roots:
            return (certificate,)
        moment = certificate.not_valid_before_utc + timedelta(seconds=1)
        chains = [chain for chain in self._chains((certificate,), moment) if _uses_agree(chain)]
        if len(chains) != 1:
            raise ValueError(
                f"{len(chains)} chains of certificates lead from {_name(certificate)} to a trusted root, "
                "and there must be one"
            )
        return chains[0]

    def _chains(self, below: Chain, moment: datetime) -> Iterator[Chain]:
        if len(below) > _LONGEST_CHAIN or not _is_readable_at(below[-1], moment):
            return
        for candidate in self.roots + self.intermediates:
            if candidate in below or not _may_issue(candidate, below):
                continue
            if candidate not in self.roots:
                yield from self._chains((*below, candidate), moment)
            elif _is_readable_at(candidate, moment):
                yield (*below, candidate)


def first_certificate(pem: bytes) -> x509.Certificate:
    """The first certificate of a PEM text; raises ValueError if there is none that can be read whole."""
    # Most of it is decoded when it is first asked for. Anybody may send one, so all of it is asked for here.
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        for part in ("subject", "issuer", "extensions", "signature_algorithm_oid"):
            getattr(certificate, part)
        certificate.public_key()
    except _UNREADABLE as error:
        raise ValueError(f"the certificate cannot be read: {error}") from None
    return certificate


def der(certificate: x509.Certificate) -> bytes:
    """A certificate's bytes."""
    return certificate.public_bytes(Encoding.DER)


def is_authority(certificate: x509.Certificate) -> bool:
    """True if a certificate may vouch for others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def key_identifier(certificate: x509.Certificate) -> bytes | None:
    """What a certificate calls its own key."""
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


def units(certificate: x509.Certificate) -> tuple[str, ...]:
    """The organizational units (OU) of a certificate's subject."""
    attributes = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME)
    return tuple(str(attribute.value) for attribute in attributes)


def is_revoked(
    certificate: x509.Certificate,
    issuer: x509.Certificate,
    revocations: Sequence[x509.CertificateRevocationList],
) -> bool:
    """True if a list that the issuer signed names the certificate's serial number, since whenever."""
    for crl in revocations:
        try:
            names = crl.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        except x509.ExtensionNotFound:
            raise ValueError("a list of revoked certificates does not say whose it is") from None
        if names.key_identifier != key_identifier(issuer):
            continue
        listed = crl.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None
        if listed and crl.is_signature_valid(issuer.public_key()):  # type: ignore[arg-type]
            return True
    return False


def with_low_s(certificate: x509.Certificate, issuer: x509.Certificate) -> x509.Certificate:
    """The same certificate with the low form of its ECDSA signature, so that equal ones compare as equal."""
    key = issuer.public_key()
    if certificate.signature_algorithm_oid not in _ECDSA or not isinstance(key, ec.EllipticCurvePublicKey):
        return certificate
    signature = low_s(certificate.signature, key.curve)
    if signature == certificate.signature:
        return certificate
    raw = der(certificate)
    body = certificate.tbs_certificate_bytes
    start = raw.index(body)
    # Certificate ::= SEQUENCE { body, algorithm, BIT STRING signature }: the old string ends the bytes.
    old = _tagged(0x03, b"\0" + certificate.signature)
    fresh = raw[start : len(raw) - len(old)] + _tagged(0x03, b"\0" + signature)
    return x509.load_der_x509_certificate(_tagged(0x30, fresh))


def _tagged(tag: int, content: bytes) -> bytes:
    if len(content) < 0x80:
        return bytes((tag, len(content))) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def _may_issue(issuer: x509.Certificate, below: Chain) -> bool:
    """True if the issuer signed the last certificate of a chain and is allowed to."""
    certificate = below[-1]
    if certificate.issuer != issuer.subject or not is_authority(issuer):
        return False
    extensions = issuer.extensions
    limit = extensions.get_extension_for_class(x509.BasicConstraints).value.path_length
    if limit is not None and len(below) - 1 > limit:
        return False
    try:
        if not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign:
            return False
    except x509.ExtensionNotFound:
        pass
    try:
        certificate.verify_directly_issued_by(issuer)
    except (*_UNREADABLE, InvalidSignature):
        return False
    return True


def _is_readable_at(certificate: x509.Certificate, moment: datetime) -> bool:
    """True if a certificate holds at a moment and asks for nothing critical that we do not understand."""
    if not certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc:
        return False
    return all(extension.oid in _UNDERSTOOD for extension in certificate.extensions if extension.critical)


def _uses_agree(chain: Chain) -> bool:
    for certificate in chain:
        try:
            uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        except x509.ExtensionNotFound:
            continue
        if not _USES & set(uses):
            return False
    return True


def _name(certificate: x509.Certificate) -> str:
    return certificate.subject.rfc4514_string() or f"serial {certificate.serial_number:x}"
