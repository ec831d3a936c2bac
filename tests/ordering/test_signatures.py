"""ECDSA with a low S."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from twinlog.ordering import signatures

KEY = ec.generate_private_key(ec.SECP256R1())
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def test_signatures_have_a_low_s_and_are_taken() -> None:
    for number in range(20):
        signature = signatures.sign(KEY, b"%d" % number)
        assert decode_dss_signature(signature)[1] <= ORDER // 2
        assert signatures.verify(KEY.public_key(), b"%d" % number, signature)


def test_the_other_s_is_valid_for_the_curve_and_refused() -> None:
    r, s = decode_dss_signature(signatures.sign(KEY, b"data"))
    high = encode_dss_signature(r, ORDER - s)
    KEY.public_key().verify(high, b"data", ec.ECDSA(hashes.SHA256()))
    assert not signatures.verify(KEY.public_key(), b"data", high)
    assert signatures.low_s(high, KEY.curve) == encode_dss_signature(r, s)


@pytest.mark.parametrize("signature", [b"", b"\x00", bytes(70), b"\x30\x00", b"\x30" * 70])
def test_bytes_that_are_no_signature_are_refused(signature: bytes) -> None:
    assert not signatures.verify(KEY.public_key(), b"data", signature)


def test_a_signature_over_other_data_is_refused() -> None:
    assert not signatures.verify(KEY.public_key(), b"other", signatures.sign(KEY, b"data"))


def test_the_other_family_of_hashes_is_told_apart() -> None:
    signature = signatures.sign(KEY, b"data", "SHA3")
    assert signatures.verify(KEY.public_key(), b"data", signature, "SHA3")
    assert not signatures.verify(KEY.public_key(), b"data", signature)
