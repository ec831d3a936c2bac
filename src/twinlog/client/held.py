"""Records that a consumer has read and may not hand out yet. Pure.

A Consumer with read="twin" puts in what it read and tells how far the standby has been seen to come;
what is covered comes out, each partition's records in their order. `confirm` is for watermarks after
which the role was read and found unchanged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping

from twinlog.wire.offsets import TopicPartition
from twinlog.wire.received import Received


class Held:
    """What waits for the standby, and what is free."""

    def __init__(self) -> None:
        self._free: list[Received] = []
        self._waiting: dict[TopicPartition, deque[Received]] = {}
        self._confirmed: dict[TopicPartition, int] = {}
        self.size_bytes = 0  # of what waits

    @property
    def places(self) -> tuple[TopicPartition, ...]:
        """The partitions with records that wait."""
        return tuple(self._waiting)

    def put(self, records: Iterable[Received]) -> None:
        """Take in what was read."""
        for record in records:
            place = (record.topic, record.partition)
            if place not in self._waiting and record.offset < self._confirmed.get(place, 0):
                self._free.append(record)
            else:
                self._waiting.setdefault(place, deque()).append(record)
                self.size_bytes += _size_bytes(record)

    def would_free(self, watermarks: Mapping[TopicPartition, int]) -> bool:
        """True if a record could go were these watermarks confirmed."""
        return any(
            place in watermarks and waiting[0].offset < watermarks[place]
            for place, waiting in self._waiting.items()
        )

    def confirm(self, watermarks: Mapping[TopicPartition, int]) -> None:
        """Free what the standby has: all below its watermarks."""
        for place, watermark in watermarks.items():
            self._confirmed[place] = max(watermark, self._confirmed.get(place, 0))
            waiting = self._waiting.get(place)
            while waiting and waiting[0].offset < watermark:
                record = waiting.popleft()
                self.size_bytes -= _size_bytes(record)
                self._free.append(record)
            if not waiting:
                self._waiting.pop(place, None)

    def take(self) -> list[Received]:
        """All records that are free."""
        taken, self._free = self._free, []
        return taken

    def drop(self, places: Collection[TopicPartition]) -> None:
        """Forget records of partitions that others read now."""
        gone = set(places)
        for place in gone & self._waiting.keys():
            self.size_bytes -= sum(map(_size_bytes, self._waiting.pop(place)))
        self._free = [one for one in self._free if one[:2] not in gone]


def _size_bytes(record: Received) -> int:
    return 100 + len(record.key or b"") + len(record.value or b"")
