"""What a consumer has read, how much of it was handed out, and what of that is not committed. Pure.

A Consumer fills it with a batch whenever it is empty. Handing a record out moves an index and nothing
else; where the group should go on is worked out for a whole batch at a time, when somebody asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from operator import itemgetter

from twinlog.wire.offsets import TopicPartition
from twinlog.wire.received import Received, are_of_one_place, spot_of

_PLACE = itemgetter(0, 1)
_OFFSET = itemgetter(2)


class Handed:
    """A batch of records on its way out."""

    def __init__(self) -> None:
        self._batch: list[Received] = []
        self._next = 0  # the first that was not handed out
        self._counted = 0  # the first that is not in the two mappings
        self._is_one_place = False  # the batch is known to be of one partition
        self._firsts: dict[TopicPartition, int] = {}
        self._lasts: dict[TopicPartition, int] = {}

    @property
    def is_empty(self) -> bool:
        """True if all was handed out."""
        return self._next == len(self._batch)

    def fill(self, records: list[Received], *, is_one_place: bool = False) -> None:
        """Take in what was read; what was not handed out before is forgotten.

        Whoever knows that all are of one partition says so, and nobody has to look at each for that again.
        """
        self._count()
        self._batch, self._next, self._counted = records, 0, 0
        self._is_one_place = is_one_place

    def one(self) -> Received | None:
        """Hand out the next record; None if all was handed out."""
        if self._next == len(self._batch):
            return None
        record = self._batch[self._next]
        self._next += 1
        return record

    def rest(self) -> Iterator[Received]:
        """Hand out what is left, one by one; ends early when something else is to be handed out."""
        batch = self._batch
        while self._batch is batch and self._next < len(batch):
            record = batch[self._next]
            self._next += 1
            yield record

    def many(self, most: int) -> list[Received]:
        """Hand out up to so many."""
        first, self._next = self._next, min(self._next + most, len(self._batch))
        if first > 0 or self._next < len(self._batch):
            return self._batch[first : self._next]
        # The caller's alone from now on: records that he is done with are free before the next are read.
        self._count()
        whole, self._batch, self._next, self._counted = self._batch, [], 0, 0
        return whole

    def drop(self, places: Collection[TopicPartition]) -> None:
        """Forget all about partitions: others read them now."""
        self._leave(places)
        for place in places:
            self._firsts.pop(place, None)
            self._lasts.pop(place, None)

    def move(self, positions: Mapping[TopicPartition, int]) -> None:
        """Reading goes on elsewhere: of what was handed out, what lies before counts as such."""
        self._leave(positions)
        for place, offset in positions.items():
            if place in self._lasts and offset >= 0:
                self._lasts[place] = min(self._lasts[place], offset - 1)
                if self._lasts[place] < self._firsts[place]:
                    del self._firsts[place], self._lasts[place]

    def clear(self) -> None:
        """What was handed out counts as committed."""
        self._count()
        self._firsts.clear()
        self._lasts.clear()

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Where each partition goes on, behind what was handed out and not committed."""
        self._count()
        return {place: offset + 1 for place, offset in self._lasts.items()}

    @property
    def beginnings(self) -> dict[TopicPartition, int]:
        """The first offset of each partition that was handed out and not committed."""
        self._count()
        return dict(self._firsts)

    def _leave(self, places: Collection[TopicPartition]) -> None:
        """Hand out nothing more of what was read of these partitions."""
        self._count()
        gone = set(places)
        left = [record for record in self._batch[self._next :] if spot_of(record)[0] not in gone]
        self._batch, self._next, self._counted = left, 0, 0

    def _count(self) -> None:
        handed = self._batch[self._counted : self._next]
        self._counted = self._next
        if not handed:
            return
        if self._is_one_place or are_of_one_place(handed):
            place, offset = spot_of(handed[-1])
            self._lasts[place] = offset
            self._firsts.setdefault(place, spot_of(handed[0])[1])
            return
        self._lasts.update(zip(map(_PLACE, handed), map(_OFFSET, handed), strict=True))
        handed.reverse()  # what is written last stays, and that is the first of each partition
        for place, offset in dict(zip(map(_PLACE, handed), map(_OFFSET, handed), strict=True)).items():
            self._firsts.setdefault(place, offset)
