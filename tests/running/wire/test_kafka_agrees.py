"""Kafka's own encoder, decoder, cleaner and broker-side check on the batches that we read and write.

One JVM, with Kafka's jars, answers all of them (`Batches.java` says how).
"""

from __future__ import annotations

import select
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire import samples
from tests.unit.wire.samples import Seen
from twinlog.machine import cache_directory
from twinlog.progress import Silent
from twinlog.sites.jars import ensure_jars
from twinlog.sites.java import find_java
from twinlog.wire.batches import (
    Batch,
    Codec,
    ControlType,
    checksum_is_right,
    clear_position,
    control_type,
    read,
    records_section,
    split,
    stamp,
)
from twinlog.wire.recode import MOST_NULLS, entries, null_batch, runs
from twinlog.wire.records import Record

SOURCE = Path(__file__).with_name("Batches.java")
TIMEOUT_S = 60  # an answer takes a millisecond; the rest is the start of the JVM and a busy machine
NOW_MS, RETENTION_MS = 1_700_000_000_000, 86_400_000
NO_IDENTITY = (-1, -1, -1)
# Several blocks of every codec, of which some do not get smaller.
LONG = [
    Record(f"order {number};".encode() * 40, NOW_MS + number, key=b"k%d" % number) for number in range(300)
]
LONG += [Record(bytes(number * number % 251 for number in range(100_000)), NOW_MS)]


class Read(NamedTuple):
    """A batch as Kafka reads it."""

    is_valid: bool
    base_offset: int
    last_offset: int
    leader_epoch: int
    codec: int
    is_transactional: bool
    is_control: bool
    is_log_append_time: bool
    has_delete_horizon: bool
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    records: tuple[Seen, ...]


