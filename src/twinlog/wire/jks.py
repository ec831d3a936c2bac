"""Java's own key store format, JKS, as bytes. Pure.

Old Java clients and many clusters that exist already use it, and no Python library that is still
cared for reads it. The format: a header, entries (a private key with its chain, or a trusted
certificate), and a SHA-1 digest over password and content. Private keys are hidden under a
SHA-1 key stream; that is Sun's scheme, weak by today's measure, and a reason to prefer PEM.
`stores` is the only caller.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

MAGIC = b"\xfe\xed\xfe\xed"
_VERSION = 2
_KEY_ENTRY = 1
_TRUSTED_ENTRY = 2
_SALTED = b"Mighty Aphrodite"  # part of the format: it stands between password and content
_DIGEST_BYTES = 20
# AlgorithmIdentifier of Sun's key protector, 1.3.6.1.4.1.42.2.17.1.1 with NULL parameters.
_PROTECTOR = bytes.fromhex("300e060a2b060104012a021101010500")
_DER_SEQUENCE = 0x30
_DER_OCTETS = 0x04
_DER_SHORT = 0x80


class JksError(ValueError):
    """The bytes are no JKS store, or the password is not the right one."""


@dataclass(frozen=True)
class KeyEntry:
    """A private key (PKCS#8 DER) and its certificates, the key's own first."""

    alias: str
    key: bytes = field(repr=False)
    chain: tuple[bytes, ...]


@dataclass(frozen=True)
class TrustedEntry:
    """A certificate (DER) that is trusted."""

    alias: str
    certificate: bytes


Entry = KeyEntry | TrustedEntry


def decode(data: bytes, password: str | None, key_password: str | None = None) -> list[Entry]:
    """The entries of a store; without a password its digest is not checked and keys stay closed."""
    reader = _Reader(data[:-_DIGEST_BYTES])
    if reader.take(4) != MAGIC:
        raise JksError("it does not begin as a JKS store")
    version = reader.number()
    if version not in (1, _VERSION):
        raise JksError(f"it has the unknown version {version}")
    digest = data[-_DIGEST_BYTES:]
    if password is not None and not hmac.compare_digest(_digest(reader.data, password), digest):
        raise JksError("the password is wrong, or the file is damaged")
    opener = key_password if key_password is not None else password
    return [_decode_entry(reader, version, opener) for _ in range(reader.number())]


def encode(entries: Sequence[Entry], password: str, created_ms: int) -> bytes:
    """A store with these entries; keys are protected by the same password."""
    body = bytearray(MAGIC + struct.pack(">II", _VERSION, len(entries)))
    for entry in entries:
        tag = _KEY_ENTRY if isinstance(entry, KeyEntry) else _TRUSTED_ENTRY
        body += struct.pack(">I", tag) + _text(entry.alias) + struct.pack(">q", created_ms)
        if isinstance(entry, KeyEntry):
            body += _block(_protect(entry.key, password)) + struct.pack(">I", len(entry.chain))
            for certificate in entry.chain:
                body += _text("X.509") + _block(certificate)
        else:
            body += _text("X.509") + _block(entry.certificate)
    return bytes(body) + _digest(bytes(body), password)


@dataclass
class _Reader:
    """Takes big-endian values off the front of some bytes."""

    data: bytes
    position: int = 0

    def take(self, count: int) -> bytes:
        if self.position + count > len(self.data):
            raise JksError("it ends too early")
        self.position += count
        return self.data[self.position - count : self.position]

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def block(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        return self.take(int.from_bytes(self.take(2), "big")).decode("utf-8", "replace")


def _decode_entry(reader: _Reader, version: int, opener: str | None) -> Entry:
    tag = reader.number()
    alias = reader.text()
    reader.take(8)  # when the entry was made
    if tag == _TRUSTED_ENTRY:
        return TrustedEntry(alias, _decode_certificate(reader, version))
    if tag != _KEY_ENTRY:
        raise JksError(f"it has an entry of the unknown kind {tag}")
    hidden = reader.block()
    chain = tuple(_decode_certificate(reader, version) for _ in range(reader.number()))
    return KeyEntry(alias, _reveal(hidden, opener) if opener is not None else b"", chain)


def _decode_certificate(reader: _Reader, version: int) -> bytes:
    if version == _VERSION:
        reader.text()  # the certificate's type: X.509
    return reader.block()


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded


def _block(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def _password_bytes(password: str) -> bytes:
    return password.encode("utf-16-be")


def _digest(content: bytes, password: str) -> bytes:
    return hashlib.sha1(_password_bytes(password) + _SALTED + content).digest()


def _key_stream(password: str, salt: bytes, count: int) -> bytes:
    stream, block = b"", salt
    while len(stream) < count:
        block = hashlib.sha1(_password_bytes(password) + block).digest()
        stream += block
    return stream[:count]


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _check(password: str, key: bytes) -> bytes:
    return hashlib.sha1(_password_bytes(password) + key).digest()


def _protect(key: bytes, password: str) -> bytes:
    salt = secrets.token_bytes(_DIGEST_BYTES)
    hidden = salt + _xor(key, _key_stream(password, salt, len(key))) + _check(password, key)
    return _der(_DER_SEQUENCE, _PROTECTOR + _der(_DER_OCTETS, hidden))


def _reveal(info: bytes, password: str) -> bytes:
    content = _der_content(info, _DER_SEQUENCE)
    if not content.startswith(_PROTECTOR):
        raise JksError("a private key in it is protected in an unknown way")
    hidden = _der_content(content[len(_PROTECTOR) :], _DER_OCTETS)
    if len(hidden) < 2 * _DIGEST_BYTES:
        raise JksError("a private key in it is too short")
    salt, covered, check = hidden[:20], hidden[20:-20], hidden[-20:]
    key = _xor(covered, _key_stream(password, salt, len(covered)))
    if not hmac.compare_digest(_check(password, key), check):
        raise JksError("the password of a private key in it is wrong")
    return key


def _der(tag: int, content: bytes) -> bytes:
    if len(content) < _DER_SHORT:
        return bytes((tag, len(content))) + content
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes((tag, _DER_SHORT | len(size))) + size + content


def _der_content(data: bytes, tag: int) -> bytes:
    if data[:1] != bytes((tag,)) or data[1:2] == b"":
        raise JksError("a private key in it is not in the expected form")
    start, size = 2, data[1]
    if size >= _DER_SHORT:
        start = 2 + (size & 0x7F)
        size = int.from_bytes(data[2:start], "big")
    if start + size > len(data):
        raise JksError("a private key in it ends too early")
    return data[start : start + size]
