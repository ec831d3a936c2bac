"""Moves of a consumer's position until they are known to hold. Pure.

librdkafka takes a move at once. But in a partition that was just assigned it may still be asking where to
begin, and the answer then undoes the move. So a Receiver notes each move here, repeats it every second
until the partition gives a record, and once more if that record is not the one that was wanted. The
second answer counts: offsets have gaps where records were compacted away or transactions ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twinlog.wire.offsets import TopicPartition

AGAIN_S = 1.0


class Seeking:
    """The moves that nobody is sure of yet."""

    def __init__(self) -> None:
        self._wanted: dict[TopicPartition, int] = {}
        self._again_at: dict[TopicPartition, float] = {}
        self._repeated: set[TopicPartition] = set()

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def note(self, positions: Mapping[TopicPartition, int], now: float) -> None:
        """These moves were asked for."""
        self._wanted.update(positions)
        self._again_at.update(dict.fromkeys(positions, now + AGAIN_S))
        self._repeated.difference_update(positions)

    def forget(self, places: Iterable[TopicPartition]) -> None:
        """These partitions are not ours any more, or their moves hold."""
        for place in places:
            self._wanted.pop(place, None)
            self._again_at.pop(place, None)
            self._repeated.discard(place)

    def due(self, now: float) -> dict[TopicPartition, int]:
        """The moves that are to be repeated now, because nothing has come yet."""
        due = [place for place, at in self._again_at.items() if at <= now]
        self._again_at.update(dict.fromkeys(due, now + AGAIN_S))
        return {place: self._wanted[place] for place in due}

    def judge(self, firsts: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Take in the first offsets that came; returns moves to repeat, whose records are to be dropped."""
        missed = {
            place: wanted
            for place, wanted in self._wanted.items()
            if place in firsts and firsts[place] != wanted and place not in self._repeated
        }
        self.forget([place for place in firsts if place not in missed])
        self._repeated.update(missed)
        return missed
