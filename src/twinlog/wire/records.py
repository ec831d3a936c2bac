"""Records and batches: the bytes that a producer sends (record batch, magic 2).

Pure. `canary` writes with it, and tests read it back with Kafka's own readers. A batch starts at
offset 0 and carries no leader epoch: the broker that appends it fills in both. The header's layout
is in `batches`; the layout of a record is here, and `recode` reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twinlog.wire.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Header, assemble


@dataclass(frozen=True)
class Record:
    """One record, as a producer makes it."""

    value: bytes | None
    timestamp_ms: int
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def encode_batch(
    records: Sequence[Record],
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    first_sequence: int = NO_SEQUENCE,
) -> bytes:
    """One batch of the records, not compressed and not part of a transaction."""
    if not records:
        raise ValueError("a batch has at least one record")
    first_ms = records[0].timestamp_ms
    body = b"".join(_encode(record, delta, first_ms) for delta, record in enumerate(records))
    header = Header(
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=first_ms,
        max_timestamp_ms=max(record.timestamp_ms for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=first_sequence,
        record_count=len(records),
    )
    return bytes(assemble(header, body))


def varint(number: int) -> bytes:
    """A signed number in Kafka's zigzag form: small ones, of either sign, take one byte."""
    rest = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def _encode(record: Record, offset_delta: int, first_ms: int) -> bytes:
    attributes = b"\0"  # none are defined for a single record
    body = (
        attributes
        + varint(record.timestamp_ms - first_ms)
        + varint(offset_delta)
        + _field(record.key)
        + _field(record.value)
        + varint(len(record.headers))
        + b"".join(_field(name.encode()) + _field(value) for name, value in record.headers)
    )
    return varint(len(body)) + body


def _field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content
