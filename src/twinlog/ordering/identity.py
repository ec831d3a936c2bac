"""Who signed: an identity that others present, and the one that this process signs with.

An Identity is made by its membership provider (`msp`) and holds all that was found out about it once, so
that a message costs one ECDSA verification and nothing else. Expiry is asked apart, of the bytes alone: it
does not make an identity unknown, it only has its messages refused. Pure.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.message import DecodeError

from twinlog.ordering import signatures
from twinlog.ordering.certification import first_certificate
from twinlog.ordering.proto import common_pb2, msp_pb2

_NONCE_BYTES: Final = 24
LONGEST_BYTES: Final = 16 * 1024  # of what is remembered about identities: anybody may send anything as one


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """A certificate that a membership provider knows, and what it found out about it."""

    mspid: str
    certificate: bytes  # DER, in the low form
    key: ec.EllipticCurvePublicKey
    hash_family: str
    units: frozenset[str]
    certifiers: bytes  # the hash of the certificates that vouch for it
    fault: str  # why it is no valid member; empty for one that is

    def verify(self, data: bytes, signature: bytes) -> bool:
        """True if the signature over the data is this identity's."""
        return signatures.verify(self.key, data, signature, self.hash_family)


@dataclass(frozen=True, eq=False)
class Signer:
    """This process's own identity, with its key."""

    mspid: str
    certificate_pem: bytes
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def creator(self) -> bytes:
        """The identity as others are shown it."""
        return serialized(self.mspid, self.certificate_pem)

    def sign(self, data: bytes) -> bytes:
        """A signature over the data."""
        return signatures.sign(self.key, data)

    def header(self) -> common_pb2.SignatureHeader:
        """A signature header with a nonce that was never used."""
        return common_pb2.SignatureHeader(creator=self.creator, nonce=secrets.token_bytes(_NONCE_BYTES))


def serialized(mspid: str, certificate_pem: bytes) -> bytes:
    """An identity as it stands in signature headers."""
    return msp_pb2.SerializedIdentity(mspid=mspid, id_bytes=certificate_pem).SerializeToString()


def expires_at(creator: bytes) -> datetime | None:
    """When a serialized identity's certificate ends; None if the bytes hold no certificate."""
    return _remembered_end(creator) if len(creator) <= LONGEST_BYTES else _end(creator)


def _end(creator: bytes) -> datetime | None:
    try:
        identity = msp_pb2.SerializedIdentity.FromString(creator)
        return first_certificate(identity.id_bytes).not_valid_after_utc
    except (DecodeError, ValueError):
        return None


_remembered_end = lru_cache(maxsize=1024)(_end)
