"""A consumer that knows both sites: with read="twin" it hands out nothing that the standby lacks.

Users import it as `from twinlog import Consumer` and iterate over it, or call `poll` or `poll_many`. It
belongs to one thread and has none of its own. It reads as a member of a group at the active and commits
what it has handed out when told to; what was not committed is handed out again, to it or to another
member. With read="twin" a record waits until the standby's high watermark was seen past it and, after
that, the role record still said what it said at the start; when the sites have changed roles, what was
read may not be what the new active has, and a new Consumer is needed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypedDict, Unpack

from twinlog.client.balance import Balance, balanced
from twinlog.client.handed import Handed
from twinlog.client.held import Held
from twinlog.client.pace import Pace
from twinlog.client.standby import Standby
from twinlog.client.ways import Ways, of_user
from twinlog.errors import SiteError, TwinlogError, UsageError
from twinlog.wire.access import Access
from twinlog.wire.driver import Settings
from twinlog.wire.groups import TWIN_READER
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.received import Habit, Received
from twinlog.wire.receiver import COMMIT_S, Begin, Receiver
from twinlog.wire.roles import Standing

Read = Literal["all", "twin"]
Start = Literal["earliest", "latest"]
# Each record is two objects until its batch is done with, and Python looks for garbage when 700 more were
# made than freed: a batch that stays below that is never searched, which takes 0.1 µs off a record.
MOST_AT_ONCE = 300
MOST_HELD_BYTES = 32 * 1024 * 1024
WAIT_S = 0.5
ASSIGN_S = 30.0  # until a group has given out its partitions
ASSIGN_AGAIN_S = 0.05


class Reading(TypedDict, total=False):
    """How a Consumer reads; what is left out is as its constructor says."""

    read: Read
    start: Start
    balance: Balance
    uncommitted: bool
    begin: Begin | None


class RolesChanged(SiteError):
    """What was read belongs to a term that is over."""


class Consumer:
    """Reads topics in a group."""

    def __init__(
        self,
        active: Access,
        standby: Access | None = None,
        *,
        group: str,
        topics: Sequence[str],
        read: Read = "all",
        start: Start = "earliest",
        balance: Balance = "cooperative",
        uncommitted: bool = False,
        begin: Begin | None = None,
        ways: Ways | None = None,
    ) -> None:
        used = ways if ways is not None else Ways()
        own = {**balanced(balance), "isolation.level": _isolated(uncommitted)}
        if read == "twin":
            own["client.id"] = TWIN_READER
        self._held = Held()
        self._handed = Handed()
        self._paused: tuple[TopicPartition, ...] = ()
        self._pace = Pace()
        self._ask_at = 0.0, 0.0  # with something new to ask for, and without
        self._is_closed = False
        self._standby: Standby | None = None
        self._standing: Standing | None = None
        if read == "twin":
            self._standby, self._standing = _bound(standby, topics, used)
        self._receiver = Receiver(
            active,
            group=group,
            start=start,
            tuning=used.tuning,
            settings={**own, **used.settings},
            habit=Habit(opens=read == "twin"),  # what waits for the standby is sorted by partitions
        )
        self._receiver.subscribe(topics, self._lost, begin)

    @classmethod
    def of_bus(
        cls,
        file: str | Path,
        user: str,
        group: str,
        topics: Sequence[str],
        *,
        settings: Settings | None = None,
        **reading: Unpack[Reading],
    ) -> Self:
        """A consumer of a user of the file; `settings` are librdkafka's own, the rest is as above."""
        bound = of_user(file, user, settings)
        return cls(bound.active, bound.standby, group=group, topics=topics, ways=bound.ways, **reading)

    def poll(self, timeout_s: float) -> Received | None:
        """The next record, or None if none could be handed out in time."""
        record = self._handed.one()
        if record is None and self._fill(timeout_s):
            return self._handed.one()
        return record

    def poll_many(self, timeout_s: float, most: int = MOST_AT_ONCE) -> list[Received]:
        """The next records, as many as are there; none if none could be handed out in time."""
        if self._handed.is_empty and not self._fill(timeout_s):
            return []
        return self._handed.many(most)

    def wait(self, timeout_s: float) -> bool:
        """Have a record at hand, and hand nothing out; False if none could be in time."""
        return not self._handed.is_empty or self._fill(timeout_s)

    @property
    def has_some(self) -> bool:
        """True if `poll` has a record at hand and would not wait."""
        return not self._handed.is_empty

    def __iter__(self) -> Iterator[Received]:
        while not self._is_closed:
            yield from self._handed.rest()
            if not self._is_closed and self._handed.is_empty:
                self._fill(WAIT_S)

    def commit(self, timeout_s: float = COMMIT_S) -> None:
        """Let the group go on behind what was handed out; returns when that is written.

        One that was not answered in time raises with the code TIMED_OUT, and may still be written.
        """
        positions = self._handed.positions
        if positions:
            self._receiver.commit(positions, timeout_s)
            self._handed.clear()

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Where each partition goes on, behind what was handed out and not committed."""
        return self._handed.positions

    @property
    def membership(self) -> object:
        """Who it is in its group, for a transaction that commits its positions."""
        return self._receiver.membership

    def settle(self) -> None:
        """What was handed out was committed otherwise: in a transaction, or in a database."""
        self._handed.clear()

    def rewind(self) -> None:
        """Hand out again what was handed out and is not committed; the group is asked what is."""
        mine = set(self._receiver.assigned)
        beginnings = {place: at for place, at in self._handed.beginnings.items() if place in mine}
        if beginnings:
            found = self._receiver.committed(beginnings)
            self.seek({place: max(at, found.get(place, at)) for place, at in beginnings.items()})
        self._handed.clear()

    def assigned(self, timeout_s: float = ASSIGN_S) -> list[TopicPartition]:
        """The partitions that it reads; waits until the group has given it some, and no longer than that."""
        deadline = time.monotonic() + timeout_s
        while not (places := self._receiver.assigned) and time.monotonic() < deadline:
            self._fill(ASSIGN_AGAIN_S)
        return places

    def unread(self, timeout_s: float = ASSIGN_S) -> dict[TopicPartition, int]:
        """The partitions that it reads and that hold more for it, with the ends that they have now.

        A group that has committed nothing is taken to begin at the beginning.
        """
        places = self.assigned(timeout_s)
        standing = {**self._receiver.committed(places), **self._handed.positions}
        bounds = {place: self._receiver.bounds(place) for place in places}
        return {
            place: end for place, (first, end) in bounds.items() if max(first, standing.get(place, 0)) < end
        }

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Go on at other offsets, in partitions that it reads."""
        self._receiver.seek(positions)
        self._held.drop(positions)
        self._handed.move(positions)

    def seek_to_time(self, timestamp_ms: int, timeout_s: float = ASSIGN_S) -> None:
        """Go on, in all partitions that it reads, at the first record of this time or a later one."""
        self.seek(self._receiver.offsets_at(timestamp_ms, self.assigned(timeout_s)))

    def pause(self, positions: Mapping[TopicPartition, int]) -> None:
        """Hand out nothing more of these partitions; when they are resumed they go on at these offsets."""
        self.seek(positions)
        self._receiver.pause(positions)

    def resume(self, places: Collection[TopicPartition]) -> None:
        """Go on with partitions that were paused."""
        self._receiver.resume(places)

    def close(self) -> None:
        """Leave the group without committing. Harmless if it is closed."""
        if self._is_closed:
            return
        self._is_closed = True
        self._handed.fill([])  # an iteration ends here
        self._receiver.close()
        if self._standby is not None:
            self._standby.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _fill(self, timeout_s: float) -> bool:
        """Have records to hand out; False if there are none in time."""
        deadline = time.monotonic() + timeout_s
        left_s = timeout_s
        while True:
            records = self._turn(max(0.0, left_s))
            # What waited for the standby was read in several turns.
            is_one_place = self._standby is None and self._receiver.took_one_place
            self._handed.fill(records, is_one_place=is_one_place)
            left_s = deadline - time.monotonic()
            if not self._handed.is_empty or left_s <= 0.0:
                return not self._handed.is_empty

    def _turn(self, left_s: float) -> list[Received]:
        """Read once; returns what may be handed out."""
        if self._standby is None:
            return self._receiver.take(MOST_AT_ONCE, min(left_s, WAIT_S))
        # While records wait the group still wants to be polled, for a moment only.
        first_at, last_at = self._ask_at
        pause_s = max(0.0, last_at - time.monotonic()) if self._held.places else WAIT_S
        read = self._receiver.take(MOST_AT_ONCE, min(left_s, pause_s))
        self._held.put(read)
        if self._held.places and time.monotonic() >= (first_at if read else last_at):
            self._ask(self._standby)
        self._limit()
        return self._held.take()

    def _ask(self, standby: Standby) -> None:
        """Ask the standby once for what waits, and free what it has."""
        news = trouble = False
        began = time.monotonic()
        try:
            answers = standby.watermarks(self._held.places)
            marks = {place: answer for place, answer in answers.items() if isinstance(answer, int)}
            trouble = len(marks) < len(answers)
            if self._held.would_free(marks):
                self._insist(standby.standing())
                self._held.confirm(marks)
                news = True
        except RolesChanged:
            raise
        except TwinlogError:
            trouble = True  # it may come back: what waits goes on waiting
        now = time.monotonic()
        pause = self._pace.next_pause(news=news, trouble=trouble, took_s=now - began)
        self._ask_at = now + pause.least_s, now + pause.most_s

    def _insist(self, standing: Standing | None) -> None:
        if standing != self._standing:
            now = f"the {standing}" if standing is not None else "nothing"
            raise RolesChanged(
                f"the standby was the {self._standing} when reading began and says now that it is {now}",
                hint="open a new Consumer",
            )

    def _limit(self) -> None:
        """Read no further where much waits; go on when most of it has gone."""
        if not self._paused and self._held.size_bytes > MOST_HELD_BYTES:
            self._paused = self._held.places
            self._receiver.pause(self._paused)
        elif self._paused and self._held.size_bytes < MOST_HELD_BYTES // 2:
            self._receiver.resume(self._paused)
            self._paused = ()

    def _lost(self, places: list[TopicPartition]) -> None:
        self._held.drop(places)
        self._handed.drop(places)
        gone = set(places)
        self._paused = tuple(place for place in self._paused if place not in gone)


def _isolated(uncommitted: bool) -> str:
    return "read_uncommitted" if uncommitted else "read_committed"


def _bound(standby: Access | None, topics: Sequence[str], ways: Ways) -> tuple[Standby, Standing]:
    """The standby, and what it is before anything is read."""
    if not topics:
        raise UsageError("there is no topic to read", hint="which topics should it read?")
    accesses = [ways.need_twin(topic, standby, "read=twin", "read='all'") for topic in topics]
    site = Standby(accesses[0])
    try:
        standings = [site.admit(topic) for topic in topics]
    except BaseException:
        site.close()
        raise
    return site, standings[0]
