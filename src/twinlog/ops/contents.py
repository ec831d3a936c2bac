"""What topics hold, as commands show it: offsets, records, bytes on disk. Reads only.

For `topic offsets`, `topic size` and whoever deletes; `catalogue` has the topics themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from twinlog.ops.catalogue import places_of
from twinlog.wire import logdirs, offsets
from twinlog.wire.cluster import Cluster
from twinlog.wire.logdirs import LogDir
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.topics import TopicState


@dataclass(frozen=True)
class OffsetRow:
    """What one partition holds. `records` counts offsets: markers and compacted records take some too."""

    topic: str
    partition: int
    start: int
    end: int
    last_stable: int

    @property
    def records(self) -> int:
        """How many offsets are kept."""
        return self.end - self.start


@dataclass(frozen=True)
class SizeRow:
    """What a topic takes on disk."""

    topic: str
    partitions: int
    size_bytes: int  # one copy of each partition: the largest
    with_copies_bytes: int
    largest_partition: int | None
    largest_bytes: int


def offset_rows(cluster: Cluster, found: Sequence[TopicState]) -> list[OffsetRow]:
    """What every partition of topics holds; a partition without a leader raises."""
    places = places_of(found)
    starts = offsets.start_offsets(cluster, places)
    ends = offsets.end_offsets(cluster, places)
    stable = offsets.last_stable_offsets(cluster, places)
    return [OffsetRow(*place, starts[place], ends[place], stable[place]) for place in places]


def size_rows(dirs: Sequence[LogDir], found: Sequence[TopicState]) -> list[SizeRow]:
    """What topics take, from what every disk of every broker holds."""
    copies: dict[TopicPartition, list[int]] = defaultdict(list)
    for each in dirs:
        for place, size_bytes in each.size_bytes.items():
            copies[place].append(size_bytes)
    told = []
    for topic in found:
        sizes = {part.index: copies.get((topic.name, part.index), [0]) for part in topic.partitions}
        largest = max(sizes, key=lambda index: max(sizes[index]), default=None)
        told.append(
            SizeRow(
                topic.name,
                len(sizes),
                sum(max(each) for each in sizes.values()),
                sum(sum(each) for each in sizes.values()),
                largest,
                max(sizes[largest]) if largest is not None else 0,
            )
        )
    return told


def sizes(cluster: Cluster, found: Sequence[TopicState]) -> list[SizeRow]:
    """What topics take, asked of every live broker."""
    return size_rows(logdirs.describe(cluster), found)
