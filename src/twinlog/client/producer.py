"""A producer that knows both sites: each write ends in a typed outcome, by acks="all" or acks="twin".

Users import it as `from twinlog import Producer`. `send` returns at once, but for the first record of a
topic, which waits until the sites were asked for it, and while too many are under way. A write always
ends: it has `timeout_s` for all of its way. With acks="twin" it ends as Done when the standby has the
record too (`pending` has the rule); without a standby nothing is sent, unless the caller lets it
`degrade`. Two threads: one hears librdkafka, one (`watch`) waits for the standby.

What a record costs here is bounded by `make bench-client`. With acks="all" `send` takes no lock and asks
for no time, and a program that sends fast hears the answers itself now and then: a thread that hears
them beside it would have to wrest the interpreter from it for every single one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypedDict, Unpack

from twinlog.client.outcomes import Done, NotDone, Outcome
from twinlog.client.partitioning import Turns
from twinlog.client.pending import Write
from twinlog.client.sent import Sent
from twinlog.client.standby import Standby
from twinlog.client.watch import Watch
from twinlog.client.ways import Ways, of_user
from twinlog.errors import TwinlogError, UsageError
from twinlog.wire.access import Access
from twinlog.wire.driver import Headers, NoRoom, Outgoing, Sender, Settings
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.roles import Standing

Acks = Literal["all", "twin"]
Keyless = Literal["sticky", "turns"]
MOST_AT_TWIN = 100_000  # writes for acks=twin that are under way
MOST_AT_ONCE = 50_000  # unanswered records; librdkafka's queue takes twice as many
SERVE_S = 0.1
HEAR_EVERY = 256  # sends, a power of two; while nobody waits for callbacks
STAND_BACK_S = 0.002  # of the thread that hears, after a round in which the sender did so itself
LOOK_S = 10.0  # for a topic's first look at the active


class Writing(TypedDict, total=False):
    """How a Producer writes; what is left out is as its constructor says."""

    acks: Acks
    degrade: bool
    timeout_s: float
    keyless: Keyless


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
        keyless: Keyless = "sticky",
        ways: Ways | None = None,
    ) -> None:
        self._acks = _check(acks)
        self._turns = _dealt(keyless)
        self._degrade = degrade  # where there is no standby, "twin" counts as "all"
        self._timeout_s = timeout_s
        self._ways = ways if ways is not None else Ways()
        self._sender = Sender(
            active, timeout_s=timeout_s, tuning=self._ways.tuning, settings=self._ways.settings
        )
        self._standby = Standby(standby) if standby is not None else None
        self._watch: Watch | None = None
        self._known: dict[str, int] = {}  # topics that the active has, with their partitions
        self._lock = threading.Lock()
        self._sends = 0
        self._at_twin = 0  # writes for acks=twin that have not ended
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
        settings: Settings | None = None,
        **writing: Unpack[Writing],
    ) -> Self:
        """A producer of a user of the file; `settings` are librdkafka's own, the rest is as above."""
        bound = of_user(file, user, settings)
        return cls(bound.active, bound.standby, ways=bound.ways, **writing)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
        acks: Acks | None = None,
    ) -> Sent:
        """Write a record; what it returns ends with what became of it."""
        sent = Sent(self._sender)
        try:
            if acks is not None or self._acks == "twin":
                self._promise(sent, topic, acks)
            if topic not in self._known:
                self._look_for(topic)
            if self._turns is not None and partition is None and key is None:
                partition = self._turns.next(topic, self._known[topic])
            self._sender.queue(topic, value, key, headers, partition, timestamp_ms, sent)
            self._sends += 1
            if not self._sends & (HEAR_EVERY - 1) and not self._sender.has_listeners:
                self._sender.serve(0.0)
        except NoRoom:
            self._queue_later(Outgoing(topic, value, key, headers, partition, timestamp_ms), sent)
        except TwinlogError as error:
            self._end(sent, NotDone(str(error), error.hint))
        return sent

    def send_record(self, record: Outgoing, acks: Acks | None = None) -> Sent:
        """Write a record that is made already, by a Topic with its types for one."""
        return self.send(*record, acks)

    def send_many(self, records: Iterable[Outgoing], acks: Acks | None = None) -> list[Outcome]:
        """Write records and wait for all of them; returns their outcomes in the same order."""
        send = self.send
        # Taken apart by name: `send(*record)` costs half as much again.
        sent = [
            send(topic, value, key, headers, partition, timestamp_ms, acks)
            for topic, value, key, headers, partition, timestamp_ms in records
        ]
        # Heard here, and not in the other thread while this one waits to be woken.
        while sent and not sent[-1].done() and not self._is_closed:
            self._sender.serve(SERVE_S)
        return [
            # What `result` would make of it, without a call for each.
            Done(one.partition, one.offset) if one.offset >= 0 and one.standing is None else one.result()
            for one in sent
        ]

    def takes_at_once(self, topic: str) -> bool:
        """True if a record for this topic with the usual acks would not have to wait before it is sent."""
        return topic in self._known and self._acks == "all" and self._sender.unanswered < MOST_AT_ONCE

    def flush(self, timeout_s: float | None = None) -> int:
        """Wait until every write has ended, or for so long; returns how many have not."""
        timeout_s = self._timeout_s + SERVE_S if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        left = self._sender.flush(timeout_s)
        with self._sender.answered:
            self._sender.answered.wait_for(lambda: self._at_twin == 0, max(0.0, deadline - time.monotonic()))
            return max(left, self._at_twin)

    def close(self, timeout_s: float | None = None) -> None:
        """Flush and end; what has not ended by then ends as unknown. Harmless if it is closed."""
        with self._lock:
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

    def _promise(self, sent: Sent, topic: str, acks: Acks | None) -> None:
        """For acks=twin, note what the standby is before the record goes; raises if one is needed."""
        if (self._acks if acks is None else _check(acks)) == "all":
            return
        try:
            standing, ends = self._admit(topic)
        except TwinlogError:
            if self._degrade:
                return
            raise
        self._make_room()
        sent.standing = standing
        deadline = time.monotonic() + self._timeout_s
        sent.then = lambda: self._heard(sent, topic, ends, deadline)

    def _admit(self, topic: str) -> tuple[Standing, Mapping[TopicPartition, int]]:
        standby = self._ways.need_twin(topic, self._standby, "acks=twin", "acks='all', or degrade=True")
        return standby.admit(topic), standby.ends

    def _look_for(self, topic: str) -> None:
        """Ask the active for a topic once, because what is refused now was certainly not sent."""
        self._known[topic] = self._sender.check(topic, min(LOOK_S, self._timeout_s))

    def _make_room(self) -> None:
        """Count one more write for acks=twin, when there are not too many."""
        with self._sender.answered:
            if not self._sender.answered.wait_for(lambda: self._at_twin < MOST_AT_TWIN, self._timeout_s):
                raise NoRoom(f"{MOST_AT_TWIN} writes are under way", hint="is the standby up? twinlog status")
            self._at_twin += 1

    def _queue_later(self, record: Outgoing, sent: Sent) -> None:
        """Give a record to librdkafka as soon as it has room."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            with self._sender.answered:
                self._sender.answered.wait(SERVE_S)
            try:
                self._sender.queue(*record, sent)
                return
            except TwinlogError as error:
                if not isinstance(error, NoRoom) or time.monotonic() > deadline:
                    self._end(sent, NotDone(str(error), error.hint or "is the active up? twinlog status"))
                    return

    # After it was sent

    def _serve(self) -> None:
        while not self._is_ending.is_set():
            before = self._sends
            self._sender.serve(SERVE_S)
            if self._sends - before >= HEAR_EVERY:
                self._is_ending.wait(STAND_BACK_S)
            if self._watch is not None:
                self._watch.expire()

    def _heard(self, sent: Sent, topic: str, ends: Mapping[TopicPartition, int], deadline: float) -> None:
        """The active has answered a write for acks=twin: let it wait for the standby, or end it."""
        if sent.failure is not None:
            self._end(sent, sent.failure)
            return
        assert sent.standing is not None and self._standby is not None  # they admitted the write
        with self._lock:
            if self._watch is None:
                self._watch = Watch(self._standby)
        place = (topic, sent.partition)
        self._watch.add(
            Write(
                place,
                sent.offset,
                sent.standing,
                ends.get(place, 0),
                deadline,
                lambda outcome: self._end(sent, outcome),
            )
        )

    def _end(self, sent: Sent, outcome: Outcome) -> None:
        """A write has ended otherwise than by what librdkafka told."""
        sent.end(outcome)
        with self._sender.answered:
            if sent.standing is not None:
                self._at_twin -= 1
            self._sender.answered.notify_all()


def _dealt(keyless: str) -> Turns | None:
    if keyless == "sticky":
        return None
    if keyless == "turns":
        return Turns()
    raise UsageError(
        f"keyless is 'sticky' or 'turns', not {keyless!r}", hint="where should records without a key go?"
    )


def _check(acks: str) -> Acks:
    if acks == "all":
        return "all"
    if acks == "twin":
        return "twin"
    raise UsageError(
        f"acks is 'all' or 'twin', not {acks!r}", hint="which of the two should a write wait for?"
    )
