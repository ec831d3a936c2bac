"""Record batches as they lie in a log (magic 2): read and stamped where they are, never copied.

Pure. The mirror splits what it fetched into batches and sends them on with another identity; `records`
and `recode` build batches of their own with `assemble`. Only the header is looked at: the records
section, compressed or not, is the same bytes before and after. The checksum (CRC32C) covers everything
from the attributes on, so base offset and leader epoch can change without a new one and nothing else can.
All of this runs once a batch at the full rate of the mirror: one unpacking, no copies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import crc32c

from twinlog.errors import KafkaError

HEADER_BYTES = 61
MAGIC = 2
NO_LEADER_EPOCH = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1

CODEC_BITS = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

_LENGTH_COUNTS_FROM = 12  # the length does not count the base offset and itself
_LEAST_LENGTH = HEADER_BYTES - _LENGTH_COUNTS_FROM
_LEADER_EPOCH_AT, _MAGIC_AT, _CHECKSUM_AT, _COVERED_AT, _IDENTITY_AT = 12, 16, 17, 21, 43
_LOW_ATTRIBUTES_AT = _COVERED_AT + 1  # the flags are in the low byte of the two
_HEADER = struct.Struct(">qiibIhiqqqhii")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_CHECKSUM = struct.Struct(">I")
_IDENTITY = struct.Struct(">qhi")  # producer id, producer epoch, base sequence
_CONTROL_KEY = struct.Struct(">hh")  # version, type
_LAST_SEQUENCE = 0x7FFFFFFF


class UnreadableBatch(KafkaError):
    """A batch that is damaged, or of a format that Twinlog does not read."""

    def __init__(self, what: str, *, code: str = "CORRUPT_MESSAGE", hint: str = "") -> None:
        # Only the caller knows the partition: it puts it into `where` on the way up.
        super().__init__(what, code=code, hint=hint or "is the log damaged? kafka-dump-log --deep-iteration")


class Codec(IntEnum):
    """How a records section is compressed, by Kafka's numbers."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class ControlType(IntEnum):
    """What a control batch says about its producer's transaction."""

    OTHER = -1
    ABORT = 0
    COMMIT = 1


