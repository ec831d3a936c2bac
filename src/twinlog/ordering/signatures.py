"""ECDSA signatures as the ordering service makes and takes them: ASN.1 (r, s) over a hash, low S only.

For every valid (r, s) the pair (r, n - s) is valid too; only the smaller s counts, so that nobody can make
a second signature out of a first one. Called by identities (each message that comes in, each block that
goes out) and by the check of certificates, which are brought to the low form before they are compared. Pure.
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

# Made once: these objects hold no state, and a message is checked in the time that it takes to make a few.
_ALGORITHMS: Final = {"SHA2": ec.ECDSA(hashes.SHA256()), "SHA3": ec.ECDSA(hashes.SHA3_256())}
HASH_FAMILIES: Final = frozenset(_ALGORITHMS)


def verify(key: ec.EllipticCurvePublicKey, data: bytes, signature: bytes, family: str = "SHA2") -> bool:
    """True if the signature is the key's over the data, and has a low S."""
    try:
        if decode_dss_signature(signature)[1] > key.curve.group_order >> 1:
            return False
        key.verify(signature, data, _ALGORITHMS[family])
    except (ValueError, InvalidSignature):
        return False
    return True


def sign(key: ec.EllipticCurvePrivateKey, data: bytes, family: str = "SHA2") -> bytes:
    """A signature over the data, with a low S."""
    return low_s(key.sign(data, _ALGORITHMS[family]), key.curve)


def low_s(signature: bytes, curve: ec.EllipticCurve) -> bytes:
    """The same signature with the smaller of its two S; raises ValueError if it is none."""
    r, s = decode_dss_signature(signature)
    return encode_dss_signature(r, min(s, curve.group_order - s))
