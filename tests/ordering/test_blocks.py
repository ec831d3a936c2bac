"""Hashes, metadata and signatures of blocks, worked out a second time in a few lines each."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import SiteError
from twinlog.ordering import blocks
from twinlog.ordering.blocks import Position, Signer
from twinlog.ordering.proto import common_pb2

_EMPTY = hashlib.sha256().hexdigest()
_GENESIS = "b72a19b1df16661093fd6c346bac37a5fbf13cf813ab0da0887cd36985aaadd4"
# Number, previous hash, data hash, header as DER, hash: the last two are of a chain that Fabric made.
_VECTORS = [
    (
        0,
        "",
        _EMPTY,
        "302702010004000420e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "9cae6f5c10756febc407bba95fc23853774c1f65f10354895bfdab6443d66ed3",
    ),
    (
        128,
        "00" * 32,
        _EMPTY,
        "3048020200800420" + "00" * 32 + "0420" + _EMPTY,
        "1b4ec4e29d1b01bf755f30ccfd178dc61520c5b735ee1cd9c05ac7a0131a8582",
    ),
    (
        0,
        "",
        "98c5f532e18d4432a3ff794d8e9262fd932f0238ba0a6aa8ac0ac4d2f94df858",
        "30270201000400042098c5f532e18d4432a3ff794d8e9262fd932f0238ba0a6aa8ac0ac4d2f94df858",
        _GENESIS,
    ),
    (
        1,
        _GENESIS,
        "727ae321a349994c232898ac7b2133f752e721dbf8eaa9acb71f671594803899",
        f"30470201010420{_GENESIS}0420727ae321a349994c232898ac7b2133f752e721dbf8eaa9acb71f671594803899",
        "19719e795b4fd9d85779ae150c779ab54f0793e57871dbee48d243e091a3b5f7",
    ),
]
_SIGNER = Signer(b"somebody", lambda message: hashlib.sha256(message).digest(), bytes)


@pytest.mark.parametrize(("number", "previous", "data", "der", "hashed"), _VECTORS)
def test_header_of_a_known_block_has_its_bytes_and_hash(
    number: int, previous: str, data: str, der: str, hashed: str
) -> None:
    header = common_pb2.BlockHeader(
        number=number, previous_hash=bytes.fromhex(previous), data_hash=bytes.fromhex(data)
    )
    assert blocks.header_bytes(number, header.previous_hash, header.data_hash).hex() == der
    assert blocks.hash_of(header).hex() == hashed


@pytest.mark.parametrize(
    ("number", "integer"),
    [(0, "020100"), (127, "02017f"), (128, "02020080"), (255, "020200ff"), (256, "02020100")],
)
def test_number_at_the_edge_of_a_byte_is_a_signed_integer(number: int, integer: str) -> None:
    assert blocks.header_bytes(number, b"", b"")[2:-4].hex() == integer


@given(st.integers(0, 2**64 - 1), st.binary(max_size=300))
def test_any_header_is_read_back_from_its_der(number: int, previous: bytes) -> None:
    def parts(der: bytes) -> list[bytes]:
        found = []
        while der:
            length, start = der[1], 2
            if length >= 0x80:
                start = 2 + length - 0x80
                length = int.from_bytes(der[2:start], "big")
            found.append(der[start : start + length])
            der = der[start + length :]
        return found

    (fields,) = parts(blocks.header_bytes(number, previous, b"data"))
    integer, first, second = parts(fields)
    assert int.from_bytes(integer, "big", signed=True) == number
    assert len(integer) == 1 or integer[0] or integer[1] >= 0x80
    assert (first, second) == (previous, b"data")


def test_data_hash_is_that_of_the_entries_in_a_row() -> None:
    assert blocks.data_hash([b"ab", b"", b"c"]) == hashlib.sha256(b"abc").digest()


def test_new_block_has_five_empty_slots() -> None:
    assert list(blocks.new_block(0, b"", [b"x"]).metadata.metadata) == [b""] * 5


def test_sealed_block_has_every_slot_as_specified() -> None:
    block = blocks.new_block(9, b"before", [b"x"])
    blocks.seal(block, Position(300, 5, 7), 2, _SIGNER)
    kafka = bytes.fromhex("08ac02 1005 1807")  # the three offsets
    consenter = b"\x0a" + bytes([len(kafka)]) + kafka
    value = b"\x0a\x02\x08\x02" + b"\x12" + bytes([len(consenter)]) + consenter
    slots = list(block.metadata.metadata)
    assert slots[1:] == [b"\x0a\x02\x08\x02", b"", consenter, b""]
    header = b"\x0a\x08somebody\x12\x18" + bytes(24)
    der = blocks.header_bytes(9, b"before", hashlib.sha256(b"x").digest())
    ((creator, signed, signature),) = blocks.signed_bytes(block)
    assert (creator, signed) == (b"somebody", value + header + der)
    assert signature == hashlib.sha256(signed).digest()


def test_last_config_is_the_first_block_leaves_its_slot_empty_but_is_signed() -> None:
    block = blocks.new_block(1, b"before", [b"x"])
    blocks.seal(block, None, 0, _SIGNER)
    assert list(block.metadata.metadata)[1:] == [b""] * 4
    assert blocks.signed_bytes(block)[0][1].startswith(b"\x0a\x00\x0a\x08somebody")


def test_signature_of_a_block_verifies_over_its_bytes() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    algorithm = ec.ECDSA(hashes.SHA256())
    block = blocks.new_block(1, b"before", [b"x"])
    blocks.seal(block, Position(3), 0, Signer(b"me", lambda it: key.sign(it, algorithm), bytes))
    ((_, signed, signature),) = blocks.signed_bytes(block)
    key.public_key().verify(signature, signed, algorithm)


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**62))
def test_sealed_block_is_read_back_from_either_place(
    last: int, original: int, resubmitted: int, config: int
) -> None:
    position = Position(last + 1, original, resubmitted)
    block = blocks.new_block(1, b"", [b"x"])
    blocks.seal(block, position, config, _SIGNER)
    assert (blocks.position_of(block), blocks.last_config_of(block)) == (position, config)
    # As later releases write it: all in the signed value.
    block.metadata.metadata[common_pb2.ORDERER] = b""
    block.metadata.metadata[common_pb2.LAST_CONFIG] = b""
    assert (blocks.position_of(block), blocks.last_config_of(block)) == (position, config)


def test_first_block_has_no_position() -> None:
    block = blocks.new_block(0, b"", [b"x"])
    assert (blocks.position_of(block), blocks.last_config_of(block)) == (None, 0)
    assert blocks.position_of(common_pb2.Block()) is None


def test_position_is_garbage_is_an_error() -> None:
    block = blocks.new_block(4, b"", [b"x"])
    block.metadata.metadata[common_pb2.ORDERER] = b"\x0a\x02\xff\xff"
    with pytest.raises(SiteError, match="block 4 cannot be read"):
        blocks.position_of(block)


def test_block_that_does_not_follow_is_told_by_what_is_wrong() -> None:
    block = blocks.new_block(4, b"before", [b"x"])
    assert blocks.fault_in(block, 4, b"before") == ""
    assert "number 4 where 5" in blocks.fault_in(block, 5, b"before")
    assert "hashes differ" in blocks.fault_in(block, 4, b"other")
    block.data.data[0] = b"y"
    assert "the data of block 4" in blocks.fault_in(block, 4, b"before")
