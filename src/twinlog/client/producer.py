"""A producer that knows both sites: each write ends in a typed outcome, by acks="all" or acks="twin".

Users import it as `from twinlog import Producer`. `send` returns a future at once, but for the first
record of a topic, which waits until the sites were asked for it, and while too many are under way. A
future always ends: a write has `timeout_s` for all of its way. With acks="twin" it ends as Done when
the standby has the record too (`pending` has the rule); without a standby nothing is sent, unless the
caller lets it `degrade`. Two threads: one hears librdkafka, one (`watch`) waits for the standby.
Callbacks of futures run in these threads and must be short.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from twinlog.client.outcomes import Done, NotDone, Outcome, Unknown
from twinlog.client.pending import Write
from twinlog.client.standby import Standby
from twinlog.client.watch import Watch
from twinlog.client.ways import Ways, of_user
from twinlog.errors import TwinlogError, UsageError
from twinlog.wire.access import Access
from twinlog.wire.driver import Delivered, Headers, NoRoom, Outgoing, Report, Sender, Settings
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.roles import Standing

Acks = Literal["all", "twin"]
MOST_UNDER_WAY = 100_000
SERVE_S = 0.1
LOOK_S = 10.0  # for a topic's first look at the active


class Producer:
    """Writes records to the active and tells what became of each."""

    def __init__(
        self,
        active: Access,
        standby: Access | None = None,
        *,
        acks: Acks = "all",
        degrade: bool = False,
        timeout_s: float = 30.0,
        ways: Ways | None = None,
    ) -> None:
        self._acks = _check(acks)
        self._degrade = degrade  # where there is no standby, "twin" counts as "all"
        self._timeout_s = timeout_s
        self._ways = ways if ways is not None else Ways()
        self._sender = Sender(
            active, timeout_s=timeout_s, tuning=self._ways.tuning, settings=self._ways.settings
        )
        self._standby = Standby(standby) if standby is not None else None
        self._watch: Watch | None = None
        self._known: set[str] = set()
        self._moved = threading.Condition()
        self._under_way = 0
        self._is_closed = False
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="twinlog-producer", daemon=True)
        self._thread.start()

    @classmethod
    def of_bus(
        cls,
        file: str | Path,
        user: str,
        *,
        acks: Acks = "all",
        degrade: bool = False,
        timeout_s: float = 30.0,
        settings: Settings | None = None,
    ) -> Self:
        """A producer of a user of the file; `settings` are librdkafka's own."""
        bound = of_user(file, user, settings)
        return cls(
            bound.active, bound.standby, acks=acks, degrade=degrade, timeout_s=timeout_s, ways=bound.ways
        )

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
        acks: Acks | None = None,
    ) -> Future[Outcome]:
        """Write a record; the future ends with what became of it."""
        wanted = _check(acks if acks is not None else self._acks)
        future: Future[Outcome] = Future()
        future.set_running_or_notify_cancel()  # a record that is on its way cannot be called back
        write = _Under(self, future, topic, time.monotonic() + self._timeout_s)
        try:
            if wanted == "twin":
                self._promise(write)
            self._look_for(topic)
            self._make_room(write.deadline)
        except TwinlogError as error:
            future.set_result(NotDone(str(error), error.hint))
            return future
        record = Outgoing(topic, value, key, headers, partition, timestamp_ms)
        try:
            self._queue(record, write)
        except TwinlogError as error:
            write.end(NotDone(str(error), error.hint))
        return future

    def flush(self, timeout_s: float | None = None) -> int:
        """Wait until every write has ended, or for so long; returns how many have not."""
        timeout_s = self._timeout_s + SERVE_S if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        self._sender.flush(timeout_s)
        with self._moved:
            self._moved.wait_for(lambda: self._under_way == 0, max(0.0, deadline - time.monotonic()))
            return self._under_way

    def close(self, timeout_s: float | None = None) -> None:
        """Flush and end; what has not ended by then ends as unknown. Harmless if it is closed."""
        with self._moved:
            if self._is_closed:
                return
            self._is_closed = True
        self.flush(timeout_s)
        self._is_ending.set()
        self._thread.join()
        self._sender.close()
        if self._watch is not None:
            self._watch.close()
        if self._standby is not None:
            self._standby.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Before a record is sent

    def _promise(self, write: _Under) -> None:
        """Note what the standby is before the record goes; raises if there is none and one is needed."""
        try:
            write.standing, write.ends = self._admit(write.topic)
        except TwinlogError:
            if not self._degrade:
                raise

    def _admit(self, topic: str) -> tuple[Standing, Mapping[TopicPartition, int]]:
        standby = self._ways.need_twin(topic, self._standby, "acks=twin", "acks='all', or degrade=True")
        return standby.admit(topic), standby.ends

    def _look_for(self, topic: str) -> None:
        """Ask the active for a topic once, because what is refused now was certainly not sent."""
        if topic not in self._known:
            self._sender.check(topic, min(LOOK_S, self._timeout_s))
            self._known.add(topic)

    def _make_room(self, deadline: float) -> None:
        with self._moved:
            room = self._moved.wait_for(
                lambda: self._is_closed or self._under_way < MOST_UNDER_WAY, deadline - time.monotonic()
            )
            if self._is_closed:
                raise UsageError("the producer is closed", hint="open a new one")
            if not room:
                raise NoRoom(
                    f"{MOST_UNDER_WAY} writes are under way", hint="is the active up? twinlog status"
                )
            self._under_way += 1

    def _queue(self, record: Outgoing, write: _Under) -> None:
        """Give a record to librdkafka, as soon as it has room."""
        while True:
            try:
                self._sender.send(record, write.told)
                return
            except NoRoom:
                left_s = write.deadline - time.monotonic()
                if left_s <= 0.0:
                    raise
                with self._moved:
                    self._moved.wait(min(SERVE_S, left_s))

    # After it was sent

    def _serve(self) -> None:
        while not self._is_ending.is_set():
            self._sender.serve(SERVE_S)
            if self._watch is not None:
                self._watch.expire()

    def _wait_for_twin(self, write: Write[Callable[[Outcome], None]]) -> None:
        """Let a write that the active has wait for the standby."""
        with self._moved:
            if self._watch is None:
                assert self._standby is not None  # it admitted the write
                self._watch = Watch(self._standby)
        self._watch.add(write)

    def _ended(self) -> None:
        """One write less under way."""
        with self._moved:
            self._under_way -= 1
            self._moved.notify_all()