class Kafka:
    """The JVM that answers."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def encode(
        self,
        content: Sequence[Record],
        codec: Codec,
        *,
        base_offset: int = 0,
        append_ms: int | None = None,
        identity: tuple[int, int, int] = NO_IDENTITY,
        transactional: bool = False,
        leader_epoch: int = 0,
    ) -> memoryview:
        """A batch of Kafka's making, in a buffer that can be written to."""
        texts = ";".join(_text(base_offset + delta, record) for delta, record in enumerate(content))
        place = (codec.name.lower(), base_offset, "-" if append_ms is None else append_ms)
        return self._bytes("encode", *place, *identity, str(transactional).lower(), leader_epoch, texts)

    def marker(self, kind: str, offset: int, producer_id: int, epoch: int) -> memoryview:
        """The batch that ends a transaction."""
        return self._bytes("mark", kind, offset, NOW_MS, producer_id, epoch)

    def clean(self, batches: memoryview, kept: Sequence[int]) -> memoryview:
        """What the cleaner leaves if only these offsets are to stay."""
        offsets = ",".join(map(str, kept)) or "-1"
        return self._bytes("clean", NOW_MS, RETENTION_MS, offsets, batches.hex())

    def decode(self, batches: memoryview | bytearray) -> list[Read]:
        """Batches as Kafka reads them."""
        return [_read(text) for text in self._ask("decode", batches.hex()).split("|")]

    def append(self, batch: memoryview | bytearray, offset: int, *, compacted: bool = False) -> memoryview:
        """A batch as a leader writes it into its log at an offset, after all checks."""
        return self._bytes("validate", offset, str(compacted).lower(), batch.hex())

    def _bytes(self, *words: object) -> memoryview:
        return memoryview(bytearray.fromhex(self._ask(*words)))

    def _ask(self, *words: object) -> str:
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        process.stdin.flush()
        assert select.select([process.stdout], [], [], TIMEOUT_S)[0], f"no answer to {words[0]}"
        kind, _, answer = process.stdout.readline().decode().rstrip("\n").partition(" ")
        assert kind == "ok", f"{words[0]}: {answer or 'the JVM has ended'}"
        return answer


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """The one JVM of this module."""
    class_path = ":".join(map(str, ensure_jars(cache_directory(), Silent())))
    command = [str(find_java().binary), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", class_path, str(SOURCE)]
    errors = tmp_path_factory.mktemp("kafka") / "stderr"
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        yield Kafka(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(TIMEOUT_S)


identities = st.tuples(samples.producer_ids, samples.epochs, samples.sequences)
bases = st.integers(0, 2**40)


@given(
    samples.record_lists, samples.codecs, bases, identities, st.booleans(), st.none() | st.integers(0, 2**42)
)
def test_a_batch_that_kafka_wrote_is_read_as_kafka_reads_it(
    kafka: Kafka,
    content: list[Record],
    codec: Codec,
    base: int,
    identity: tuple[int, int, int],
    transactional: bool,
    append_ms: int | None,
) -> None:
    view = kafka.encode(
        content, codec, base_offset=base, identity=identity, transactional=transactional, append_ms=append_ms
    )
    batch = read(view)
    assert [our_reading(batch)] == kafka.decode(view)
    assert [seen.rest for seen in our_reading(batch).records] == [
        samples.rest_of(record) for record in content
    ]


@given(samples.record_lists, samples.codecs, bases, identities, st.booleans())
def test_a_stamped_batch_is_appended_as_it_is(
    kafka: Kafka,
    content: list[Record],
    codec: Codec,
    base: int,
    identity: tuple[int, int, int],
    transactional: bool,
) -> None:
    view = kafka.encode(
        content, codec, base_offset=base, identity=(7, 0, 0), transactional=transactional, leader_epoch=9
    )
    before = our_reading(read(view))
    section = bytes(records_section(view))
    stamp(view, *identity)
    after = appended_as_sent(kafka, view, base)
    assert records_section(view) == section
    assert after == before._replace(
        leader_epoch=0,
        is_transactional=False,
        producer_id=identity[0],
        producer_epoch=identity[1],
        base_sequence=identity[2],
    )


@given(samples.record_lists, samples.codecs, bases, identities)
def test_a_batch_without_its_position_is_appended_under_its_producers_name(
    kafka: Kafka, content: list[Record], codec: Codec, base: int, identity: tuple[int, int, int]
) -> None:
    view = kafka.encode(content, codec, base_offset=base, identity=identity, leader_epoch=9)
    before = our_reading(read(view))
    clear_position(view)
    assert appended_as_sent(kafka, view, base) == before._replace(leader_epoch=0)


@given(st.data(), samples.record_lists, samples.codecs, bases, st.none() | st.integers(0, 2**42))
def test_what_the_cleaner_left_is_appended_at_the_same_offsets(
    kafka: Kafka,
    data: st.DataObject,
    content: list[Record],
    codec: Codec,
    base: int,
    append_ms: int | None,
) -> None:
    whole = kafka.encode(content, codec, base_offset=base, identity=(7, 0, 0), append_ms=append_ms)
    kept = sorted(data.draw(st.sets(st.sampled_from(range(base, base + len(content))))))
    cleaned = kafka.clean(whole, kept)
    (batch,) = split(cleaned)
    (before,) = kafka.decode(cleaned)
    assert our_reading(batch) == before
    assert [seen.offset for seen in before.records] == kept
    twin: list[Seen] = []
    for run in runs(batch, base):
        after = appended_as_sent(kafka, memoryview(run.batch), run.first_offset)
        assert not (after.has_delete_horizon or after.is_log_append_time)
        assert after.codec == codec
        twin += after.records
    assert twin == list(before.records)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("append_ms", [None, NOW_MS + 5])
def test_a_batch_of_many_blocks_passes_both_ways(kafka: Kafka, codec: Codec, append_ms: int | None) -> None:
    view = kafka.encode(LONG, codec, base_offset=50, append_ms=append_ms)
    (before,) = kafka.decode(view)
    assert our_reading(read(view)) == before
    (run,) = runs(read(view), 50)
    assert appended_as_sent(kafka, memoryview(run.batch), 50).records == before.records


def test_a_tombstone_with_a_delete_horizon_keeps_its_time(kafka: Kafka) -> None:
    content = [Record(None, NOW_MS - 500, key=b"gone"), Record(b"1", NOW_MS - 400, key=b"kept")]
    cleaned = kafka.clean(kafka.encode(content, Codec.LZ4, base_offset=10), [10, 11])
    batch = read(cleaned)
    assert batch.header.has_delete_horizon
    assert batch.header.base_timestamp_ms == NOW_MS + RETENTION_MS
    (run,) = runs(batch, 10)
    wanted = tuple(samples.placed(content, 10))
    assert appended_as_sent(kafka, memoryview(run.batch), 10).records == wanted
    stamp(cleaned, 7, 0, 0)
    stamped = appended_as_sent(kafka, cleaned, 10)
    assert stamped.records == wanted
    assert not stamped.has_delete_horizon


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
def test_a_marker_that_kafka_wrote_is_told_apart_before_and_after_cleaning(
    kafka: Kafka, kind: ControlType
) -> None:
    view = kafka.marker(kind.name, 70, 2**40, 3)
    cleaned, emptied = kafka.clean(view, [70]), kafka.clean(view, [])
    assert read(cleaned).header.has_delete_horizon
    assert [control_type(read(each)) for each in (view, cleaned, emptied)] == [kind, kind, ControlType.OTHER]
    assert all(our_reading(read(each)) == kafka.decode(each)[0] for each in (view, cleaned, emptied))


@pytest.mark.parametrize("key", [None, b"fill"])
@pytest.mark.parametrize("count", [1, 1000])
def test_a_batch_of_nulls_is_appended_as_it_is(kafka: Kafka, count: int, key: bytes | None) -> None:
    batch = memoryview(null_batch(count, NOW_MS, key))
    after = appended_as_sent(kafka, batch, 10**9, compacted=key is not None)
    assert after.records == tuple(samples.placed([Record(None, NOW_MS, key)] * count, 10**9))


def test_a_million_nulls_are_accepted(kafka: Kafka) -> None:
    written = read(kafka.append(null_batch(MOST_NULLS, NOW_MS), 10**9))
    assert (written.header.base_offset, written.header.next_offset) == (10**9, 10**9 + MOST_NULLS)


def appended_as_sent(kafka: Kafka, sent: memoryview, offset: int, *, compacted: bool = False) -> Read:
    """What Kafka reads of a batch after a leader has appended it, in place and unchanged."""
    (read_as_sent,) = kafka.decode(sent)
    assert read_as_sent.is_valid
    written = kafka.append(sent, offset, compacted=compacted)
    # A leader that rebuilds a batch, because its deltas are not 0, 1, 2, …, would compress it again.
    assert records_section(written) == records_section(sent)
    (after,) = kafka.decode(written)
    assert after.is_valid
    assert [seen.offset for seen in after.records] == list(range(offset, offset + after.record_count))
    return after


def our_reading(batch: Batch) -> Read:
    """A batch as we read it, in Kafka's terms."""
    header = batch.header
    return Read(
        is_valid=checksum_is_right(batch),
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.leader_epoch,
        codec=header.codec,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        is_log_append_time=header.is_log_append_time,
        has_delete_horizon=header.has_delete_horizon,
        max_timestamp_ms=header.max_timestamp_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=header.record_count,
        records=tuple(samples.seen(entries(batch))),
    )


def _text(offset: int, record: Record) -> str:
    headers = "&".join(f"{name.encode().hex()}={_hex(value)}" for name, value in record.headers)
    return f"{offset},{record.timestamp_ms},{_hex(record.key)},{_hex(record.value)},{headers}"


def _hex(content: bytes | None) -> str:
    return "-" if content is None else content.hex()


def _read(text: str) -> Read:
    fields, *records = text.split(";")
    values = [word == "true" if word in ("true", "false") else int(word) for word in fields.split(",")]
    return Read._make((*values, tuple(map(_seen, records))))


def _seen(text: str) -> Seen:
    offset, timestamp_ms, key, value, headers = text.split(",")
    pairs = [pair.split("=") for pair in headers.split("&") if pair]
    named = tuple((bytes.fromhex(name).decode(), _content(content)) for name, content in pairs)
    record = Record(_content(value), int(timestamp_ms), _content(key), named)
    return Seen(int(offset), int(timestamp_ms), samples.rest_of(record))


def _content(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text)
