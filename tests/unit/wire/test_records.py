"""Batches, read back by a reader that is not ours."""

import struct
from typing import Any

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from twinlog.wire.records import Record, encode_batch, varint

headers = st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10))
records = st.builds(
    Record,
    value=st.none() | st.binary(max_size=300),
    timestamp_ms=st.integers(0, 2**42),
    key=st.none() | st.binary(max_size=50),
    headers=st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3).map(
        tuple
    ),
)


@given(st.lists(records, min_size=1, max_size=20))
def test_a_batch_reads_back_as_the_records_it_was_made_of(wanted: list[Record]) -> None:
    reader: Any = DefaultRecordBatch
    batch = reader(encode_batch(wanted))
    assert batch.validate_crc()
    found = list(batch)
    assert [record.offset for record in found] == list(range(len(wanted)))
    assert [Record(r.value, r.timestamp, r.key, tuple(r.headers)) for r in found] == wanted


@given(st.lists(records, min_size=1, max_size=3))
def test_the_checksum_covers_everything_from_the_attributes_on(wanted: list[Record]) -> None:
    batch = encode_batch(wanted, producer_id=2**40, producer_epoch=3, first_sequence=7)
    assert struct.unpack_from(">I", batch, 17) == (crc32c.crc32c(batch[21:]),)
    assert struct.unpack_from(">qhii", batch, 43) == (2**40, 3, 7, len(wanted))
    assert struct.unpack_from(">i", batch, 8) == (len(batch) - 12,)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, b"\0"), (-1, b"\1"), (1, b"\2"), (63, b"\x7e"), (64, b"\x80\1"), (-(2**63), b"\xff" * 9 + b"\1")],
)
def test_a_number_is_written_in_zigzag_form(number: int, encoded: bytes) -> None:
    assert varint(number) == encoded


def test_a_batch_without_records_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        encode_batch([])
