"""A channel at work: one thread that turns its log into its ledger, and the way in for messages.

The registrar makes one for each channel, starts and halts it; Broadcast calls `order` and `configure`,
Deliver reads the ledger and looks at `errored`. The thread gives each record to `consuming` and carries
out the answer before it takes the next. Blocks of records that came together are flushed together, and
nobody sees one before. A chain that fails in a way that would make it differ from those of other orderers
does not go on: it tells `Support.crashed`, and the process is to end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import Enum

from twinlog.ordering import records
from twinlog.ordering.blocks import Position
from twinlog.ordering.consuming import (
    Action,
    Actions,
    Consuming,
    Drop,
    PostTimeToCut,
    Resubmit,
    SetGate,
    StartTimer,
    Stop,
    StopTimer,
    WriteBlock,
)
from twinlog.ordering.intake import Covered, Intake
from twinlog.ordering.ledger import Ledger
from twinlog.ordering.opening import Opened, open_log
from twinlog.ordering.posting import Tell
from twinlog.ordering.retrying import AskedToEnd
from twinlog.ordering.support import Support, Unavailable
from twinlog.ordering.topic import Reach, Topic
from twinlog.ordering.watch import Watch
from twinlog.ordering.writing import Writing, position_at_end
from twinlog.wire.deadlines import Clock
from twinlog.wire.tail import BEGINNING

LOG = logging.getLogger("twinlog.ordering")
TURN_S = 0.1  # at most, between two looks at whether to end


class State(Enum):
    """Where a chain is in its life; the words are what a sender is told, as Fabric's orderer has them."""

    STARTING = "backing Kafka cluster has not completed booting; try again later"
    RUNNING = "the channel is open"
    STOPPED = "the channel cannot go on"  # behind a record that nobody can make sense of, or crashed
    HALTED = "consenter for this channel has been halted"


