"""Reads partitions from one broker of the active and plans what is to be done with them.

A thread of a holder. It fetches all its partitions in one session, one fetch at a time, each from
where its twin's plan ends. `intake` says which of them: memory stays bounded however far behind the
standby is, and however many partitions there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from twinlog.mirror.hand import Hand
from twinlog.mirror.intake import Intake
from twinlog.mirror.pace import Pace
from twinlog.mirror.steps import plan
from twinlog.mirror.track import TopicPartition, Track, Work
from twinlog.mirror.twin import Twin
from twinlog.wire import codes
from twinlog.wire.access import Access
from twinlog.wire.batches import UnreadableBatch
from twinlog.wire.cluster import BrokerAddress
from twinlog.wire.connection import Connection
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetching import Fetched, FetchLimits, FetchSession

LIMITS = FetchLimits(max_bytes=16 << 20, partition_max_bytes=4 << 20)
FETCH_TIMEOUT_S = 15.0
SMALL_SHARE = 4  # less than this part of an answer must not keep all of it in memory

Offered = Callable[[Track, Twin], None]
Surprised = Callable[[Track, Twin, str, bool], None]  # the last: somebody has to change something first


class Reader(Hand[Work]):
    """One broker of the active."""

    def __init__(
        self,
        broker: BrokerAddress,
        access: Access,
        ids: Mapping[str, UUID],
        pace: Pace,
        *,
        keep_identity: bool,
        offered: Offered,
        surprised: Surprised,
    ) -> None:
        super().__init__("reader", broker, access)
        self._ids = ids
        self._pace = pace
        self._keep_identity = keep_identity
        self._offered = offered
        self._surprised = surprised
        self._intake = Intake()

    def read(self, track: Track, twin: Twin) -> None:
        """Read a partition for this twin from now on."""
        self._inbox.put((track, twin))

    def _work(self, connection: Connection) -> None:
        session = FetchSession(connection, LIMITS, ids=self._ids)
        while not self._ended:
            self._round(session)

    def _give_up(self, why: str) -> None:
        for work in self._messages():
            self._intake.add(*work)
        for track, twin in self._intake:
            self._surprised(track, twin, f"reading from the active: {why}", False)

    def _round(self, session: FetchSession) -> None:
        may_fetch = bool(session.wanted) and self._intake.has_room
        patience_ms = self._intake.patience_ms
        for track, twin in self._messages(wait_s=0.0 if may_fetch else patience_ms / 1000):
            self._intake.add(track, twin)
            session.want(track.key, twin.planned)
        for track, twin in self._intake.drained():
            if track.twin is twin:
                session.want(track.key, twin.planned)
            else:
                self._leave(session, track.key)
        if not may_fetch or self._ended:
            return
        session.send(Deadline(FETCH_TIMEOUT_S), max_wait_ms=self._intake.patience_ms)
        came = session.receive(Deadline(FETCH_TIMEOUT_S))
        all_bytes = sum(len(fetched.records) for fetched in came)
        for fetched in came:
            self._take(session, fetched, all_bytes)

    def _take(self, session: FetchSession, fetched: Fetched, all_bytes: int) -> None:
        key = (fetched.topic, fetched.partition)
        track, twin = self._intake[key]
        if track.twin is not twin:  # something happened to it: the steward will say how it goes on
            self._leave(session, key)
            return
        if fetched.code != codes.NONE:
            self._leave(session, key)
            self._surprised(track, twin, f"reading from the active: {codes.name_of(fetched.code)}", False)
            return
        track.active_end = fetched.last_stable_offset
        if not fetched.records:
            return
        records = fetched.records
        if len(records) * SMALL_SHARE < all_bytes:
            records = memoryview(bytearray(records))
        try:
            twin.offer(plan(records, fetched.aborted, twin.planned, keep_identity=self._keep_identity))
        except UnreadableBatch as error:
            self._leave(session, key)
            self._surprised(track, twin, f"reading from the active: {error}", True)
            return
        self._offered(track, twin)
        if self._intake.is_full(key):
            session.forget(key)
        else:
            session.want(key, twin.planned)
        self._pace.spend(len(records))

    def _leave(self, session: FetchSession, key: TopicPartition) -> None:
        session.forget(key)
        self._intake.remove(key)
