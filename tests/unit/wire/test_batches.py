"""Batches in a log: found, stamped where they are, told apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from tests.unit.wire import samples
from twinlog.wire.batches import (
    HEADER_BYTES,
    Batch,
    Codec,
    ControlType,
    Header,
    UnreadableBatch,
    assemble,
    checksum_is_right,
    clear_position,
    control_type,
    next_sequence,
    read,
    records_section,
    split,
    stamp,
)
from twinlog.wire.records import Record, encode_batch

KafkaPython: Any = DefaultRecordBatch


@given(st.lists(samples.record_lists, max_size=3), st.data())
def test_a_chunk_cut_anywhere_gives_its_whole_batches(
    contents: list[list[Record]], data: st.DataObject
) -> None:
    encoded = [encode_batch(content) for content in contents]
    chunk = b"".join(encoded)
    cut = data.draw(st.integers(0, len(chunk)))
    found = list(split(memoryview(chunk)[:cut]))
    ends = [sum(map(len, encoded[: number + 1])) for number in range(len(encoded))]
    assert [bytes(batch.view) for batch in found] == encoded[: sum(end <= cut for end in ends)]
    assert all(checksum_is_right(batch) for batch in found)
    assert all(batch.header.total_bytes == len(batch.view) for batch in found)


@given(samples.record_lists, samples.producer_ids, samples.epochs, samples.sequences)
def test_a_stamped_batch_is_the_producers_for_another_reader(
    content: list[Record], producer_id: int, epoch: int, sequence: int
) -> None:
    before, after = encode_batch(content), encode_batch(content[:1])
    chunk = bytearray(before + lying_in_a_transaction(content) + after)
    view = memoryview(chunk)[len(before) : -len(after)]
    section = bytes(records_section(view))
    stamp(view, producer_id, epoch, sequence)
    reader = KafkaPython(bytes(view))
    assert reader.validate_crc()
    assert (reader.producer_id, reader.producer_epoch, reader.base_sequence) == (producer_id, epoch, sequence)
    assert (reader.base_offset, reader.leader_epoch, reader.is_transactional) == (0, -1, False)
    assert [record.value for record in reader] == [record.value for record in content]
    assert records_section(view) == section
    assert not read(view).header.has_delete_horizon
    assert chunk == before + view + after


@given(samples.record_lists)
def test_a_batch_without_its_position_keeps_identity_and_checksum(content: list[Record]) -> None:
    view = memoryview(bytearray(lying_in_a_transaction(content)))
    before = read(view).header
    clear_position(view)
    batch = read(view)
    assert batch.header == before._replace(base_offset=0, leader_epoch=-1)
    assert checksum_is_right(batch)


@given(samples.record_lists, st.data())
def test_a_changed_byte_after_the_checksum_is_noticed(content: list[Record], data: st.DataObject) -> None:
    encoded = bytearray(encode_batch(content))
    encoded[data.draw(st.integers(21, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    header = read(memoryview(encode_batch(content))).header
    assert not checksum_is_right(Batch(header, memoryview(encoded)))


def test_a_header_says_what_its_bits_say() -> None:
    plain = Header(base_offset=40, last_offset_delta=9, record_count=10)
    assert (plain.last_offset, plain.next_offset, plain.codec) == (49, 50, Codec.NONE)
    assert not any(
        (plain.is_control, plain.is_transactional, plain.is_log_append_time, plain.has_delete_horizon)
    )
    assert not plain.is_thinned
    assert not plain.is_idempotent
    assert plain._replace(record_count=9).is_thinned
    assert plain._replace(producer_id=0).is_idempotent
    full = plain._replace(attributes=0x7C)
    assert all((full.is_control, full.is_transactional, full.is_log_append_time, full.has_delete_horizon))
    assert full.codec is Codec.ZSTD
    with pytest.raises(UnreadableBatch, match="unknown codec 7"):
        _ = plain._replace(attributes=7).codec


@pytest.mark.parametrize(
    ("attributes", "key", "kind"),
    [
        (0x30, b"\0\0\0\0", ControlType.ABORT),
        (0x30, b"\0\0\0\1", ControlType.COMMIT),
        (0x20, b"\0\0\0\2", ControlType.OTHER),
        (0x10, b"\0\0\0\1", ControlType.OTHER),  # a client's record, whatever its key
    ],
)
@pytest.mark.parametrize("horizon_ms", [0, 2**42])
def test_a_control_batch_tells_its_type(
    attributes: int, key: bytes, kind: ControlType, horizon_ms: int
) -> None:
    header = Header(base_offset=2**40, attributes=attributes, base_timestamp_ms=horizon_ms)
    marker = Record(b"\0\0\0\0\0\0", timestamp_ms=0, key=key)
    batch = samples.lying(samples.placed([marker], 2**40), header)
    assert control_type(batch) is kind


def test_a_control_batch_that_was_emptied_is_of_no_type() -> None:
    assert control_type(samples.lying([], Header(attributes=0x30))) is ControlType.OTHER


def test_a_control_batch_without_a_key_is_unreadable() -> None:
    batch = read(memoryview(assemble(Header(base_offset=7, attributes=0x30), b"\x02\0\0")))
    with pytest.raises(UnreadableBatch, match="no readable key"):
        control_type(batch)


@pytest.mark.parametrize("length", [-1, 0, HEADER_BYTES - 13])
def test_an_impossible_length_is_refused(length: int) -> None:
    damaged = bytearray(encode_batch([Record(b"x", 0)]))
    damaged[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(UnreadableBatch, match=f"cannot have the length {length}") as caught:
        list(split(memoryview(damaged)))
    assert caught.value.code == "CORRUPT_MESSAGE"


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("total_bytes", [34, 200])
def test_a_message_of_an_old_format_is_refused_and_not_taken_for_a_truncated_batch(
    magic: int, total_bytes: int
) -> None:
    old = bytearray(total_bytes)
    old[7], old[11], old[16] = 5, total_bytes - 12, magic
    with pytest.raises(UnreadableBatch, match=f"at offset 5 are of message format {magic}") as caught:
        list(split(memoryview(encode_batch([Record(b"x", 0)]) + old)))
    assert caught.value.code == "UNSUPPORTED_FOR_MESSAGE_FORMAT"
    assert caught.value.hint


@pytest.mark.parametrize("extra", [-1, 1, 100])
def test_bytes_that_are_not_one_batch_are_refused(extra: int) -> None:
    encoded = encode_batch([Record(b"x", 0)])
    with pytest.raises(UnreadableBatch, match="not one whole batch"):
        read(memoryview((encoded * 3)[: len(encoded) + extra]))


@pytest.mark.parametrize(
    ("sequence", "count", "after"), [(0, 1, 1), (2**31 - 1, 1, 0), (2**31 - 3, 5, 2), (7, 0, 7)]
)
def test_a_sequence_wraps_at_two_to_the_31(sequence: int, count: int, after: int) -> None:
    assert next_sequence(sequence, count) == after


def lying_in_a_transaction(content: list[Record]) -> bytes:
    """A batch as it lies in a log: with a position, in a transaction, touched by the cleaner."""
    header = Header(
        base_offset=2**33,
        leader_epoch=12,
        attributes=0x50,
        last_offset_delta=len(content) - 1,
        producer_id=3,
        producer_epoch=1,
        base_sequence=9,
    )
    return bytes(samples.lying(samples.placed(content, 2**33), header).view)
