"""What a replica's directory holds, and what of it goes when its log is cut at an offset. Pure.

`cutting` lists and reads the files and then does what is planned here. A log is a row of segments,
each named after its first offset; beside a segment lie indexes, which Kafka makes anew for a
segment that has none, and snapshots of the producers' state, each named after the offset up to which
it knows. A batch is kept or goes whole: offsets can be had again from the active, half a batch is none.
So is a transaction: without its marker it would be open for ever, and hold readers back.
The batches that must go are the only sign that a cut is not finished, so they go last.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import crc32c

from twinlog.wire.batches import CONTROL_BIT, HEADER_BYTES, MAGIC, TRANSACTIONAL_BIT
from twinlog.wire.offsets import TopicPartition

_PLACE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>[0-9]+)(\.[0-9a-f]{32}-future)?")
_FILE = re.compile(r"(?P<base>[0-9]{20})\.(?P<kind>log|index|timeindex|txnindex|snapshot)")
_BEING_CLEANED = (".cleaned", ".swap")
_INDEXES = ("index", "timeindex", "txnindex")
# Base offset, length, magic, attributes, last offset delta, producer id.
_HEAD = struct.Struct(">qi4xb4xhi16xq")
_LENGTH_COUNTS_FROM = 12
NO_CUT = 2**63 - 1  # an offset that no log reaches
_SNAPSHOT = struct.Struct(">hIi")  # version, checksum of what follows it, number of producers
_SNAPSHOT_VERSION, _COVERED_AT = 1, 6
_PRODUCER = struct.Struct(">q30xq")  # its id, and the first offset of its open transaction


class Segment(NamedTuple):
    """A segment's file: its first offset, its size, and how to read it: `read(position, length)`."""

    base: int
    size: int
    read: Callable[[int, int], bytes]


class Head(NamedTuple):
    """What a batch is, as far as it matters here, and where in its segment it ends."""

    next_offset: int
    end: int
    attributes: int
    producer_id: int


class Kept(NamedTuple):
    """What stays of the segment in which the cut falls: the offset behind it, and its bytes."""

    end: int
    bytes: int
    reached: bool  # a batch at or above the cut follows; else the log ends here, torn perhaps


@dataclass(frozen=True)
class Replica:
    """The files of one replica and their sizes, and what the disk's checkpoints say of it."""

    place: TopicPartition
    sizes: Mapping[str, int] = field(hash=False)
    start_checkpoint: int = 0
    was_cleaned: bool = False  # the cleaner has a position in it

    @property
    def segments(self) -> list[int]:
        """The first offsets of its segments, in order."""
        return sorted(base for base, kind in map(_parsed, self.sizes) if kind == "log")

    @property
    def start(self) -> int:
        """Where its log starts."""
        return max(self.start_checkpoint, min(self.segments, default=0))

    @property
    def is_compacted(self) -> bool:
        """True if the cleaner has worked on it, or was at it."""
        return self.was_cleaned or any(name.endswith(_BEING_CLEANED) for name in self.sizes)


@dataclass(frozen=True)
class Cut:
    """What is to be done to one replica, in this order."""

    place: TopicPartition
    end: int  # where its log will end, for Kafka's checkpoints too
    indexes: tuple[str, ...]  # of the last segment that stays: Kafka then reads that segment anew
    snapshots: tuple[str, ...]
    segments: tuple[str, ...]  # from the last one down, so that the log has no hole at any moment
    shorten: tuple[str, int]  # the last segment that stays, and to how many bytes
    bytes: int  # of records that go


def place_of(directory: str) -> TopicPartition | None:
    """The partition whose replica a directory is, also one on its way to another disk; None for others."""
    found = _PLACE.fullmatch(directory)
    return (found["topic"], int(found["partition"])) if found else None


def why_not(replica: Replica, point: int) -> str:
    """Why a replica cannot be cut at an offset and has to be rebuilt; empty if it can be."""
    if replica.start > point:
        return f"its log starts at offset {replica.start}"
    # The cleaner drops a record for the sake of a newer one of its key, as far as the last segment.
    # If the newer one goes, its key is lost here although the active has it, and no copying mends that.
    if replica.is_compacted and replica.start < point < max(replica.segments, default=0):
        return f"it may have been compacted beyond offset {point}"
    return ""


def last_segment(replica: Replica, point: int) -> int:
    """The segment in which the cut falls; one that begins there stays, empty."""
    segments = replica.segments
    return max((base for base in segments if base <= point), default=segments[0])


