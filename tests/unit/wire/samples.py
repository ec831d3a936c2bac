"""Records and batches that tests make up, and what a reader should see of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from twinlog.wire.batches import Batch, Codec, Header, assemble, read
from twinlog.wire.codecs import compress
from twinlog.wire.recode import Entry
from twinlog.wire.records import Record, varint

# Few and short, because drawing them is what tests spend their time on.
contents = st.none() | st.binary(max_size=80)
records = st.builds(
    Record,
    value=contents,
    timestamp_ms=st.integers(0, 2**42),
    key=contents,
    headers=st.just(()) | st.tuples(st.tuples(st.text(max_size=3), contents)),
)
record_lists = st.lists(records, min_size=1, max_size=6)
codecs = st.sampled_from(Codec)
offsets = st.integers(0, 2**62)
producer_ids = st.integers(0, 2**62)
epochs = st.integers(0, 2**15 - 1)
sequences = st.integers(0, 2**31 - 1)


class Seen(NamedTuple):
    """What a reader sees of a record."""

    offset: int
    timestamp_ms: int
    rest: bytes


def rest_of(record: Record) -> bytes:
    """Key, value and headers, as they are written."""
    headers = b"".join(_field(name.encode()) + _field(value) for name, value in record.headers)
    return _field(record.key) + _field(record.value) + varint(len(record.headers)) + headers


def _field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def placed(content: Sequence[Record], base_offset: int) -> list[Seen]:
    """The records at consecutive offsets."""
    return [
        Seen(base_offset + delta, record.timestamp_ms, rest_of(record))
        for delta, record in enumerate(content)
    ]


def seen(entries: Iterable[Entry]) -> list[Seen]:
    """What was read, apart from the bytes that it was read from."""
    return [Seen(entry.offset, entry.timestamp_ms, bytes(entry.rest)) for entry in entries]


def lying(content: Sequence[Seen], header: Header) -> Batch:
    """A batch as it lies in a log: at its offset, possibly thinned, with the header's flags and identity."""
    parts = []
    for offset, timestamp_ms, rest in content:
        deltas = varint(timestamp_ms - header.base_timestamp_ms) + varint(offset - header.base_offset)
        parts.append(varint(1 + len(deltas) + len(rest)) + b"\0" + deltas + rest)
    section = compress(header.codec, b"".join(parts))
    view = memoryview(assemble(header._replace(record_count=len(content)), section))
    view[:8] = header.base_offset.to_bytes(8, "big")
    view[12:16] = header.leader_epoch.to_bytes(4, "big", signed=True)
    return read(view)
