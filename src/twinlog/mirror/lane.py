"""Partitions that the same broker leads at the active and the same one at the standby, read side by side.

A hand of `verify`. All of a lane's partitions share one fetch session at each of the two brokers; some
are open at a time, and a side that is ahead of the other waits, so memory stays bounded. A partition
leaves its lane compared, or with a trouble that may be gone at the next attempt, or with a reason
that will not.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from twinlog.errors import TwinlogError
from twinlog.mirror.comparison import Comparison
from twinlog.mirror.missing import Side
from twinlog.mirror.pace import Pace
from twinlog.mirror.track import TopicPartition
from twinlog.wire import codes
from twinlog.wire.batches import UnreadableBatch
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetching import Fetched, FetchLimits, FetchSession

MOST_OPEN = 8
ENOUGH_BYTES = 4 << 20  # of one side of a partition, waiting for the other side
QUIET_S = 10.0  # so long nothing came, although all of it should be there
TIMEOUT_S = 20.0
LIMITS = FetchLimits(max_wait_ms=250, max_bytes=8 << 20, partition_max_bytes=2 << 20)


@dataclass
class Job:
    """One partition to compare."""

    place: TopicPartition
    comparison: Comparison
    trouble: str = ""  # why the last attempt ended
    skipped: str = ""  # why there will be no other
    attempts: int = 0
    stood_at: int = -1  # where the last attempt ended

    @property
    def is_done(self) -> bool:
        """True if there is nothing more to try."""
        return self.comparison.is_over or bool(self.skipped)

    def count_attempt(self, most: int) -> None:
        """Give up when so many attempts in a row got no further."""
        self.attempts = self.attempts + 1 if self.comparison.position == self.stood_at else 1
        self.stood_at = self.comparison.position
        if self.attempts >= most:
            self.skipped = self.trouble or f"it could not be read behind offset {self.stood_at}"


Advanced = Callable[[Job, int], None]


class Lane:
    """Two sessions and the partitions that are read through them."""

    def __init__(
        self,
        brokers: Mapping[Side, tuple[Cluster, int]],
        ids: Mapping[Side, Mapping[str, UUID]],
        jobs: Sequence[Job],
        pace: Pace,
        advanced: Advanced,
    ) -> None:
        self._brokers = brokers
        self._ids = ids
        self._waiting = deque(jobs)
        self._open: dict[TopicPartition, Job] = {}
        self._pace = pace
        self._advanced = advanced
        self._sessions: dict[Side, FetchSession] = {}

    def run(self) -> None:
        """Read and compare until every partition is done or in trouble."""
        try:
            for side, (cluster, broker_id) in self._brokers.items():
                self._sessions[side] = FetchSession(cluster.broker(broker_id), LIMITS, ids=self._ids[side])
            self._read()
            for session in self._sessions.values():
                session.end(Deadline(TIMEOUT_S))
        except TwinlogError as error:
            for job in (*self._open.values(), *self._waiting):
                job.trouble = str(error)
            for session in self._sessions.values():
                session.connection.close()  # the other one's answer may still be on its way

    def _read(self) -> None:
        heard_s = time.monotonic()
        while self._open or self._waiting:
            while self._waiting and len(self._open) < MOST_OPEN:
                job = self._waiting.popleft()
                self._open[job.place] = job
            asked = self._ask()
            moved = self._compare()  # while the brokers look for more
            came = [self._take(side) for side in asked]
            if moved or any(came):
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > QUIET_S:
                self._give_up()

    def _ask(self) -> list[Side]:
        asked = []
        for side, session in self._sessions.items():
            for place, job in self._open.items():
                comparison = job.comparison
                if comparison.has_all(side) or comparison.waiting_bytes(side) >= ENOUGH_BYTES:
                    session.forget(place)
                else:
                    session.want(place, comparison.next_offset(side))
            if session.wanted:
                session.send(Deadline(TIMEOUT_S))
                asked.append(side)
        return asked

    def _take(self, side: Side) -> bool:
        """Take what came; False if there was nothing new."""
        news = False
        for fetched in self._sessions[side].receive(Deadline(TIMEOUT_S)):
            job = self._open.get((fetched.topic, fetched.partition))
            if job is not None:
                news |= self._take_one(side, job, fetched)
            self._pace.spend(len(fetched.records))
        return news

    def _take_one(self, side: Side, job: Job, fetched: Fetched) -> bool:
        if fetched.code != codes.NONE:
            self._leave(job)
            job.trouble = f"reading it at the {side.value}: {codes.name_of(fetched.code)}"
            return True
        try:
            return job.comparison.offer(side, fetched.records, fetched.aborted)
        except UnreadableBatch as error:
            self._leave(job)
            job.skipped = f"reading it at the {side.value}: {error}"
            return True

    def _compare(self) -> bool:
        moved = False
        for job in list(self._open.values()):
            try:
                count = job.comparison.advance()
            except UnreadableBatch as error:
                job.skipped = str(error)
                count = 0
            if count:
                moved = True
                self._advanced(job, count)
            if job.is_done:
                self._leave(job)
        return moved

    def _give_up(self) -> None:
        for job in list(self._open.values()):
            self._leave(job)
            stands = {side: job.comparison.next_offset(side) for side in Side}
            behind = min(stands, key=lambda side: stands[side])
            job.skipped = (
                f"readers at the {behind.value} get no further than offset {stands[behind]}:"
                " is a transaction open?"
            )

    def _leave(self, job: Job) -> None:
        del self._open[job.place]
        for session in self._sessions.values():
            session.forget(job.place)
