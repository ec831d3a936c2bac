"""Writes that the active has and that wait for the standby: which of them end, and how. Pure.

The watch tells the table what it saw, in the order in which it saw it; the rule of acks=twin is
here. A write ends as Done when the standby's high watermark was past it and the role record, read
after that, said that the site is still the standby of the term in which the write began. A later
term, or another role, ends it as UnknownAtTwin: terms never go back, so it could never be Done.
So does a standby that was past the write's offset before the record was sent: a copy cannot be ahead
of what it copies, so what stands there is another record. Its own deadline ends it the same way.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from twinlog.client.outcomes import Done, Outcome, UnknownAtTwin
from twinlog.spec.model import Role
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.roles import Standing

Token = TypeVar("Token")
_FEW = 64  # not worth tidying up


@dataclass(frozen=True)
class Write(Generic[Token]):
    """One write. `standing` and `floor`: what the standby was, and where it ended, before it was sent."""

    place: TopicPartition
    offset: int
    standing: Standing
    floor: int
    deadline: float
    token: Token


Ended = list[tuple[Token, Outcome]]


class Pending(Generic[Token]):
    """All writes that wait."""

    def __init__(self) -> None:
        self._numbers = count()
        self._writes: dict[int, Write[Token]] = {}
        # Heaps; what has ended stays in them until it comes up, or until it is the greater part.
        self._by_offset: dict[TopicPartition, list[tuple[int, int]]] = {}
        self._by_deadline: list[tuple[float, int]] = []
        self._uncovered: Counter[TopicPartition] = Counter()
        self._covered: dict[int, Write[Token]] = {}  # seen below the watermark; the role is to be asked
        self._watermarks: dict[TopicPartition, int] = {}

    def __len__(self) -> int:
        return len(self._writes)

    def add(self, write: Write[Token]) -> None:
        """Let a write wait. A watermark that was seen before counts for nothing: it is asked anew."""
        number = next(self._numbers)
        self._writes[number] = write
        heapq.heappush(self._by_offset.setdefault(write.place, []), (write.offset, number))
        self._uncovered[write.place] += 1
        heapq.heappush(self._by_deadline, (write.deadline, number))

    @property
    def places(self) -> tuple[TopicPartition, ...]:
        """The partitions whose watermarks are wanted."""
        return tuple(self._by_offset)

    @property
    def next_deadline(self) -> float | None:
        """When the next write runs out of time."""
        while self._by_deadline and self._by_deadline[0][1] not in self._writes:
            heapq.heappop(self._by_deadline)
        return self._by_deadline[0][0] if self._by_deadline else None

    def seen(self, watermarks: Mapping[TopicPartition, int]) -> bool:
        """Take watermarks in, each the first offset that is not covered; True if the role is to be asked."""
        for place, watermark in watermarks.items():
            self._watermarks[place] = watermark
            waiting = self._by_offset.get(place, [])
            while waiting and waiting[0][0] < watermark:
                _, number = heapq.heappop(waiting)
                if number in self._writes:
                    self._covered[number] = self._writes[number]
                    self._one_less(place)
        return bool(self._covered)

    def judge(self, standing: Standing | None) -> Ended[Token]:
        """Take the role in, read after the last `seen`; returns the writes that end by it."""
        ended: Ended[Token] = []
        for number, write in list(self._covered.items()):
            if write.offset < write.floor:
                reason = f"the standby was at offset {write.floor} before the record was sent: it is no copy"
                ended.append((self._take(number), _unknown(write, reason)))
            elif standing == write.standing:
                ended.append((self._take(number), Done(write.place[1], write.offset, twin=True)))
            elif standing is not None and _is_over(write.standing, standing):
                reason = f"the standby is now the {standing}, and the write began with the {write.standing}"
                ended.append((self._take(number), _unknown(write, reason)))
        return ended

    def expire(self, now: float, troubles: Mapping[TopicPartition, str]) -> Ended[Token]:
        """The writes whose time is over; `troubles` has why the standby does not answer for a partition."""
        ended: Ended[Token] = []
        while (deadline := self.next_deadline) is not None and deadline <= now:
            number = self._by_deadline[0][1]
            write = self._writes[number]
            reason = f"no time left: {self._state(number, write, troubles)}"
            ended.append((self._take(number), _unknown(write, reason)))
        return ended

    def give_up(self, reason: str) -> Ended[Token]:
        """End all writes that wait."""
        return [(self._take(number), _unknown(write, reason)) for number, write in list(self._writes.items())]

    def _take(self, number: int) -> Token:
        write = self._writes.pop(number)
        if self._covered.pop(number, None) is None:
            self._one_less(write.place)
        return write.token

    def _one_less(self, place: TopicPartition) -> None:
        self._uncovered[place] -= 1
        left, waiting = self._uncovered[place], self._by_offset[place]
        if not left:
            del self._uncovered[place], self._by_offset[place]
        elif len(waiting) > 2 * left + _FEW:
            waiting[:] = [one for one in waiting if one[1] in self._writes and one[1] not in self._covered]
            heapq.heapify(waiting)

    def _state(self, number: int, write: Write[Token], troubles: Mapping[TopicPartition, str]) -> str:
        if number in self._covered:
            return "the standby has the record, and its role could not be read or is not that of the start"
        if write.place in troubles:
            return troubles[write.place]
        if write.place not in self._watermarks:
            return "the standby was not heard"
        return f"the standby's copy ended at offset {self._watermarks[write.place]}"


def _is_over(began: Standing, now: Standing) -> bool:
    return now.term > began.term or (now.term == began.term and now.role is not Role.STANDBY)


def _unknown(write: Write[Token], reason: str) -> UnknownAtTwin:
    return UnknownAtTwin(write.place[1], write.offset, reason)
