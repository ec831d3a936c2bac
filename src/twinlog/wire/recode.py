"""Batches that cannot be copied as they are: taken apart into records and put together again.

Pure. The mirror needs it where compaction has thinned a batch (a broker takes no gaps inside one) and on
topics with LogAppendTime (a copy would show the producers' time). What a reader sees of a record stays:
offset, timestamp, key, value, headers; key to headers are not even read. The codec stays that of the
source. Records that are read alias the batch or what it was unpacked into, so they must not outlive it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from twinlog.wire.batches import (
    CODEC_BITS,
    Batch,
    Codec,
    Header,
    UnreadableBatch,
    assemble,
    checksum_is_right,
    next_sequence,
    records_section,
)
from twinlog.wire.codecs import compress, decompress
from twinlog.wire.compact import varint as unsigned
from twinlog.wire.records import varint

MOST_UNPACKED_BYTES = 256 * 1024 * 1024
MOST_NULLS = 1_000_000  # about 0.8 MB compressed: under the usual limit of a message, 1 MB

_MOST_VARINT_BYTES = 10
_ROW = 64  # deltas whose varints differ in their first byte only
_NO_FIELD = varint(-1)
_NO_HEADERS = varint(0)
# Deltas of offsets and lengths of records are mostly small and written once a record.
_SMALL = tuple(varint(number) for number in range(4096))


class Entry(NamedTuple):
    """A record: what depends on its batch, and the rest as bytes."""

    offset: int
    timestamp_ms: int
    attributes: int
    rest: memoryview  # key, value and headers, as they were written


class Run(NamedTuple):
    """Records at consecutive offsets as a batch that a broker accepts."""

    first_offset: int
    batch: bytearray
    record_count: int


def entries(batch: Batch, limit_bytes: int = MOST_UNPACKED_BYTES) -> Iterator[Entry]:
    """The records of a batch, with the offsets and timestamps that a reader sees."""
    header = batch.header
    data = decompress(header.codec, records_section(batch.view), limit_bytes)
    base_offset, base_ms = header.base_offset, header.base_timestamp_ms
    append_ms = header.max_timestamp_ms if header.is_log_append_time else None
    place = 0
    try:
        for _ in range(header.record_count):
            length, start = _read_varint(data, place)
            place = start + length
            if length < 0 or place > len(data):
                raise IndexError
            delta_ms, at = _read_varint(data, start + 1)
            delta, at = _read_varint(data, at)
            if at > place:
                raise IndexError
            timestamp_ms = base_ms + delta_ms if append_ms is None else append_ms
            yield Entry(base_offset + delta, timestamp_ms, data[start], data[at:place])
    except IndexError:
        raise _damaged(header, "a record does not end where it says") from None
    if place != len(data):
        raise _damaged(header, f"{len(data) - place} bytes follow its {header.record_count} records")


def encode(run: Sequence[Entry], source: Header) -> bytearray:
    """One batch of records at consecutive offsets, in the codec and with the identity of their source.

    It is no part of a transaction, has CreateTime and no delete horizon. The sequence is that of the
    first record, so the batch continues its producer's chain; the mirror stamps it if it has another.
    """
    base_ms = _base_timestamp_ms(run, source)
    parts: list[bytes | memoryview] = []
    for delta, (_, timestamp_ms, attributes, rest) in enumerate(run):
        start = bytes((attributes,)) + _varint(timestamp_ms - base_ms) + _varint(delta)
        parts += (_varint(len(start) + len(rest)), start, rest)
    sequence = source.base_sequence
    if source.is_idempotent:
        sequence = next_sequence(sequence, run[0].offset - source.base_offset)
    header = source._replace(
        attributes=source.attributes & CODEC_BITS,
        last_offset_delta=len(run) - 1,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max(entry.timestamp_ms for entry in run),
        base_sequence=sequence,
        record_count=len(run),
    )
    return assemble(header, compress(source.codec, b"".join(parts)))


def runs(batch: Batch, from_offset: int, limit_bytes: int = MOST_UNPACKED_BYTES) -> list[Run]:
    """The records from an offset on as batches that a broker accepts, one for each stretch without a gap."""
    if not checksum_is_right(batch):
        raise _damaged(batch.header, "its checksum is wrong")  # a new one would hide it for good
    stretches: list[list[Entry]] = []
    expected = None
    for entry in entries(batch, limit_bytes):
        if expected is not None and entry.offset < expected:
            raise _damaged(batch.header, f"offset {entry.offset} comes after {expected - 1}")
        if entry.offset >= from_offset:
            if entry.offset != expected or not stretches:
                stretches.append([])
            stretches[-1].append(entry)
        expected = entry.offset + 1
    return [Run(stretch[0].offset, encode(stretch, batch.header), len(stretch)) for stretch in stretches]


def null_batch(count: int, timestamp_ms: int, key: bytes | None = None) -> bytearray:
    """A batch of records without a value, to move a log's end a long way; the mirror stamps it.

    A compacted topic takes only records with a key.
    """
    if not 1 <= count <= MOST_NULLS:
        raise ValueError(f"a batch of nulls has 1 to {MOST_NULLS} records")
    header = Header(
        attributes=Codec.ZSTD,
        last_offset_delta=count - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        record_count=count,
    )
    return assemble(header, _nulls(count, key))


@lru_cache(maxsize=2)  # a long fill is many full batches and one shorter one
def _nulls(count: int, key: bytes | None) -> memoryview:
    no_attributes, no_delta_ms = b"\0", varint(0)
    head = no_attributes + no_delta_ms
    key_field = _NO_FIELD if key is None else varint(len(key)) + key
    tail = key_field + _NO_FIELD + _NO_HEADERS
    fixed_bytes = len(head) + len(tail)
    heads = [varint(fixed_bytes + delta_bytes) + head for delta_bytes in range(_MOST_VARINT_BYTES)]

    def one_by_one(deltas: range) -> Iterator[bytes]:
        return (heads[len(delta)] + delta + tail for delta in map(varint, deltas))

    rows = range(1, max(1, count // _ROW))
    begins = [[head + bytes((first,)) for first in range(0x80, 0x100, 2)] for head in heads]
    pieces = list(one_by_one(range(min(count, _ROW))))
    for row in rows:
        rest = unsigned(row)
        pieces.append((rest + tail).join([*begins[1 + len(rest)], b""]))
    pieces += one_by_one(range(_ROW * rows.stop, count))
    return compress(Codec.ZSTD, b"".join(pieces))


def _base_timestamp_ms(run: Sequence[Entry], source: Header) -> int:
    if source.is_log_append_time:
        return source.max_timestamp_ms  # every record has it, so all deltas become 0
    if source.has_delete_horizon:
        return run[0].timestamp_ms  # the source's is no record's time
    return source.base_timestamp_ms


def _read_varint(data: memoryview, place: int) -> tuple[int, int]:
    byte = data[place]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), place + 1
    number, shift = byte & 0x7F, 7
    for after in range(place + 1, place + _MOST_VARINT_BYTES):
        byte = data[after]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), after + 1
        shift += 7
    raise IndexError


def _varint(number: int) -> bytes:
    return _SMALL[number] if 0 <= number < len(_SMALL) else varint(number)


def _damaged(header: Header, what: str) -> UnreadableBatch:
    return UnreadableBatch(f"the batch at offset {header.base_offset} is damaged: {what}")
