"""Compact forms, compared with kafka-python's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.schemas.fields.codecs import types

from twinlog.wire import compact

theirs: Any = types.UnsignedVarInt32


@given(st.integers(0, 2**32 - 1))
def test_a_varint_is_written_as_others_write_it_and_read_back(number: int) -> None:
    encoded = compact.varint(number)
    assert encoded == theirs.encode(number)
    assert compact.read_varint(memoryview(b"?" + encoded + b"?"), 1) == (number, 1 + len(encoded))


@given(st.text(max_size=300))
def test_a_text_reads_back(content: str) -> None:
    encoded = compact.text(content)
    assert compact.read_text(memoryview(encoded), 0) == (content, len(encoded))


def test_null_is_no_piece_an_empty_text_and_no_entries() -> None:
    null = memoryview(b"\0")
    assert compact.read_bytes(null, 0) == (None, 1)
    assert compact.read_text(null, 0) == ("", 1)
    assert compact.read_count(null, 0) == (0, 1)


@given(st.dictionaries(st.integers(0, 300), st.binary(max_size=200), max_size=5))
def test_tagged_fields_are_skipped_whatever_they_are(fields: dict[int, bytes]) -> None:
    encoded = compact.varint(len(fields)) + b"".join(
        compact.varint(tag) + compact.varint(len(content)) + content for tag, content in fields.items()
    )
    assert compact.skip_tags(memoryview(encoded + b"next"), 0) == len(encoded)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (compact.read_varint, b""),
        (compact.read_varint, b"\x80"),
        (compact.read_varint, b"\xff\xff\xff\xff\xff\x01"),
        (compact.read_bytes, b"\x05abc"),
        (compact.skip_tags, b"\x01\x00\x05abc"),
    ],
)
def test_what_is_cut_off_is_not_read(read: Any, data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        read(memoryview(data), 0)