class Header(NamedTuple):
    """The fixed part of a batch, in its order on the wire."""

    base_offset: int = 0
    length: int = 0
    leader_epoch: int = NO_LEADER_EPOCH
    magic: int = MAGIC
    checksum: int = 0
    attributes: int = 0
    last_offset_delta: int = 0
    base_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    record_count: int = 0

    @property
    def last_offset(self) -> int:
        """The last offset that the batch stands for, whether or not a record is left there."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def total_bytes(self) -> int:
        """The whole batch, header included."""
        return self.length + _LENGTH_COUNTS_FROM

    @property
    def codec(self) -> Codec:
        """How the records section is compressed."""
        number = self.attributes & CODEC_BITS
        if number > Codec.ZSTD:
            raise UnreadableBatch(f"the batch at offset {self.base_offset} has the unknown codec {number}")
        return Codec(number)

    @property
    def is_control(self) -> bool:
        """True for markers, which no consumer sees."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_transactional(self) -> bool:
        """True when the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_log_append_time(self) -> bool:
        """True when readers see the maximum timestamp for every record."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """True when the cleaner has put into the base timestamp when tombstones may go (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def is_thinned(self) -> bool:
        """True when compaction has taken records out, which a broker does not accept from a client."""
        return self.record_count != self.last_offset_delta + 1

    @property
    def is_idempotent(self) -> bool:
        """True when the batch carries a producer's identity."""
        return self.producer_id >= 0


@dataclass(slots=True)
class Batch:
    """One whole batch and the bytes that it is."""

    header: Header
    view: memoryview


def split(data: memoryview) -> Iterator[Batch]:
    """The whole batches in what a broker sent; a truncated one at the end is left out."""
    place, end = 0, len(data)
    while end - place >= HEADER_BYTES:
        header = Header._make(_HEADER.unpack_from(data, place))
        if header.magic != MAGIC or header.length < _LEAST_LENGTH:
            raise _unreadable(header.base_offset, header.length, header.magic)
        after = place + header.length + _LENGTH_COUNTS_FROM
        if after > end:
            return
        yield Batch(header, data[place:after])
        place = after
    # A message of an old format can be shorter than a header; it must not pass for a truncated batch.
    if end - place > _MAGIC_AT and data[place + _MAGIC_AT] != MAGIC:
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(data, place)
        raise _unreadable(base_offset, length, data[place + _MAGIC_AT])


def read(view: memoryview) -> Batch:
    """The one batch that the bytes are."""
    for batch in split(view):
        if batch.header.total_bytes == len(view):
            return batch
    raise UnreadableBatch(f"{len(view)} bytes are not one whole batch")


def stamp(view: memoryview, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
    """Make the batch one that a producer sends: no position, this identity, no transaction, new checksum.

    The delete horizon is cleared too: it is the active's cleaner's, and timestamps are right without it.
    """
    clear_position(view)
    view[_LOW_ATTRIBUTES_AT] &= ~(TRANSACTIONAL_BIT | DELETE_HORIZON_BIT) & 0xFF
    _IDENTITY.pack_into(view, _IDENTITY_AT, producer_id, producer_epoch, base_sequence)
    _CHECKSUM.pack_into(view, _CHECKSUM_AT, crc32c.crc32c(view[_COVERED_AT:]))


def clear_position(view: memoryview) -> None:
    """Take base offset and leader epoch away; identity and checksum stay as the producer made them."""
    _BASE_OFFSET.pack_into(view, 0, 0)
    _LEADER_EPOCH.pack_into(view, _LEADER_EPOCH_AT, NO_LEADER_EPOCH)


def checksum_is_right(batch: Batch) -> bool:
    """True when the bytes are those that the checksum was made of."""
    return crc32c.crc32c(batch.view[_COVERED_AT:]) == batch.header.checksum


def records_section(view: memoryview) -> memoryview:
    """The bytes after the header, as they are: compressed if the batch is."""
    return view[HEADER_BYTES:]


def control_type(batch: Batch) -> ControlType:
    """What a control batch says; OTHER also when the cleaner has taken its record out."""
    section = records_section(batch.view)
    if not batch.header.is_control or not section:
        return ControlType.OTHER
    try:
        place = _skip_varint(section, 0) + 1  # the length, then the record's attributes
        for _ in ("timestamp delta", "offset delta", "length of the key"):
            place = _skip_varint(section, place)
        kind = _CONTROL_KEY.unpack_from(section, place)[1]
    except (IndexError, struct.error):
        raise UnreadableBatch(
            f"the control batch at offset {batch.header.base_offset} has no readable key"
        ) from None
    return ControlType(kind) if kind in (ControlType.ABORT, ControlType.COMMIT) else ControlType.OTHER


def next_sequence(sequence: int, count: int) -> int:
    """The sequence after `count` records; it starts again at 0 after 2^31 - 1."""
    return (sequence + count) & _LAST_SEQUENCE


def assemble(header: Header, section: bytes | bytearray | memoryview) -> bytearray:
    """A batch of a header and its records section, without a position; length and checksum are computed."""
    batch = bytearray(HEADER_BYTES + len(section))
    view = memoryview(batch)
    view[HEADER_BYTES:] = section
    fixed = header._replace(
        base_offset=0,
        length=len(batch) - _LENGTH_COUNTS_FROM,
        leader_epoch=NO_LEADER_EPOCH,
        magic=MAGIC,
        checksum=0,
    )
    _HEADER.pack_into(batch, 0, *fixed)
    _CHECKSUM.pack_into(batch, _CHECKSUM_AT, crc32c.crc32c(view[_COVERED_AT:]))
    return batch


def _unreadable(base_offset: int, length: int, magic: int) -> UnreadableBatch:
    if magic == MAGIC:
        return UnreadableBatch(f"the batch at offset {base_offset} cannot have the length {length}")
    return UnreadableBatch(
        f"the records at offset {base_offset} are of message format {magic}, not {MAGIC}",
        code="UNSUPPORTED_FOR_MESSAGE_FORMAT",
        hint="were they written before Kafka 0.11? let a consumer and a producer copy the topic first",
    )


def _skip_varint(section: memoryview, place: int) -> int:
    while section[place] & 0x80:
        place += 1
    return place + 1