def file_name(base: int, kind: str = "log") -> str:
    """The name of a segment's file."""
    return f"{base:020d}.{kind}"


def heads(segment: Segment) -> Iterator[Head]:
    """Every batch of a segment up to what is no whole one: a crash tore it, and Kafka drops the rest."""
    at = 0
    while at + HEADER_BYTES <= segment.size:
        offset, length, magic, attributes, delta, producer_id = _HEAD.unpack(segment.read(at, _HEAD.size))
        end = at + length + _LENGTH_COUNTS_FROM
        if magic != MAGIC or end < at + HEADER_BYTES or end > segment.size:
            return
        yield Head(offset + delta + 1, end, attributes, producer_id)
        at = end


def find_cut(segment: Segment, point: int) -> Kept:
    """Go through a segment's batches up to the first that reaches the cut."""
    kept = Kept(segment.base, 0, reached=False)
    for head in heads(segment):
        if head.next_offset > point:
            return kept._replace(reached=True)
        kept = Kept(head.next_offset, head.end, reached=False)
    return kept


def last_settled(segments: Sequence[Segment], opened: Collection[int], point: int) -> int | None:
    """The last offset up to a point at which no transaction is open; None if one is everywhere.

    The segments follow each other; `opened` are the producers whose transactions reach into the first.
    """
    inside = set(opened)
    settled = None if inside else segments[0].base
    for segment in segments:
        for head in heads(segment):
            if head.next_offset > point:
                return settled
            if head.attributes & CONTROL_BIT:
                inside.discard(head.producer_id)
            elif head.attributes & TRANSACTIONAL_BIT:
                inside.add(head.producer_id)
            if not inside:
                settled = head.next_offset
    return settled


def opened_in(snapshot: bytes) -> frozenset[int] | None:
    """The producers whose transactions are open, by a snapshot; None if it cannot be read."""
    try:
        version, checksum, count = _SNAPSHOT.unpack_from(snapshot)
        found = [_PRODUCER.unpack_from(snapshot, _SNAPSHOT.size + n * _PRODUCER.size) for n in range(count)]
    except struct.error:
        return None
    if version != _SNAPSHOT_VERSION or crc32c.crc32c(snapshot[_COVERED_AT:]) != checksum:
        return None
    return frozenset(producer_id for producer_id, first_offset in found if first_offset >= 0)


def plan(replica: Replica, last: int, kept: Kept) -> Cut | None:
    """What is to be done so that nothing at or above the cut is left; None if nothing is."""
    above = sorted((base for base in replica.segments if base > last), reverse=True)
    if not above and not kept.reached:
        return None
    going = [file_name(base, kind) for base in above for kind in (*_INDEXES, "log")]
    shortened = file_name(last)
    return Cut(
        place=replica.place,
        end=kept.end,
        indexes=tuple(name for kind in _INDEXES if (name := file_name(last, kind)) in replica.sizes),
        snapshots=tuple(
            name
            for name in sorted(replica.sizes)
            if (parsed := _parsed(name))[1] == "snapshot" and parsed[0] > kept.end
        ),
        segments=tuple(name for name in going if name in replica.sizes),
        shorten=(shortened, kept.bytes),
        bytes=replica.sizes[shortened]
        - kept.bytes
        + sum(replica.sizes[name] for name in going if name in replica.sizes and name.endswith(".log")),
    )


# Checkpoints: a version, the number of lines that follow, the lines.


def offsets_in(text: str) -> dict[TopicPartition, int]:
    """The offsets that a checkpoint of a disk has for its partitions."""
    found = {}
    for line in text.splitlines()[2:]:
        topic, partition, offset = line.split()
        found[(topic, int(partition))] = int(offset)
    return found


def lowered(text: str, ends: Mapping[TopicPartition, int]) -> str:
    """A checkpoint of a disk in which no cut partition is past its end."""
    found = offsets_in(text)
    lines = [
        f"{place[0]} {place[1]} {min(offset, ends.get(place, offset))}" for place, offset in found.items()
    ]
    return _checkpoint(text, lines)


def epochs_before(text: str, end: int) -> str:
    """A replica's leader epochs without those that began at its end or later."""
    lines = text.splitlines()[2:]
    return _checkpoint(text, [line for line in lines if int(line.split()[1]) < end])


def _checkpoint(text: str, lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in (*text.splitlines()[:1], len(lines), *lines)) if text else text


def _parsed(name: str) -> tuple[int, str]:
    found = _FILE.fullmatch(name)
    return (int(found["base"]), found["kind"]) if found else (-1, "")
