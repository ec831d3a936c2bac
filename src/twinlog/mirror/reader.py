"""Reads partitions from one broker of the active and plans what is to be done with them.

A thread of a holder. It fetches all its partitions in one session, one fetch at a time, each from
where its twin's plan ends. A partition whose twin has enough waiting in memory is left out until
some of it was sent, and nothing is fetched while all together have too much: memory stays bounded
however far behind the standby is, and however many partitions there are.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from uuid import UUID

from twinlog.errors import TwinlogError
from twinlog.mirror.pace import Pace
from twinlog.mirror.steps import plan
from twinlog.mirror.track import TopicPartition, Track
from twinlog.mirror.twin import Twin
from twinlog.wire import codes
from twinlog.wire.access import Access
from twinlog.wire.batches import UnreadableBatch
from twinlog.wire.cluster import BrokerAddress
from twinlog.wire.connection import Connection
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetching import Fetched, FetchLimits, FetchSession

LIMITS = FetchLimits(max_wait_ms=250, max_bytes=16 << 20, partition_max_bytes=4 << 20)
CONNECT_TIMEOUT_S = 10.0
FETCH_TIMEOUT_S = 15.0
ENOUGH_BYTES = 8 << 20  # waiting in memory for one partition, where there are few
LEAST_BYTES = 256 << 10  # the same where there are many
SHARED_BYTES = 128 << 20  # what is shared out among them
MOST_BYTES = 256 << 20  # a fetch can bring more than asked for; from here on nothing is fetched
SMALL_SHARE = 4  # less than this part of an answer must not keep all of it in memory
LOOK_AGAIN_S = 0.2
FULL_S = 0.02  # half of what is enough for a partition lasts its writer longer

Offered = Callable[[Track, Twin], None]
Surprised = Callable[[Track, Twin, str, bool], None]  # the last: somebody has to change something first


class Reader(threading.Thread):
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
        super().__init__(name=f"reader-{broker.id}", daemon=True)
        self.broker = broker
        self._access = access
        self._ids = ids
        self._pace = pace
        self._keep_identity = keep_identity
        self._offered = offered
        self._surprised = surprised
        self._inbox: queue.SimpleQueue[tuple[Track, Twin] | None] = queue.SimpleQueue()
        self._reading: dict[TopicPartition, tuple[Track, Twin]] = {}
        self._full: set[TopicPartition] = set()
        self._ended = False

    def read(self, track: Track, twin: Twin) -> None:
        """Read a partition for this twin from now on."""
        self._inbox.put((track, twin))

    def end(self) -> None:
        """End the thread after the fetch that is under way."""
        self._ended = True
        self._inbox.put(None)

    def run(self) -> None:
        """Fetch until the end, or until the connection breaks."""
        try:
            with Connection(self.broker.address, self._access, timeout_s=CONNECT_TIMEOUT_S) as connection:
                session = FetchSession(connection, LIMITS, ids=self._ids)
                while not self._ended:
                    self._round(session)
            self._break("this connection has ended")
        except TwinlogError as error:
            self._break(str(error))
        except Exception as error:  # whatever it is, the steward must hear that nobody reads any more
            self._break(f"{type(error).__name__}: {error}")
            raise

    def _break(self, why: str) -> None:
        self._ended = True
        self._take_inbox(wait=False)
        for track, twin in self._reading.values():
            self._surprised(track, twin, f"reading from the active: {why}", False)

    @property
    def has_ended(self) -> bool:
        """True when it takes no more partitions."""
        return self._ended

    def _round(self, session: FetchSession) -> None:
        has_room = self._waiting_bytes() < MOST_BYTES
        self._take_inbox(wait=not session.wanted or not has_room, session=session)
        self._resume(session)
        if not session.wanted or not has_room or self._ended:
            return
        session.send(Deadline(FETCH_TIMEOUT_S))
        came = session.receive(Deadline(FETCH_TIMEOUT_S))
        all_bytes = sum(len(fetched.records) for fetched in came)
        for fetched in came:
            self._take(session, fetched, all_bytes)

    def _waiting_bytes(self) -> int:
        return sum(twin.queued_bytes for track, twin in self._reading.values() if track.twin is twin)

    def _enough_bytes(self) -> int:
        return max(LEAST_BYTES, min(ENOUGH_BYTES, SHARED_BYTES // max(1, len(self._reading))))

    def _take_inbox(self, *, wait: bool, session: FetchSession | None = None) -> None:
        while True:
            try:
                timeout_s = FULL_S if self._full else LOOK_AGAIN_S
                came = self._inbox.get(block=wait, timeout=timeout_s if wait else None)
            except queue.Empty:
                return
            wait = False
            if came is not None:
                track, twin = came
                self._reading[track.key] = came
                self._full.discard(track.key)
                if session is not None:
                    session.want(track.key, twin.planned)

    def _resume(self, session: FetchSession) -> None:
        for key in list(self._full):
            track, twin = self._reading[key]
            if track.twin is not twin:
                self._leave(session, key)
            elif twin.queued_bytes < self._enough_bytes() // 2:
                self._full.discard(key)
                session.want(key, twin.planned)

    def _take(self, session: FetchSession, fetched: Fetched, all_bytes: int) -> None:
        key = (fetched.topic, fetched.partition)
        track, twin = self._reading[key]
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
        if twin.queued_bytes >= self._enough_bytes():
            self._full.add(key)
            session.forget(key)
        else:
            session.want(key, twin.planned)
        self._pace.spend(len(records))

    def _leave(self, session: FetchSession, key: TopicPartition) -> None:
        session.forget(key)
        self._full.discard(key)
        del self._reading[key]
