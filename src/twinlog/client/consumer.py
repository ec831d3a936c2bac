"""A consumer that knows both sites: with read="twin" it hands out nothing that the standby lacks.

Users import it as `from twinlog import Consumer` and iterate over it, or call `poll`. It belongs to one
thread and has none of its own. It reads as a member of a group at the active and commits what it has
handed out when told to. With read="twin" a record waits until the standby's high watermark was seen
past it and, after that, the role record still said what it said at the start; when the sites have
changed roles, what was read may not be what the new active has, and a new Consumer is needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from twinlog.client.held import Held
from twinlog.client.pace import LEAST_S, Pace
from twinlog.client.standby import Standby
from twinlog.client.ways import Ways, of_user
from twinlog.errors import SiteError, TwinlogError, UsageError
from twinlog.wire.access import Access
from twinlog.wire.driver import Received, Receiver, Settings
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.roles import Standing

Read = Literal["all", "twin"]
Start = Literal["earliest", "latest"]
MOST_AT_ONCE = 500
MOST_HELD_BYTES = 32 * 1024 * 1024
WAIT_S = 0.5


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
        ways: Ways | None = None,
    ) -> None:
        used = ways if ways is not None else Ways()
        self._held = Held()
        self._handed_out: dict[TopicPartition, int] = {}
        self._paused: tuple[TopicPartition, ...] = ()
        self._pace, self._pause_s = Pace(), LEAST_S
        self._is_closed = False
        self._standby: Standby | None = None
        self._standing: Standing | None = None
        if read == "twin":
            self._standby, self._standing = _bound(standby, topics, used)
        self._receiver = Receiver(
            active, group=group, start=start, tuning=used.tuning, settings=used.settings
        )
        self._receiver.subscribe(topics, self._lost)

    @classmethod
    def of_bus(
        cls,
        file: str | Path,
        user: str,
        group: str,
        topics: Sequence[str],
        *,
        read: Read = "all",
        start: Start = "earliest",
        settings: Settings | None = None,
    ) -> Self:
        """A consumer of a user of the file; `settings` are librdkafka's own."""
        bound = of_user(file, user, settings)
        return cls(
            bound.active, bound.standby, group=group, topics=topics, read=read, start=start, ways=bound.ways
        )

    def poll(self, timeout_s: float) -> Received | None:
        """The next record, or None if none could be handed out in time."""
        deadline = time.monotonic() + timeout_s
        while True:
            record = self._held.take()
            if record is not None:
                self._handed_out[(record.topic, record.partition)] = record.offset + 1
                return record
            left_s = deadline - time.monotonic()
            if left_s <= 0.0:
                return None
            self._turn(left_s)

    def __iter__(self) -> Iterator[Received]:
        while not self._is_closed:
            record = self.poll(WAIT_S)
            if record is not None:
                yield record

    def commit(self) -> None:
        """Let the group go on behind what was handed out; returns when that is written."""
        if self._handed_out:
            self._receiver.commit(self._handed_out)
            self._handed_out.clear()

    def close(self) -> None:
        """Leave the group without committing. Harmless if it is closed."""
        if self._is_closed:
            return
        self._is_closed = True
        self._receiver.close()
        if self._standby is not None:
            self._standby.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _turn(self, left_s: float) -> None:
        if self._standby is None:
            self._held.put_free(self._receiver.take(MOST_AT_ONCE, min(left_s, WAIT_S)))
            return
        # While records wait the group still wants to be polled, for a moment only.
        pause_s = self._pause_s if self._held.places else WAIT_S
        self._held.put(self._receiver.take(MOST_AT_ONCE, min(left_s, pause_s)))
        if self._held.places:
            self._ask(self._standby)
        self._limit()

    def _ask(self, standby: Standby) -> None:
        """Ask the standby once for what waits, and free what it has."""
        news = trouble = False
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
        self._pause_s = self._pace.next_pause_s(news=news, trouble=trouble)

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
        gone = set(places)
        self._paused = tuple(place for place in self._paused if place not in gone)
        for place in gone & self._handed_out.keys():
            del self._handed_out[place]


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
