"""Requests about voters and brokers, byte by byte, as Kafka's schemas write them."""

from __future__ import annotations

from uuid import UUID

from twinlog.wire.addresses import HostPort
from twinlog.wire.membership import Said, decode, encode_add_voter, encode_remove_voter, encode_unregister

DIRECTORY = UUID(bytes=bytes(range(16)))


def test_a_broker_is_forgotten_by_its_id() -> None:
    assert encode_unregister(4) == bytes.fromhex("0000000400")


def test_a_voter_is_added_with_its_directory_and_its_listener() -> None:
    expected = (
        bytes((4,))
        + b"abc"  # cluster id
        + bytes.fromhex("000003e8")  # timeout
        + bytes.fromhex("00000385")  # voter 901
        + bytes(range(16))
        + bytes((2,))  # one listener
        + bytes((11,))
        + b"CONTROLLER"
        + bytes((2,))
        + b"h"
        + bytes.fromhex("2384")
        + b"\0"
        + b"\0"
    )
    assert encode_add_voter("abc", 901, DIRECTORY, HostPort("h", 9092), 1000) == expected


def test_a_voter_is_removed_by_its_id_and_directory() -> None:
    expected = bytes((4,)) + b"abc" + bytes.fromhex("00000385") + bytes(range(16)) + b"\0"
    assert encode_remove_voter("abc", 901, DIRECTORY) == expected


def test_an_answer_has_a_code_and_perhaps_words() -> None:
    assert decode(memoryview(bytes.fromhex("0000000000000000"))) == Said(0, "")
    said = bytes.fromhex("00000000007e") + bytes((3,)) + b"no" + b"\0"
    assert decode(memoryview(said)) == Said(126, "no")
