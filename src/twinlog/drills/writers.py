"""The writers of a drill's load that are not Java: librdkafka's producers, and the library with acks=twin.

Each runs in a process of its own (`performer`) until told to stop, and writes down every record when it
is sent and when it is answered. A librdkafka producer that gives up for good is not replaced: clients
are to go on without a restart, and one that falls silent breaks the drill. Transactional producers and
the library say when a new one is needed, and get one.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from twinlog.client.outcomes import Done, NotDone, Unknown, UnknownAtTwin
from twinlog.client.producer import Producer
from twinlog.client.sent import Sent
from twinlog.drills.cast import KEYS, USER, Part
from twinlog.drills.history import Happening, Outcome, Step, Transaction, Write
from twinlog.drills.reach import LIBRDKAFKA_DEFAULTS, gate_access, tuning_of
from twinlog.drills.recording import Recorder
from twinlog.errors import KafkaError, TwinlogError
from twinlog.sites.home import Home
from twinlog.wire.driver import Delivered, NoRoom, Outgoing, Report, Sender, Settings
from twinlog.wire.transactional import Transactional, TransactionFailed

RECORD_TIMEOUT_S = 120.0  # as the printed client files have it
FLUSH_S = 60.0
PREPARE_S = 10.0
TRANSACTION_S = 20.0
# So long a step of a transaction may take, a new leader included; then a program opens a new producer.
FEWEST_PER_TRANSACTION = 4  # records
TRANSACTIONS_PER_S = 8.0  # at most: each waits for its end, so a faster load needs larger ones
ABORT_EVERY = 5  # so many transactions are between two that are aborted on purpose
LOOK_AGAIN_S = 0.2
GIVE_UP_S = 40.0  # without a success, longer than a write has; then a program opens a new producer
_NUMBER = re.compile(r"\d+")


@dataclass
class Stage:
    """What a writer stands on: its part, its bus, its history, and when to stop."""

    part: Part
    home: Home
    recorder: Recorder
    stop: threading.Event
    numbers: count[int] = field(default_factory=count)
    succeeded_s: float = field(default_factory=time.monotonic)  # when something did last
    _trouble: str = ""

    def begun(self, transaction: str | None = None) -> Write:
        """The next write, written down as begun."""
        client, number = self.part.client, next(self.numbers)
        write = Write(
            client.name,
            client.program,
            client.acks,
            client.idempotent,
            client.topic,
            f"{client.name}:{number}",
            Outcome.UNKNOWN,
            start_s=self.recorder.now_s(),
            key=str(number % KEYS),
            transaction=transaction,
        )
        self.recorder.add(write)
        return write

    def ended(self, write: Write, outcome: Outcome, place: tuple[int, int] | None = None) -> None:
        """Write down how a write ended, and where."""
        if outcome is Outcome.OK:
            self.succeeded_s = time.monotonic()
        partition, offset = place if place is not None else (None, None)
        self.recorder.add(
            replace(write, outcome=outcome, end_s=self.recorder.now_s(), partition=partition, offset=offset)
        )

    def trouble(self, reason: str) -> None:
        """Write down why writes fail, once for each reason in a row, whatever the numbers in it."""
        kind = _NUMBER.sub("", reason)
        if kind != self._trouble:
            self._trouble = kind
            self.recorder.event(Happening.NOTE, f"{self.part.client.name} was told: {reason}")

    def told(self, write: Write) -> Callable[[Report], None]:
        """Takes what librdkafka says of a write."""

        def told(report: Report) -> None:
            if isinstance(report, Delivered):
                self.ended(write, Outcome.OK, (report.partition, report.offset))
            else:
                self.ended(write, Outcome.FAILED if report.is_certain else Outcome.UNKNOWN)
                self.trouble(report.reason)

        return told


class Beat:
    """Says how long it is until the next record is due; what was missed is not made up for."""

    def __init__(self, rate: float) -> None:
        self._every_s = 1.0 / rate
        self._next_s = time.monotonic()

    def left_s(self) -> float:
        """Seconds until then, 0 when it is due."""
        return max(0.0, self._next_s - time.monotonic())

    def passed(self) -> None:
        """One was sent."""
        self._next_s = max(self._next_s + self._every_s, time.monotonic() - self._every_s)


def write_records(stage: Stage) -> None:
    """librdkafka's producer: idempotent or not, with acks of any level."""
    client = stage.part.client
    settings: Settings = {
        "client.id": client.name,
        "acks": client.acks,
        "enable.idempotence": client.idempotent,
        **({} if client.tuned else LIBRDKAFKA_DEFAULTS),
    }
    sender = Sender(
        gate_access(stage.home), timeout_s=RECORD_TIMEOUT_S, tuning=tuning_of(stage.home), settings=settings
    )
    beat = Beat(stage.part.rate)
    while not stage.stop.is_set():
        sender.serve(beat.left_s())
        if beat.left_s():
            continue
        beat.passed()
        write = stage.begun()
        try:
            sender.send(Outgoing(write.topic, write.value.encode(), _key(write)), stage.told(write))
        except NoRoom:
            stage.ended(write, Outcome.FAILED)
            sender.serve(LOOK_AGAIN_S)
        except KafkaError as error:
            stage.ended(write, Outcome.FAILED)
            stage.recorder.event(Happening.NOTE, f"{client.name} cannot go on: {error.what}")
            break
    sender.flush(FLUSH_S)
    sender.close()


