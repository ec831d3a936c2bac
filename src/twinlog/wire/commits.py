"""When groups committed what: the newest records of Kafka's own topic of offsets.

Kafka tells the last offset that a group committed and not when. The topic in which it keeps them does,
and as only closed segments are compacted, the commits before the last are usually still there. `recent`
reads the end of that topic's partitions; older commits are missing from it, never wrong.
Needs the right to read that topic: administration has it, and no user of the file.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass

from twinlog.wire import compact, excerpts, offsets, topics
from twinlog.wire.batches import split
from twinlog.wire.cluster import Cluster
from twinlog.wire.contents import contents
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.recode import entries

TOPIC = "__consumer_offsets"
_TAIL_RECORDS = 4000  # of each partition; a commit takes about 150 bytes
_TAIL_BYTES = 1024 * 1024
_KEPT = 10  # newest commits of each place: what the status of a group is judged by
_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_OFFSET_KEYS = (0, 1)  # versions of keys that are about an offset; others are about groups
# Of values: from which version on the leader's epoch is in it, and lengths are compact.
_WITH_EPOCH, _COMPACT = 3, 4


@dataclass(frozen=True)
class Commit:
    """One commit of a group for one partition."""

    time_ms: int
    offset: int


Place = tuple[str, TopicPartition]  # group, partition


def recent(cluster: Cluster) -> dict[Place, tuple[Commit, ...]]:
    """The newest commits of every group, oldest first; nothing where the topic does not exist yet."""
    found = topics.describe(cluster, [TOPIC])
    places = [(TOPIC, part.index) for topic in found for part in topic.partitions if part.has_leader]
    if not places:
        return {}
    starts, ends = offsets.start_offsets(cluster, places), offsets.end_offsets(cluster, places)
    left = {
        place: max(starts[place], ends[place] - _TAIL_RECORDS)
        for place in places
        if starts[place] < ends[place]
    }
    seen: dict[Place, list[Commit]] = defaultdict(list)
    while left:
        fetched = excerpts.fetch(cluster, left, partition_bytes=_TAIL_BYTES)
        ahead: dict[TopicPartition, int] = {}
        for place, part in fetched.items():
            at = left[place]
            for batch in split(part.records):
                at = batch.header.next_offset
                if batch.header.is_control:
                    continue
                for entry in entries(batch):
                    _note(seen, bytes(entry.rest))
            if left[place] < at < ends[place]:
                ahead[place] = at
        left = ahead
    return {place: tuple(commits[-_KEPT:]) for place, commits in seen.items()}


def read_commit(rest: bytes) -> tuple[Place, Commit | None] | None:
    """The commit that a record of the topic says, or that one was taken back; None for what is neither."""
    content = contents(rest)
    if content.key is None:
        return None
    try:
        key = _Reader(content.key)
        if key.int16() not in _OFFSET_KEYS:
            return None
        place = (key.text(), (key.text(), key.int32()))
        if content.value is None:
            return place, None
        value = _Reader(content.value)
        version, offset = value.int16(), value.int64()
        if version >= _WITH_EPOCH:
            value.int32()
        _ = value.compact_text() if version >= _COMPACT else value.text()  # what the member wrote beside it
        return place, Commit(value.int64(), offset)
    except (struct.error, UnicodeDecodeError, IndexError, ValueError):
        return None  # a form that is newer than this


def _note(seen: dict[Place, list[Commit]], rest: bytes) -> None:
    told = read_commit(rest)
    if told is None:
        return
    place, commit = told
    if commit is None:
        seen.pop(
            place, None
        )  # what a group did before it was deleted says nothing of one that was made since
    else:
        seen[place].append(commit)


class _Reader:
    """Reads the fields of a key or a value one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def text(self) -> str:
        size = max(0, self.int16())
        start, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise struct.error("a text that is cut off")
        return self._data[start : self._at].decode()

    def compact_text(self) -> str:
        content, self._at = compact.read_text(memoryview(self._data), self._at)
        return content

    def _number(self, form: struct.Struct) -> int:
        (number,) = form.unpack_from(self._data, self._at)
        self._at += form.size
        return int(number)
