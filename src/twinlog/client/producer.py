"""A producer that knows both sites: each write ends in a typed outcome, by acks="all" or acks="twin".

Users import it as `from twinlog import Producer`. `send` returns at once, but for the first record of a
topic, which waits until the sites were asked for it, and while too many are under way. A write always
ends: it has `timeout_s` for all of its way. With acks="twin" it ends as Done when the standby has the
record too (`pending` has the rule); without a standby nothing is sent, unless the caller lets it
`degrade`. Two threads: one hears librdkafka, one (`watch`) waits for the standby.

What a record costs here is bounded by `make bench-client`. Plain records go a short way: no lock, no
question for the time, one call. A program that sends fast hears the answers itself now and then, and so
does one that waits for all of them: a thread that hears them beside it would have to wrest the
interpreter from it for every single one, so it stands back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypedDict, Unpack

from twinlog.client.batch import HEAR_EVERY, Batch
from twinlog.client.outcomes import NotDone, Outcome
from twinlog.client.partitioning import Turns
from twinlog.client.promise import Promise
from twinlog.client.sent import Sent, kind_of
from twinlog.client.standby import Standby
from twinlog.client.watch import Watch
from twinlog.client.ways import Ways, of_user
from twinlog.errors import TwinlogError, UsageError
from twinlog.wire.access import Access
from twinlog.wire.driver import ANY_PARTITION, NOW, Headers, Listener, NoRoom, Outgoing, Sender, Settings
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.roles import Standing

Acks = Literal["all", "twin"]
Keyless = Literal["sticky", "turns"]
MOST_AT_TWIN = 100_000  # writes for acks=twin that are under way
SERVE_S = 0.1
STAND_BACK_S = 0.01  # of the thread that hears, while senders do so themselves and nobody wants an answer
MANY = 64  # sends while it was away, or heard: the next answers are heard by the sender
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
        self._kind = kind_of(self._sender)
        self._standby = Standby(standby) if standby is not None else None
        self._watch: Watch | None = None
        self._known: dict[str, int] = {}  # topics that the active has, with their partitions
        self._plain: set[str] = set()  # those of them whose records go the short way
        self._lock = threading.Lock()
        self._sends = 0
        self._hearers = 0  # callers who hear the driver themselves just now
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
        if topic not in self._plain or acks is not None:
            return self._send_with_care(Outgoing(topic, value, key, headers, partition, timestamp_ms), acks)
        sender, sent = self._sender, self._kind()
        where = ANY_PARTITION if partition is None else partition
        try:
            if headers or timestamp_ms is not None:
                sender.produce(topic, value, key, where, sent, None, timestamp_ms or NOW, list(headers))
            else:
                sender.produce(topic, value, key, where, sent)
        except Exception:  # it was not queued; the other way says why, or waits for room
            return self._send_with_care(Outgoing(topic, value, key, headers, partition, timestamp_ms), acks)
        self._sends += 1
        if not self._sends & (HEAR_EVERY - 1) and not sender.has_listeners:
            sender.serve(0.0)
        return sent

    def send_record(self, record: Outgoing, acks: Acks | None = None) -> Sent:
        """Write a record that is made already, by a Topic with its types for one."""
        return self.send(*record, acks)

    def send_many(self, records: Iterable[Outgoing], acks: Acks | None = None) -> Sequence[Outcome]:
        """Write records and wait for all of them; returns their outcomes in the same order."""
        batch = Batch(self._sender)
        plain = self._plain if acks is None else frozenset[str]()
        with self._hearing():
            batch.send(records, plain, lambda record: self._send_with_care(record, acks))
            batch.hear()
        return batch.ended()

    def send_at_once(self, record: Outgoing) -> Sent | None:
        """Write a record with the usual acks; None if that would have to wait, and then nothing was sent."""
        if self._acks == "twin" or record.topic not in self._known:
            return None
        sent = self._kind()
        try:
            self._sender.queue(*self._placed(record), sent)
        except NoRoom:
            return None
        except TwinlogError as error:
            sent.end(NotDone(str(error), error.hint))
        return sent

    @property
    def has_given_up(self) -> bool:
        """True if it takes no record any more, because a site refused it for good; a new Producer may."""
        return self._sender.has_given_up

    def flush(self, timeout_s: float | None = None) -> int:
        """Wait until every write has ended, or for so long; returns how many have not."""
        timeout_s = self._timeout_s + SERVE_S if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        with self._hearing():
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

    def _send_with_care(self, record: Outgoing, acks: Acks | None) -> Sent:
        """Write a record of any kind: the first of a topic, one for acks=twin, one that waits for room."""
        sent = self._kind()
        promise: Promise | None = None
        try:
            if (self._acks if acks is None else _check(acks)) == "twin":
                promise = self._promise(sent, record.topic)
            if record.topic not in self._known:
                self._look_for(record.topic)
            self._queue(self._placed(record), sent if promise is None else promise)
            self._sends += 1
            if not self._sends & (HEAR_EVERY - 1) and not self._sender.has_listeners:
                self._sender.serve(0.0)
        except TwinlogError as error:
            refused = NotDone(str(error), error.hint)
            if promise is None:
                sent.end(refused)
            else:
                self._end_at_twin(sent, refused)
        return sent

    def _placed(self, record: Outgoing) -> Outgoing:
        """Give a record without a key its partition, if they take turns; the topic is known."""
        if self._turns is None or record.partition is not None or record.key is not None:
            return record
        return record._replace(partition=self._turns.next(record.topic, self._known[record.topic]))

    def _promise(self, sent: Sent, topic: str) -> Promise | None:
        """For acks=twin, note what the standby is before the record goes; raises if one is needed."""
        try:
            standing, ends = self._admit(topic)
        except TwinlogError:
            if self._degrade:
                return None
            raise
        self._make_room()
        deadline = time.monotonic() + self._timeout_s
        return Promise(sent, topic, standing, ends, deadline, self._watching, self._end_at_twin)

    def _admit(self, topic: str) -> tuple[Standing, Mapping[TopicPartition, int]]:
        standby = self._ways.need_twin(topic, self._standby, "acks=twin", "acks='all', or degrade=True")
        return standby.admit(topic), standby.ends

    def _look_for(self, topic: str) -> None:
        """Ask the active for a topic once, because what is refused now was certainly not sent."""
        self._known[topic] = self._sender.check(topic, min(LOOK_S, self._timeout_s))
        if self._acks == "all" and self._turns is None:
            self._plain.add(topic)

    def _make_room(self) -> None:
        """Count one more write for acks=twin, when there are not too many."""
        with self._sender.answered:
            if not self._sender.answered.wait_for(lambda: self._at_twin < MOST_AT_TWIN, self._timeout_s):
                raise NoRoom(f"{MOST_AT_TWIN} writes are under way", hint="is the standby up? twinlog status")
            self._at_twin += 1

    def _queue(self, record: Outgoing, listener: Listener) -> None:
        """Give a record to librdkafka as soon as it has room; raises if it does not take it."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                self._sender.queue(*record, listener)
                return
            except NoRoom:
                if time.monotonic() > deadline:
                    raise
            if self._sender.has_listeners:
                with self._sender.answered:
                    self._sender.answered.wait(SERVE_S)
            else:
                with self._hearing():
                    self._sender.serve(SERVE_S)

    # After it was sent

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        """The caller hears the driver itself; the thread that does so otherwise stands back."""
        with self._lock:
            self._hearers += 1
        try:
            yield
        finally:
            with self._lock:
                self._hearers -= 1

    def _serve(self) -> None:
        is_needed = True
        while not self._is_ending.is_set():
            before = self._sends
            if is_needed:
                self._sender.serve(SERVE_S)
            else:
                self._sender.wanted.wait(STAND_BACK_S)
                self._sender.wanted.clear()
            is_busy = self._hearers > 0 or self._sends - before >= MANY
            is_needed = self._sender.has_listeners or self._sender.waiters > 0 or not is_busy
            if self._watch is not None:
                self._watch.expire()

    def _watching(self) -> Watch:
        """The watch, from the first write for acks=twin that the active has."""
        assert self._standby is not None  # it admitted the write
        with self._lock:
            if self._watch is None:
                self._watch = Watch(self._standby)
            return self._watch

    def _end_at_twin(self, sent: Sent, outcome: Outcome) -> None:
        """A write for acks=twin has ended."""
        sent.end(outcome)
        with self._sender.answered:
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