class _Under:
    """One write under way."""

    def __init__(self, producer: Producer, future: Future[Outcome], topic: str, deadline: float) -> None:
        self._producer = producer
        self._future = future
        self.topic = topic
        self.deadline = deadline
        self.standing: Standing | None = None  # for acks=twin: what the standby was before it was sent
        self.ends: Mapping[TopicPartition, int] = {}

    def told(self, report: Report) -> None:
        """What librdkafka says of it."""
        if not isinstance(report, Delivered):
            failed = (
                NotDone(report.reason, report.hint)
                if report.is_certain
                else Unknown(report.reason, report.hint)
            )
            self.end(failed)
        elif self.standing is None:
            self.end(Done(report.partition, report.offset))
        else:
            place = (self.topic, report.partition)
            floor = self.ends.get(place, 0)
            self._producer._wait_for_twin(
                Write(place, report.offset, self.standing, floor, self.deadline, self.end)
            )

    def end(self, outcome: Outcome) -> None:
        """It has ended."""
        self._future.set_result(outcome)
        self._producer._ended()


def _check(acks: str) -> Acks:
    if acks == "all":
        return "all"
    if acks == "twin":
        return "twin"
    raise UsageError(
        f"acks is 'all' or 'twin', not {acks!r}", hint="which of the two should a write wait for?"
    )