class Chain:
    """One channel's."""

    def __init__(
        self,
        support: Support,
        ledger: Ledger,
        reach: Reach,
        *,
        covered: Covered | None = None,
        release: Callable[[], None] = lambda: None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.ledger = ledger
        self._support = support
        self._reach = reach
        self._covered = covered
        self._release = release  # what was opened for this chain alone, when it has ended
        self._clock = clock
        self._watch = Watch(support.channel_id, reach.retry, ledger.wake, clock)
        self._state = State.STARTING
        self._is_gate_open = True
        self._changed = threading.Condition()  # of state and gate
        self._halted = threading.Event()
        self._topic = Topic(support.channel_id, reach, self._halted.wait)
        self._thread = threading.Thread(target=self._run, name=f"chain-{support.channel_id}", daemon=True)
        self._uncut: deque[int] = deque()  # blocks whose TIMETOCUT was not written
        self._timer_at: float | None = None
        self._stop = ""

    # The way in, for any thread

    @property
    def errored(self) -> threading.Event:
        """Set while nobody should wait for blocks."""
        return self._watch.errored

    @property
    def trouble(self) -> str:
        """Why, for people."""
        return self._watch.trouble

    @property
    def state(self) -> State:
        """Where it is in its life."""
        return self._state

    @property
    def is_ready(self) -> bool:
        """True if messages may come in, False if they have to wait; raises `Unavailable` if they cannot."""
        self._insist()
        return self._is_gate_open

    def wait_ready(self, timeout_s: float) -> None:
        """Wait until messages may come in; raises `Unavailable` if they cannot, or not in time."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_gate_open or self._state is not State.RUNNING, max(0.0, timeout_s)
            )
            if not self.is_ready:
                raise Unavailable("a new configuration is on its way; try again later")

    def order(self, envelope: bytes, sequence: int) -> Future[int]:
        """Write a message that was checked at a config sequence; the future ends when the log has it."""
        self._insist()
        return self._topic.post(records.normal(envelope, sequence))

    def order_together(self, batch: Sequence[tuple[bytes, int, Tell]]) -> None:
        """As `order`, for messages that came together; each one's function is told how it ended."""
        self._insist()
        values = [records.normal(envelope, sequence) for envelope, sequence, _ in batch]
        self._topic.post_together(values, [tell for _, _, tell in batch])

    def configure(self, envelope: bytes, sequence: int) -> Future[int]:
        """Write a configuration that was made at a config sequence."""
        self._insist()
        return self._topic.post(records.config(envelope, sequence))

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def halt(self) -> None:
        """End, and wait for it. May be called again, and without a start."""
        self._halted.set()
        if self._thread.is_alive():
            self._thread.join()
        self._set_state(State.HALTED)
        self._topic.close()
        self._release()

    def _insist(self) -> None:
        if self._state is not State.RUNNING:
            raise Unavailable(self._state.value, where=self._support.channel_id)

    # The thread

    def _run(self) -> None:
        try:
            self._work()
        except AskedToEnd:
            return
        except BaseException as error:
            self._set_state(State.STOPPED)
            self._watch.ended(str(error))
            LOG.exception("channel %s has crashed", self._support.channel_id)
            self._support.crashed(error)
        else:
            if self._stop:
                self._set_state(State.STOPPED)
                self._watch.ended(self._stop)
        finally:
            self._watch.ended("the channel has ended")

    def _work(self) -> None:
        position = position_at_end(self.ledger)
        first = BEGINNING if position is None else position.last_offset + 1
        opened = open_log(self._topic, first, self._reach.retry, self._halted.wait, self._watch.not_begun)
        try:
            LOG.info("channel %s: reading from offset %s", self._support.channel_id, first)
            self._machine = Consuming(self._support, self.ledger.height, position or Position(-1))
            self._writing = Writing(self._support, self.ledger, self._settle, self._clock)
            self._intake = Intake(first, opened.tail.take, self._halted.wait, self._covered)
            self._is_gate_open = self._machine.is_gate_open
            self._watch.begun()
            self._set_state(State.RUNNING)
            while not (self._halted.is_set() or self._stop):
                self._turn(opened)
        finally:
            opened.tail.close()

    def _turn(self, opened: Opened) -> None:
        """Deal with what is there, or wait a moment for it."""
        seen = self._intake.next_offset
        entries = self._intake.take(self._wait_s())
        for offset, value in entries:
            actions = self._machine.record(offset, value)
            if actions:
                self._carry_out(actions)
                if self._stop:
                    break
        self._writing.flush()
        if self._intake.next_offset != seen:
            self._watch.heard()
        if entries and entries[-1][0] >= opened.connected_at:
            self._carry_out(self._machine.caught_up())
        while self._uncut:
            self._carry_out(self._machine.cut_not_posted(self._uncut.popleft()))
        if self._timer_at is not None and self._clock() >= self._timer_at:
            self._timer_at = None
            self._carry_out(self._machine.timer_fired())
        intake = self._intake
        self._watch.look(opened.tail, intake.next_offset, intake.trouble, self._post_connect)

    def _wait_s(self) -> float:
        if self._timer_at is None:
            return TURN_S
        return min(TURN_S, max(0.0, self._timer_at - self._clock()))

    def _carry_out(self, actions: Actions) -> None:
        for action in actions:
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case WriteBlock():
                self._writing.add(action)
            case StartTimer():
                self._timer_at = self._clock() + self._support.batch_timeout_s
                self._writing.began()
            case StopTimer():
                self._timer_at = None
            case PostTimeToCut(number):
                self._post_time_to_cut(number)
            case Resubmit(value):
                self._topic.insist(value)
            case SetGate(is_open):
                with self._changed:
                    self._is_gate_open = is_open
                    self._changed.notify_all()
            case Drop(why):
                LOG.info("channel %s: %s", self._support.channel_id, why)
            case Stop(why):
                self._stop = why
                LOG.error("channel %s stops: %s", self._support.channel_id, why)

    def _settle(self) -> None:
        """Wait for what was sent again: no block may stand behind it before the log has it."""
        patient_until = self._clock() + self._reach.retry.network_timeouts.read_timeout_s
        while not self._topic.settle(TURN_S):
            if self._halted.is_set():
                raise AskedToEnd("asked to end")
            if self._clock() >= patient_until:
                self._watch.stuck("what has to be sent again is not taken by the log")

    def _post_time_to_cut(self, number: int) -> None:
        def ended(future: Future[int]) -> None:
            if future.exception() is not None:
                self._uncut.append(number)

        try:
            self._topic.post(records.time_to_cut(number)).add_done_callback(ended)
        except Unavailable:
            self._uncut.append(number)

    def _post_connect(self) -> Future[int]:
        return self._topic.post(records.connect())

    def _set_state(self, state: State) -> None:
        with self._changed:
            self._state = state
            self._changed.notify_all()
