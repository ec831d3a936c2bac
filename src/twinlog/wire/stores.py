"""Java's key and trust stores as PEM text, and PEM text as stores.

`clientfiles` reads the stores of clusters that exist already and writes them for Java clients that
know nothing else. A store is judged by its first bytes, not by its name: since Java 9 `keytool`
writes PKCS#12 into files that people go on calling .jks. Errors name the file, never a password.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12

from twinlog.errors import UsageError
from twinlog.wire import jks

_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_DER_SEQUENCE = b"\x30"
_KEY_ALIAS = "key"


class StoreType(StrEnum):
    """How keys and certificates are handed to a client."""

    PEM = "pem"
    PKCS12 = "pkcs12"
    JKS = "jks"


@dataclass(frozen=True)
class Store:
    """What a store holds: trusted certificates, and perhaps a key with its chain."""

    trusted_pem: str = ""
    chain_pem: str = ""
    key_pem: str = field(default="", repr=False)


def read_store(data: bytes, password: str | None, *, where: str, key_password: str | None = None) -> Store:
    """The content of a store of whatever type; a chain's certificates are not among the trusted."""
    if data.startswith(jks.MAGIC):
        return _read_jks(data, password, key_password, where)
    if data.startswith(_JCEKS_MAGIC):
        raise UsageError(
            "this is a JCEKS store, which is not supported",
            where=where,
            hint="keytool -importkeystore -srcstoretype JCEKS -deststoretype PKCS12 ...",
        )
    if data.startswith(_DER_SEQUENCE):
        return _read_pkcs12(data, password, where)
    if b"-----BEGIN " in data:
        return read_pem(data.decode("utf-8", "replace"), key_password or password, where=where)
    raise UsageError("this is neither a JKS, a PKCS#12 nor a PEM store", where=where, hint=_hint(where))


def read_pem(text: str, key_password: str | None, *, where: str) -> Store:
    """The content of PEM text: a private key makes its certificates a chain, otherwise they are trusted."""
    certificates = normal_certificates(text, where=where) if "-----BEGIN CERTIFICATE" in text else ""
    if "PRIVATE KEY-----" not in text:
        return Store(trusted_pem=certificates)
    return Store(chain_pem=certificates, key_pem=normal_key(text, key_password, where=where))


def normal_certificates(text: str, *, where: str) -> str:
    """The certificates in some text, without whatever people wrote around them."""
    try:
        return _pem(x509.load_pem_x509_certificates(text.encode()))
    except ValueError:
        raise UsageError("no certificate in PEM form can be read here", where=where) from None


def normal_key(text: str, password: str | None, *, where: str) -> str:
    """The private key in some text as PKCS#8, no longer encrypted."""
    start = text.find("-----BEGIN ", max(0, text.find("PRIVATE KEY-----") - len("-----BEGIN ENCRYPTED ")))
    block = text[start:].encode()
    try:
        try:
            key = serialization.load_pem_private_key(block, None)
        except TypeError:  # it is encrypted
            key = serialization.load_pem_private_key(block, password.encode() if password else b"")
    except (ValueError, TypeError):
        raise UsageError(
            "the private key cannot be read", where=where, hint="is ssl.key.password missing or wrong?"
        ) from None
    return _key_text(key)


def write_trust_store(kind: StoreType, ca_pem: str, password: str) -> bytes:
    """A store of trusted certificates, as Java wants it."""
    certificates = x509.load_pem_x509_certificates(ca_pem.encode())
    named = [(f"ca-{number}", cert) for number, cert in enumerate(certificates, start=1)]
    if kind is StoreType.JKS:
        return jks.encode([jks.TrustedEntry(alias, _der(cert)) for alias, cert in named], password, _now_ms())
    # A plain PKCS#12 file would show Java no trusted entry: it looks for an attribute of its own.
    entries = [pkcs12.PKCS12Certificate(cert, alias.encode()) for alias, cert in named]
    return pkcs12.serialize_java_truststore(entries, serialization.BestAvailableEncryption(password.encode()))


def write_key_store(kind: StoreType, chain_pem: str, key_pem: str, password: str) -> bytes:
    """A store of one private key with its chain; store and key have the same password."""
    key = serialization.load_pem_private_key(key_pem.encode(), None)
    own, *others = x509.load_pem_x509_certificates(chain_pem.encode())
    if kind is StoreType.JKS:
        der = key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        entry = jks.KeyEntry(_KEY_ALIAS, der, tuple(_der(cert) for cert in (own, *others)))
        return jks.encode([entry], password, _now_ms())
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise UsageError("a PKCS#12 store is written for EC and RSA keys only", hint="--store pem")
    encryption = serialization.BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(_KEY_ALIAS.encode(), key, own, others, encryption)


def _read_jks(data: bytes, password: str | None, key_password: str | None, where: str) -> Store:
    try:
        entries = jks.decode(data, password, key_password)
        trusted = [entry.certificate for entry in entries if isinstance(entry, jks.TrustedEntry)]
        trusted_pem = _pem(map(x509.load_der_x509_certificate, trusted))
        keys = [entry for entry in entries if isinstance(entry, jks.KeyEntry) and entry.key]
        if not keys:
            return Store(trusted_pem)
        chain_pem = _pem(map(x509.load_der_x509_certificate, keys[0].chain))
        return Store(trusted_pem, chain_pem, _key_text(serialization.load_der_private_key(keys[0].key, None)))
    except ValueError as error:
        raise UsageError(f"this JKS store cannot be read: {error}", where=where, hint=_hint(where)) from None


def _read_pkcs12(data: bytes, password: str | None, where: str) -> Store:
    try:
        content = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError:
        raise UsageError(
            "this PKCS#12 store cannot be read: its password is wrong or it is damaged",
            where=where,
            hint=_hint(where),
        ) from None
    others = [entry.certificate for entry in content.additional_certs]
    if content.key is None:
        return Store(trusted_pem=_pem(others))
    own = [content.cert.certificate] if content.cert is not None else []
    # keytool keeps an authority twice when it is trusted and also part of the chain.
    return Store(chain_pem=_pem(dict.fromkeys(own + others)), key_pem=_key_text(content.key))


def _hint(where: str) -> str:
    return f"does this ask for the same password? keytool -list -keystore {where}"


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def _pem(certificates: Iterable[x509.Certificate]) -> str:
    return "".join(cert.public_bytes(serialization.Encoding.PEM).decode() for cert in certificates)


def _key_text(key: PrivateKeyTypes) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
