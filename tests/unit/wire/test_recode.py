"""Batches taken apart and put together: what a reader sees of a record does not change."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire import samples
from tests.unit.wire.samples import Seen
from twinlog.wire.batches import Codec, Header, UnreadableBatch, assemble, checksum_is_right, read, stamp
from twinlog.wire.recode import MOST_NULLS, Run, encode, entries, null_batch, runs
from twinlog.wire.records import Record, encode_batch, varint

USUAL_MESSAGE_LIMIT_BYTES = 1_048_588  # max.message.bytes as Kafka has it

headers = st.builds(
    Header,
    base_offset=samples.offsets,
    leader_epoch=st.integers(-1, 1000),
    attributes=st.builds(
        lambda codec, flags: codec | sum(flags), samples.codecs, st.sets(st.sampled_from([0x10, 0x40]))
    ),
    last_offset_delta=st.just(7),
    base_timestamp_ms=st.integers(0, 2**42),
    max_timestamp_ms=st.integers(0, 2**42),
    producer_id=samples.producer_ids,
    producer_epoch=samples.epochs,
    base_sequence=samples.sequences,
)
thinned = st.lists(st.none() | samples.records, min_size=8, max_size=8)  # None: the cleaner took it


def left_of(content: list[Record | None], base_offset: int) -> list[Seen]:
    return [
        Seen(base_offset + delta, record.timestamp_ms, samples.rest_of(record))
        for delta, record in enumerate(content)
        if record is not None
    ]


def as_a_reader_sees(run: Run) -> list[Seen]:
    """A run read back, as it will lie at its place."""
    batch = read(memoryview(run.batch))
    return [seen._replace(offset=seen.offset + run.first_offset) for seen in samples.seen(entries(batch))]


@given(samples.record_lists)
def test_a_producers_batch_reads_as_its_records(content: list[Record]) -> None:
    assert samples.seen(entries(read(memoryview(encode_batch(content))))) == samples.placed(content, 0)


@given(thinned, headers)
def test_what_is_left_of_a_batch_reads_with_its_offsets(content: list[Record | None], header: Header) -> None:
    left = left_of(content, header.base_offset)
    assert samples.seen(entries(samples.lying(left, header))) == left


@given(thinned, headers, st.integers(-1, 9))
def test_a_thinned_batch_becomes_runs_that_a_broker_accepts(
    content: list[Record | None], header: Header, skipped: int
) -> None:
    left = left_of(content, header.base_offset)
    from_offset = header.base_offset + skipped
    made = runs(samples.lying(left, header), from_offset)
    assert [seen for run in made for seen in as_a_reader_sees(run)] == [
        seen for seen in left if seen.offset >= from_offset
    ]
    ends = [run.first_offset + run.record_count for run in made]
    assert all(run.first_offset > end for run, end in zip(made[1:], ends, strict=False))
    for run in made:
        batch = read(memoryview(run.batch))
        assert checksum_is_right(batch)
        assert not batch.header.is_thinned
        assert batch.header.record_count == run.record_count
        assert batch.header.attributes == header.codec
        assert (batch.header.base_offset, batch.header.leader_epoch) == (0, -1)
        assert batch.header.max_timestamp_ms == max(seen.timestamp_ms for seen in as_a_reader_sees(run))


@given(thinned, headers)
def test_a_run_continues_the_chain_of_its_producer(content: list[Record | None], header: Header) -> None:
    for run in runs(samples.lying(left_of(content, header.base_offset), header), 0):
        made = read(memoryview(run.batch)).header
        assert (made.producer_id, made.producer_epoch) == (header.producer_id, header.producer_epoch)
        assert made.base_sequence == (header.base_sequence + run.first_offset - header.base_offset) % 2**31


@given(samples.record_lists, samples.codecs, st.integers(0, 2**42))
def test_append_time_becomes_the_time_of_every_record(
    content: list[Record], codec: Codec, append_ms: int
) -> None:
    header = Header(
        base_offset=100,
        attributes=codec | 0x08,
        last_offset_delta=len(content) - 1,
        base_timestamp_ms=content[0].timestamp_ms,
        max_timestamp_ms=append_ms,
    )
    batch = samples.lying(samples.placed(content, 100), header)
    wanted = [seen._replace(timestamp_ms=append_ms) for seen in samples.placed(content, 100)]
    assert samples.seen(entries(batch)) == wanted
    (run,) = runs(batch, 100)
    assert as_a_reader_sees(run) == wanted
    made = read(memoryview(run.batch)).header
    assert (made.base_timestamp_ms, made.max_timestamp_ms) == (append_ms, append_ms)
    assert made.attributes == codec


def test_a_delete_horizon_does_not_stay_as_a_timestamp() -> None:
    horizon_ms, written_ms = 2_000_000_000_000, 1_700_000_000_000
    left = [Seen(5, written_ms, samples.rest_of(Record(None, 0, key=b"k")))]
    header = Header(base_offset=3, attributes=0x40, last_offset_delta=4, base_timestamp_ms=horizon_ms)
    (run,) = runs(samples.lying(left, header), 3)
    assert read(memoryview(run.batch)).header.base_timestamp_ms == written_ms
    assert as_a_reader_sees(run) == left


def test_an_emptied_batch_has_no_runs() -> None:
    assert runs(samples.lying([], Header(base_offset=3, last_offset_delta=4)), 0) == []


def test_a_batch_without_identity_gives_runs_without_one() -> None:
    batch = samples.lying(samples.placed([Record(b"x", 1), Record(b"y", 2)], 10), Header(base_offset=10))
    (run,) = runs(batch, 11)
    made = read(memoryview(run.batch)).header
    assert (made.producer_id, made.producer_epoch, made.base_sequence) == (-1, -1, -1)


@given(samples.record_lists, samples.codecs)
def test_encoding_all_records_again_gives_the_same_section(content: list[Record], codec: Codec) -> None:
    header = Header(
        attributes=codec,
        last_offset_delta=len(content) - 1,
        base_timestamp_ms=content[0].timestamp_ms,
        max_timestamp_ms=max(record.timestamp_ms for record in content),
    )
    batch = samples.lying(samples.placed(content, 0), header)
    assert encode(list(entries(batch)), batch.header) == batch.view


def test_a_wrong_checksum_is_not_made_right() -> None:
    view = memoryview(bytearray(encode_batch([Record(b"paid", 0)])))
    view[-3] ^= 1
    with pytest.raises(UnreadableBatch, match="checksum is wrong"):
        runs(read(view), 0)


def test_offsets_that_do_not_rise_are_refused() -> None:
    twice = [Seen(1, 0, samples.rest_of(Record(b"x", 0)))] * 2
    with pytest.raises(UnreadableBatch, match="offset 1 comes after 1"):
        runs(samples.lying(twice, Header(last_offset_delta=1)), 0)


@given(st.binary(max_size=200), st.integers(-1, 50))
def test_a_section_of_garbage_is_refused_or_read_within_its_bounds(garbage: bytes, count: int) -> None:
    batch = read(memoryview(assemble(Header(record_count=count), garbage)))
    with suppress(UnreadableBatch):
        assert sum(len(entry.rest) for entry in entries(batch)) <= len(garbage)


def test_bytes_after_the_last_record_are_refused() -> None:
    section = varint(6) + b"\0\0\0" + samples.rest_of(Record(None, 0)) + b"more"
    batch = read(memoryview(assemble(Header(record_count=1), section)))
    with pytest.raises(UnreadableBatch, match="4 bytes follow its 1 records"):
        list(entries(batch))


@pytest.mark.parametrize("key", [None, b"fill"])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 10_000])
def test_a_batch_of_nulls_has_as_many_records_as_asked(count: int, key: bytes | None) -> None:
    batch = read(memoryview(null_batch(count, 1_700_000_000_000, key)))
    assert checksum_is_right(batch)
    nothing = Record(None, 1_700_000_000_000, key)
    assert samples.seen(entries(batch)) == samples.placed([nothing] * count, 0)


def test_a_million_nulls_fit_into_a_message() -> None:
    batch = null_batch(MOST_NULLS, 0)
    assert len(batch) < USUAL_MESSAGE_LIMIT_BYTES
    assert read(memoryview(batch)).header.record_count == MOST_NULLS


def test_stamping_one_batch_of_nulls_leaves_the_next_alone() -> None:
    first, untouched = null_batch(10, 0), bytes(null_batch(10, 0))
    stamp(memoryview(first), 5, 0, 0)
    assert null_batch(10, 0) == untouched


@pytest.mark.parametrize("count", [0, MOST_NULLS + 1])
def test_too_few_or_too_many_nulls_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="1 to 1000000"):
        null_batch(count, 0)
