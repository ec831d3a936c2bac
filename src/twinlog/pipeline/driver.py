"""The driver of the link: one generation of it, from taking over to the farewell.

It takes the rights of every earlier generation away, gives each task a principal of its own, hands
partitions from epoch to epoch, and takes the rights of a lost task away before anybody else gets
its partitions. Beside that it does the chores: topics, group offsets, log starts, the board.
Two drivers at once do no harm: the later one takes over, and the earlier one finds that out and ends.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from twinlog.errors import TwinlogError
from twinlog.mirror import rights
from twinlog.mirror.board import Board, Gathering
from twinlog.mirror.holder import Terms
from twinlog.mirror.rights import Claim
from twinlog.pipeline.assignment import spread
from twinlog.pipeline.exchange import Conversation, Exchange, Ticket
from twinlog.pipeline.ledger import Ledger, Task, TopicPartition
from twinlog.pipeline.task import terms_as_json
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster, Patience

PREPARE_TIMEOUT_S = 20.0
LOST_AFTER_S = 6.0  # longer than a task writes without an answer
WAIT_S = 0.05
SAY_WAIT_S = 1.0
TURN_S = 0.25
AGAIN_S = 2.0  # between an epoch that failed and the next
PATIENCE = Patience(connect_s=3.0, request_s=10.0, total_s=15.0)
FAREWELL = Patience(connect_s=1.0, request_s=2.0, total_s=2.0)  # a site may be away for good


class Runs(Protocol):
    """Where epochs run: Spark, or threads in a test."""

    def submit(self, epoch: int, slots: int, ticket: Ticket) -> Future[None]:
        """Begin an epoch; the future ends with its tasks."""


@dataclass(frozen=True)
class Mirrored:
    """One partition to mirror."""

    topic: str
    partition: int
    compacted: bool = False
    leader: int = field(default=-1, compare=False)  # at the standby; it may move without a new epoch

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return self.topic, self.partition


@dataclass(frozen=True)
class Sites:
    """How the two sites are reached."""

    active: Access  # as administrator
    standby: Access
    holder_access: Callable[[Claim], tuple[Access, Access]]  # as the holder of a claim
    forget_keys: Callable[[Callable[[Claim], bool]], object]  # of holders that have no rights any more


@dataclass(frozen=True)
class Ways:
    """How the link works."""

    link_id: int
    tasks: int = 2
    epoch_s: float = 300.0
    keep_identity: bool = True
    max_bytes_per_s: float | None = None


class Driver:
    """One generation of the link."""

    def __init__(
        self,
        sites: Sites,
        ways: Ways,
        runs: Runs,
        *,
        host: str = "127.0.0.1",
        log: Callable[[str], None] = print,
    ) -> None:
        self.board = Board(generation=time.time_ns() // 1000, pid=os.getpid(), tasks=ways.tasks)
        self._sites = sites
        self._ways = ways
        self._runs = runs
        self._log = log
        self._lock = threading.RLock()
        self._ledger = Ledger()
        self._gathering = Gathering()
        self._mirrored: dict[TopicPartition, Mirrored] = {}
        self._ending: set[Task] = set()
        self._claims: dict[int, Claim] = {}  # by slot; gone when its holder was lost
        self._next_claim = 1
        self._epoch = 0
        self._job: Future[None] | None = None
        self._begun_at = 0.0
        self._counted_at = time.monotonic()
        self._stopping = False
        self._paused = False
        self._deposed = ""
        self._exchange = Exchange(self._serve, host)
        self._admin_lock = threading.Lock()
        self._active = Cluster(sites.active, patience=PATIENCE)
        self._standby = Cluster(sites.standby, patience=PATIENCE)

    # From outside

    def take_over(self) -> None:
        """Claim the link: nobody of an earlier generation can write any more when this returns."""
        with self._admin_lock:
            rights.take_over(self._active, self._standby, self.board.generation)
        self._sites.forget_keys(lambda claim: claim.generation < self.board.generation)
        self.board.state = "running"

    def mirror(self, partitions: Sequence[Mirrored]) -> None:
        """What is to be mirrored from now on; a change begins a new epoch."""
        wanted = {one.key: one for one in partitions}
        with self._lock:
            if wanted != self._mirrored:
                self._mirrored = wanted
                self._begun_at = 0.0

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """What is mirrored now."""
        with self._lock:
            return frozenset(self._mirrored)

    def pause(self, paused: bool) -> None:
        """Let all tasks hand over, or go on."""
        with self._lock:
            if paused != self._paused:
                self._paused = paused
                self.board.state = "pausing" if paused else "running"
                self._ending |= self._ledger.holders if paused else set()
                self._begun_at = 0.0

    def turn(self) -> None:
        """Look after the epochs; to be called a few times a second."""
        if self._deposed:
            raise rights.Deposed(
                f"another mirror has taken over: {self._deposed}", hint="twinlog link status"
            )
        with self._lock:
            now = time.monotonic()
            failed = self._job_failed()
            age_s = now - self._begun_at
            over = self._begun_at == 0.0 or age_s > self._ways.epoch_s or (failed and age_s > AGAIN_S)
            if over and not self._paused and self._mirrored:
                self._begin_epoch(now)
            self._fill_board()

    def stop(self, timeout_s: float = 15.0) -> None:
        """Let all tasks hand over, give the rights back, and end."""
        with self._lock:
            self._stopping = True
            self.board.state = "stopping"
            self._ending |= self._ledger.holders
        pause = threading.Event()
        end = time.monotonic() + timeout_s
        while self._ledger.holders and time.monotonic() < end:
            pause.wait(WAIT_S)
        self._exchange.close()
        try:
            if not self._deposed:
                self._active.patience = self._standby.patience = FAREWELL
                with self._admin_lock:
                    rights.leave(self._active, self._standby, self.board.generation)
                self._sites.forget_keys(lambda claim: claim.generation == self.board.generation)
        except TwinlogError as error:
            self.trouble(f"rights are left for the next generation to take away: {error}")
        finally:
            self._active.close()
            self._standby.close()
            self._fill_board()
            self.board.state = "ended"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def trouble(self, what: str) -> None:
        """Remember and log something that went wrong."""
        self._log(what)
        self.board.last_error, self.board.last_error_at = what, time.time()

    # Epochs

    def _begin_epoch(self, now: float) -> None:
        before = {
            partition: slot
            for slot in range(self._ways.tasks)
            for partition in self._ledger.assigned(Task(self._epoch, slot, 0))
        }
        self._epoch += 1
        slots = spread(
            sorted(self._mirrored),
            self._ways.tasks,
            rates=self._gathering.rates(now - self._counted_at),
            leaders={key: one.leader for key, one in self._mirrored.items()},
            before=before,
        )
        self._counted_at = now
        dense = {number: slots[slot] for number, slot in enumerate(sorted(slots))}
        self._ledger.assign(self._epoch, dense)
        self._begun_at = now
        self.board.epoch = self._epoch
        self._job = self._runs.submit(self._epoch, len(dense), self._exchange.ticket)

    def _job_failed(self) -> bool:
        if self._job is None:
            return self._epoch > 0
        if not self._job.done():
            return False
        error = self._job.exception()
        if error is not None:
            self.trouble(
                f"epoch {self._epoch} failed: {str(error).splitlines()[0] if str(error) else error!r}"
            )
        self._job = None if error is None else Future()
        return True

    def _fill_board(self) -> None:
        self.board.counts = self._gathering.counts()
        self.board.holders = len(self._ledger.holders)
        if self.board.state == "pausing" and not self.board.holders:
            self.board.state = "paused"  # not before: until then something may still be copied
        self.board.partitions = [
            news for key, news in sorted(self._gathering.partitions.items()) if key in self._mirrored
        ]

    # Tasks, each in a thread of its own

    def _serve(self, conversation: Conversation) -> None:
        task = Task(*conversation.hear(LOST_AFTER_S)["hello"])
        try:
            prepared = self._prepare(conversation, task)
            taken = self._wait_for_turn(conversation, task)
            if taken is None:
                conversation.say({"over": True})
                return
        except (OSError, ValueError) as error:
            self.trouble(f"{task} was lost before it held anything: {error}")
            return
        doubtful: frozenset[TopicPartition] | None = None
        try:
            claim = self._claim(task.slot, prepared)
            doubtful = self._converse(conversation, task, claim, taken)
        except (OSError, ValueError, KeyError, TwinlogError) as error:
            self.trouble(f"{task} was lost: {error}")
        finally:
            if doubtful is None:
                self._fence(task)
            with self._lock:
                self._ledger.give_up(task, orderly=doubtful is not None, doubtful=doubtful or ())
                self._gathering.leave(task)
                self._ending.discard(task)

    def _prepare(self, conversation: Conversation, task: Task) -> Claim | None:
        """Let a task connect while others still hold its partitions; gives the claim that it did it with."""
        with self._lock:
            assigned = dict.fromkeys(sorted(self._ledger.assigned(task) & self._mirrored.keys()), False)
            if self._is_over(task) or not assigned:
                return None
        try:
            claim = self._claim(task.slot)
        except TwinlogError as error:
            self.trouble(f"preparing {task}: {error}")
            return None
        conversation.say({"prepare": self._given(claim, assigned)})
        conversation.hear(PREPARE_TIMEOUT_S)
        return claim

    def _is_over(self, task: Task) -> bool:
        """True if nobody wants this task any more."""
        return self._stopping or self._paused or task.epoch != self._epoch

    def _wait_for_turn(self, conversation: Conversation, task: Task) -> Mapping[TopicPartition, bool] | None:
        """Wait until nobody holds what this task is to hold; None if it is no longer wanted."""
        pause, said_at = threading.Event(), time.monotonic()
        while True:
            with self._lock:
                if self._is_over(task):
                    return None
                in_the_way = self._ledger.in_the_way(task)
                if not in_the_way:
                    return self._ledger.take(task)
                self._ending |= in_the_way
            if time.monotonic() - said_at > SAY_WAIT_S:
                conversation.say({"wait": True})
                said_at = time.monotonic()
            pause.wait(WAIT_S)

    def _claim(self, slot: int, granted: Claim | None = None) -> Claim:
        """The claim of a slot, with its rights; a lost one was taken away and is never used again.

        Nothing is asked if it is the one whose rights were granted just before: had anybody taken over
        since, there would be none left.
        """
        with self._admin_lock:  # from the look to the grant: `_fence` must not take it away in between
            with self._lock:
                claim = self._claims.get(slot)
                if claim is not None and claim == granted:
                    return claim
                topics = sorted({one.topic for one in self._mirrored.values()})
                if claim is None:
                    claim = Claim(self.board.generation, self._next_claim)
                    self._next_claim += 1
            try:
                rights.grant(self._active, self._standby, claim, topics)
            except rights.Deposed as error:
                self._deposed = str(error)
                raise
            with self._lock:
                self._claims[slot] = claim
        return claim

    def _converse(
        self, conversation: Conversation, task: Task, claim: Claim, taken: Mapping[TopicPartition, bool]
    ) -> frozenset[TopicPartition] | None:
        """Give a task its partitions and hear its reports; None if it did not hand over in order.

        Else those partitions that were in trouble when it did.
        """
        conversation.say(self._given(claim, taken))
        while True:
            message = conversation.hear(LOST_AFTER_S)
            with self._lock:
                self._gathering.hear(task, message["report"])
                end = task in self._ending
            conversation.say({"end": end})
            if "farewell" in message:
                if message["deposed"]:
                    self._look_whether_deposed(message["deposed"])
                if not message["farewell"]:
                    return None
                return frozenset((topic, partition) for topic, partition in message["doubtful"])

    def _given(self, claim: Claim, partitions: Mapping[TopicPartition, bool]) -> dict[str, Any]:
        """What a task is told: its terms, and its partitions with whether they were handed over in order."""
        active, standby = self._sites.holder_access(claim)
        share = self._ways.max_bytes_per_s
        terms = Terms(
            active,
            standby,
            self._ways.link_id,
            self._ways.keep_identity,
            share / self._ways.tasks if share else None,
        )
        tracks = [[*key, self._mirrored[key].compacted, orderly] for key, orderly in partitions.items()]
        return {"terms": terms_as_json(terms), "tracks": tracks}

    def _fence(self, task: Task) -> None:
        """Take a lost task's rights away; whatever it sent can then not be appended any more."""
        with self._admin_lock, self._lock:
            claim = self._claims.pop(task.slot, None)
            self.board.losses += 1
        pause = threading.Event()
        while claim is not None and not self._deposed:
            try:
                with self._admin_lock:
                    rights.revoke(self._active, self._standby, [claim])
                self._sites.forget_keys(lambda one: one == claim)
                return
            except TwinlogError as error:
                self.trouble(f"taking the rights of {task} away: {error}")
                pause.wait(AGAIN_S)

    def _look_whether_deposed(self, why: str) -> None:
        try:
            with self._admin_lock:
                ours = rights.still_ours(self._standby, self.board.generation)
        except TwinlogError as error:
            self.trouble(f"{why}; and nobody says whether the link is still ours: {error}")
            return
        if not ours:
            self._deposed = why
