"""What records of Kafka's own topic of offsets say."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.wire import compact
from twinlog.wire.commits import Commit, read_commit
from twinlog.wire.records import varint

PLACE = ("stock-1", ("orders", 2))


def text(content: str) -> bytes:
    return struct.pack(">h", len(content.encode())) + content.encode()


def field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def record(key: bytes | None, value: bytes | None) -> bytes:
    return field(key) + field(value) + varint(0)


KEY = struct.pack(">h", 1) + text("stock-1") + text("orders") + struct.pack(">i", 2)
OFFSET = struct.pack(">q", 192)
TIME = struct.pack(">q", 1_700_000_000_123)
EPOCH = struct.pack(">i", -1)


@pytest.mark.parametrize(
    "value",
    [
        struct.pack(">h", 1) + OFFSET + text("beside") + TIME + TIME,
        struct.pack(">h", 3) + OFFSET + EPOCH + text("beside") + TIME,
        struct.pack(">h", 4) + OFFSET + EPOCH + compact.text("beside") + TIME + b"\0",
    ],
)
def test_a_commit_is_read_in_every_version(value: bytes) -> None:
    assert read_commit(record(KEY, value)) == (PLACE, Commit(1_700_000_000_123, 192))


def test_an_offset_that_was_taken_back_is_told() -> None:
    assert read_commit(record(KEY, None)) == (PLACE, None)


def test_a_record_about_a_group_itself_is_no_commit() -> None:
    assert read_commit(record(struct.pack(">h", 2) + text("stock-1"), b"\0\3")) is None
    assert read_commit(record(None, b"")) is None


@given(st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_a_form_that_is_not_known_is_passed_over(key: bytes, value: bytes | None) -> None:
    read_commit(record(key, value))
    read_commit(record(KEY, value))
