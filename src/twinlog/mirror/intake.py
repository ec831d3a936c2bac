"""Which partitions a reader fetches now, and how much of them waits in memory. Pure.

A partition whose twin has enough waiting is full: it is left out until half of that was sent. The
more partitions there are, the less is enough for each; and a fetch can bring more than was asked for,
so from some point on nothing is fetched at all. While a partition is full a fetch waits only briefly
for the others: their silence must not hold up the one that has more to give.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinlog.mirror.track import TopicPartition, Track, Work
from twinlog.mirror.twin import Twin

ENOUGH_BYTES = 8 << 20  # waiting in memory for one partition, where there are few
LEAST_BYTES = 256 << 10  # the same where there are many
SHARED_BYTES = 128 << 20  # what is shared out among them
MOST_BYTES = 256 << 20
IDLE_MS = 250
FULL_MS = 20  # half of what is enough for a partition lasts its writer longer


class Intake:
    """The partitions of one reader."""

    def __init__(self) -> None:
        self._works: dict[TopicPartition, Work] = {}
        self._full: set[TopicPartition] = set()

    def add(self, track: Track, twin: Twin) -> None:
        """Fetch a partition for this twin."""
        self._works[track.key] = (track, twin)
        self._full.discard(track.key)

    def remove(self, key: TopicPartition) -> None:
        """Fetch a partition no more."""
        del self._works[key]
        self._full.discard(key)

    def __getitem__(self, key: TopicPartition) -> Work:
        return self._works[key]

    def __iter__(self) -> Iterator[Work]:
        return iter(self._works.values())

    @property
    def has_room(self) -> bool:
        """False while all together have too much in memory."""
        return sum(twin.queued_bytes for track, twin in self if track.twin is twin) < MOST_BYTES

    @property
    def patience_ms(self) -> int:
        """How long a fetch, or anything else, may wait for something new."""
        return FULL_MS if self._full else IDLE_MS

    def is_full(self, key: TopicPartition) -> bool:
        """True if a partition has enough; then it is to be left out until `drained` names it."""
        _, twin = self._works[key]
        if twin.queued_bytes < self._enough_bytes:
            return False
        self._full.add(key)
        return True

    def drained(self) -> list[Work]:
        """What was full and is no longer: to be fetched again, or its twin is not the track's any more."""
        found = []
        for key in list(self._full):
            track, twin = self._works[key]
            if track.twin is not twin or twin.queued_bytes < self._enough_bytes // 2:
                self._full.discard(key)
                found.append((track, twin))
        return found

    @property
    def _enough_bytes(self) -> int:
        return max(LEAST_BYTES, min(ENOUGH_BYTES, SHARED_BYTES // max(1, len(self._works))))