def records_per_transaction(rate: float) -> int:
    """How many records a transaction has, for so many records a second."""
    return max(FEWEST_PER_TRANSACTION, math.ceil(rate / TRANSACTIONS_PER_S))


def write_transactions(stage: Stage) -> None:
    """librdkafka's transactional producer: most transactions are committed, some aborted on purpose."""
    beat = Beat(stage.part.rate / records_per_transaction(stage.part.rate))
    producer: Transactional | None = None
    for number in count():
        if stage.stop.wait(beat.left_s()):
            break
        beat.passed()
        producer = producer if producer is not None else _prepared(stage)
        if producer is None:
            break
        try:
            transact(stage, producer, number)
        except TransactionFailed as error:
            # Without an answer nobody knows; a new producer of the name ends what is open.
            if error.must_reopen or error.retriable or not _aborted(producer, stage.part.client.patience_s):
                producer.close()
                producer = None
    if producer is not None:
        producer.close()


def _prepared(stage: Stage) -> Transactional | None:
    """A producer that may begin; None if it is time to stop."""
    name = stage.part.client.name
    while not stage.stop.is_set():
        producer = Transactional(
            gate_access(stage.home), name=name, timeout_s=TRANSACTION_S, tuning=tuning_of(stage.home)
        )
        try:
            producer.prepare(PREPARE_S)
            return producer
        except TransactionFailed:
            producer.close()
            stage.stop.wait(LOOK_AGAIN_S)
    return None


def transact(stage: Stage, producer: Transactional, number: int) -> None:
    """One transaction; it raises when nobody knows how it ended, or when it was not begun."""
    name = f"{stage.part.client.name}/{number}"

    def note(step: Step, outcome: Outcome, failed: TransactionFailed | None = None) -> None:
        # One that may be tried again has met with our own patience, which is shorter than the library's.
        error = "" if failed is None or failed.retriable else failed.what
        one = Transaction(stage.part.client.name, name, step, outcome, stage.recorder.now_s(), error)
        stage.recorder.add(one)

    producer.begin()
    note(Step.BEGIN, Outcome.OK)
    for _ in range(records_per_transaction(stage.part.rate)):
        write = stage.begun(name)
        try:
            producer.send(Outgoing(write.topic, write.value.encode(), _key(write)), stage.told(write))
        except TransactionFailed:
            stage.ended(write, Outcome.FAILED)
            raise
    if number % ABORT_EVERY == ABORT_EVERY - 1:
        producer.flush(stage.part.client.patience_s)  # else what is still queued would never be sent
        _end(Step.ABORT, producer.abort, stage.part.client.patience_s, note)
    else:
        _end(Step.COMMIT, producer.commit, stage.part.client.patience_s, note)


def _end(step: Step, end: Callable[[float], None], patience_s: float, note: Callable[..., None]) -> None:
    """End a transaction, and write down how that went."""
    try:
        end(patience_s)
    except TransactionFailed as failed:
        note(step, Outcome.UNKNOWN, failed)
        raise
    note(step, Outcome.OK)


def _aborted(producer: Transactional, patience_s: float) -> bool:
    """End what is open, so that the same producer can go on; False if it cannot."""
    try:
        producer.abort(patience_s)
    except TransactionFailed:
        return False
    return True


def write_to_twin(stage: Stage) -> None:
    """The library's producer with acks=twin; a new one when the sites change roles, or nothing works."""
    beat = Beat(stage.part.rate)
    producer: Producer | None = None
    term, opened_s = 0, 0.0
    while not stage.stop.wait(beat.left_s()):
        beat.passed()
        now = stage.home.state().term
        stuck_s = time.monotonic() - max(opened_s, stage.succeeded_s)
        try:
            if producer is None or now != term or producer.has_given_up or stuck_s > GIVE_UP_S:
                if producer is not None:
                    producer.close(0.0)
                    stage.stop.wait(LOOK_AGAIN_S)  # a site that is about to open refuses it a moment longer
                producer, term, opened_s = None, now, time.monotonic()
                producer = Producer.of_bus(stage.home.file, USER, acks="twin")
        except TwinlogError as error:
            stage.trouble(error.what)
            stage.stop.wait(LOOK_AGAIN_S)
            continue
        write = stage.begun()
        future = producer.send(write.topic, write.value.encode(), _key(write))
        future.add_done_callback(partial(_twin_ended, stage, write))
    if producer is not None:
        producer.close(FLUSH_S)


def _twin_ended(stage: Stage, write: Write, done: Sent) -> None:
    match done.result():
        case Done(partition, offset, twin=True):
            stage.ended(write, Outcome.OK, (partition, offset))
        case NotDone(reason):
            stage.ended(write, Outcome.FAILED)
            stage.trouble(reason)
        case Unknown(reason) | UnknownAtTwin(_, _, reason):
            stage.ended(write, Outcome.UNKNOWN)
            stage.trouble(reason)
        case _:
            stage.ended(write, Outcome.UNKNOWN)


def _key(write: Write) -> bytes:
    return (write.key or "").encode()
