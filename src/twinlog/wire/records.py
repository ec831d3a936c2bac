"""Records and batches: the bytes that a producer sends (record batch, magic 2).

Pure. `canary` writes with it, and tests read it back with Kafka's own readers. A batch starts at
offset 0 and carries no leader epoch: the broker that appends it fills in both, and neither is
covered by the checksum (CRC32C from the attributes to the end).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import crc32c

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1

_MAGIC = 2
_NO_LEADER_EPOCH = -1
# Base offset, length, leader epoch, magic, checksum; then what the checksum covers: attributes,
# last offset delta, first and last timestamp, producer id, epoch and sequence, number of records.
_HEAD = struct.Struct(">qiibI")
_COVERED = struct.Struct(">hiqqqhii")
_LENGTH_COUNTS_FROM = 12  # the length does not count the base offset and itself


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
    covered = (
        _COVERED.pack(
            0,
            len(records) - 1,
            first_ms,
            max(record.timestamp_ms for record in records),
            producer_id,
            producer_epoch,
            first_sequence,
            len(records),
        )
        + body
    )
    length = _HEAD.size + len(covered) - _LENGTH_COUNTS_FROM
    return _HEAD.pack(0, length, _NO_LEADER_EPOCH, _MAGIC, crc32c.crc32c(covered)) + covered


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
