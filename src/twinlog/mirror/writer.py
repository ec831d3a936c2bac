"""Writes partitions to one broker of the standby, and hears what became of it.

A thread of a holder, one for each broker that leads twins. A request carries one batch for each
partition that may send one; several requests are in flight, and the broker takes them one after the
other. Gaps go in requests of their own, for partitions that have nothing else in flight: markers,
then the question for the log ends, which must be where the gaps end.
A twin is given up only when all that was sent for it was answered, or the connection broke: whoever
reads the standby's log end then knows whether something may still be on its way.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from twinlog.errors import TwinlogError
from twinlog.mirror.reactions import Reaction
from twinlog.mirror.steps import Copy, Fill
from twinlog.mirror.track import Track
from twinlog.mirror.twin import Sent, Twin
from twinlog.wire import codes, markers
from twinlog.wire.access import Access
from twinlog.wire.appending import MOST_IN_FLIGHT, Appended, Appender
from twinlog.wire.cluster import BrokerAddress
from twinlog.wire.connection import Connection
from twinlog.wire.deadlines import Deadline

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 12.0  # longer than a broker's session: its partitions have moved by then
MOST_REQUEST_BYTES = 8 << 20
LOOK_AGAIN_S = 0.2

Work = tuple[Track, Twin]
Surprised = Callable[[Track, Twin, str, bool], None]


class Drop(NamedTuple):
    """A twin that is to be given up, and why."""

    track: Track
    twin: Twin
    why: str
    stop: bool  # somebody has to change something first


@dataclass
class Appending:
    """Batches in flight, one for each partition."""

    batches: list[tuple[Track, Twin, Copy]]

    @property
    def works(self) -> list[Work]:
        """Whose they are."""
        return [(track, twin) for track, twin, _ in self.batches]


@dataclass
class Filling:
    """Gaps whose markers are in flight; nothing else of these partitions is."""

    gaps: list[tuple[Track, Twin, Fill]]
    sent: markers.Filling | None = None

    @property
    def works(self) -> list[Work]:
        """Whose they are."""
        return [(track, twin) for track, twin, _ in self.gaps]


class Writer(threading.Thread):
    """One broker of the standby."""

    def __init__(
        self,
        broker: BrokerAddress,
        access: Access,
        ids: Mapping[str, UUID],
        *,
        may_write: Callable[[], bool],
        surprised: Surprised,
        deposed: Callable[[str], None],
    ) -> None:
        super().__init__(name=f"writer-{broker.id}", daemon=True)
        self.broker = broker
        self._access = access
        self._ids = ids
        self._may_write = may_write
        self._surprised = surprised
        self._deposed = deposed
        self._inbox: queue.SimpleQueue[Work | Drop | None] = queue.SimpleQueue()
        # By the twin's identity, in the order of arrival:
        self._ready: dict[int, Work] = {}
        self._dropped: dict[int, Drop] = {}  # something of theirs is still in flight
        self._in_flight: deque[Appending | Filling] = deque()
        self._ended = False

    def wake(self, track: Track, twin: Twin) -> None:
        """Something was offered to this twin."""
        self._inbox.put((track, twin))

    def drop(self, drop: Drop) -> None:
        """Send nothing more for a twin, and say so when all of it was answered."""
        self._inbox.put(drop)

    def end(self) -> None:
        """End the thread when everything in flight was answered; what waits stays unsent."""
        self._ended = True
        self._inbox.put(None)

    @property
    def has_ended(self) -> bool:
        """True when it takes no more work."""
        return self._ended

    def run(self) -> None:
        """Write until the end, or until the connection breaks."""
        try:
            with Connection(self.broker.address, self._access, timeout_s=CONNECT_TIMEOUT_S) as connection:
                appender = Appender(connection, ids=self._ids)
                while self._in_flight or not self._ended:
                    self._round(appender)
            self._break("this connection has ended")
        except TwinlogError as error:
            self._break(str(error))
        except Exception as error:  # whatever it is, the steward must hear that nobody writes any more
            self._break(f"{type(error).__name__}: {error}")
            raise

    def _round(self, appender: Appender) -> None:
        may_write = not self._ended and self._may_write()
        self._take_inbox(wait=not self._in_flight and not (may_write and self._ready))
        if may_write:
            while len(self._in_flight) < MOST_IN_FLIGHT and self._send(appender):
                pass
        if self._in_flight:
            self._receive(appender)

    def _take_inbox(self, *, wait: bool) -> None:
        while True:
            try:
                came = self._inbox.get(block=wait, timeout=LOOK_AGAIN_S if wait else None)
            except queue.Empty:
                return
            wait = False
            if isinstance(came, Drop):
                self._drop(came)
            elif came is not None:
                self._ready[id(came[1])] = came

    def _send(self, appender: Appender) -> bool:
        """Send all that may go now, a step for each partition; False if nothing may."""
        now_ms = time.time_ns() // 1_000_000
        batches: list[tuple[Track, Twin, Copy]] = []
        gaps: list[tuple[Track, Twin, Fill]] = []
        size = 0
        for number, (track, twin) in list(self._ready.items()):
            if size >= MOST_REQUEST_BYTES:
                break
            del self._ready[number]
            step = twin.take(now_ms)  # if nothing may go now, an answer will bring it back
            if isinstance(step, Copy):
                batches.append((track, twin, step))
                size += len(step.view)
                if twin.has_steps:
                    self._ready[number] = (track, twin)  # behind the others
            elif step is not None:
                gaps.append((track, twin, step))
        if batches:
            self._append(appender, batches)
        if gaps:
            self._fill(appender.connection, gaps)
        return bool(batches or gaps)

    def _append(self, appender: Appender, batches: list[tuple[Track, Twin, Copy]]) -> None:
        self._in_flight.append(Appending(batches))
        appender.send(
            [(track.topic, track.partition, copy.view) for track, _, copy in batches],
            Deadline(ANSWER_TIMEOUT_S),
        )

    def _fill(self, connection: Connection, gaps: list[tuple[Track, Twin, Fill]]) -> None:
        filling = Filling(gaps)
        self._in_flight.append(filling)
        filling.sent = markers.send_fill(
            connection,
            [
                markers.Fill(track.topic, track.partition, fill.length, *twin.link)
                for track, twin, fill in gaps
            ],
            Deadline(ANSWER_TIMEOUT_S),
        )

    def _receive(self, appender: Appender) -> None:
        oldest, deadline = self._in_flight[0], Deadline(ANSWER_TIMEOUT_S)
        if isinstance(oldest, Appending):
            answers = {(one.topic, one.partition): one for one in appender.receive(deadline)}
            self._in_flight.popleft()
            for track, twin, copy in oldest.batches:
                self._answered(track, twin, copy, answers[track.key])
        else:
            assert oldest.sent is not None, "what could not be sent has broken the connection"
            found = markers.receive_fill(appender.connection, oldest.sent, deadline)
            self._in_flight.popleft()
            for track, twin, fill in oldest.gaps:
                self._filled(track, twin, fill, found[track.key])

    def _answered(self, track: Track, twin: Twin, copy: Copy, answer: Appended) -> None:
        reaction, sent = twin.answered(answer.code, answer.base_offset)
        dropped = self._dropped.pop(id(twin), None)
        if dropped is not None:
            self._drop(dropped)
        elif reaction is Reaction.GO:
            counts = track.counts
            counts.batches += 1
            counts.records += copy.length
            counts.bytes += len(copy.view)
            track.age_ms = time.time_ns() // 1_000_000 - copy.timestamp_ms
            self._went(track, twin)
        else:
            said = codes.name_of(answer.code) if answer.code else f"it stands at offset {answer.base_offset}"
            if answer.message:
                said += f": {answer.message}"
            self._react(track, twin, sent, reaction, f"offset {sent.first} at the standby: {said}")

    def _filled(self, track: Track, twin: Twin, fill: Fill, answer: markers.Filled) -> None:
        reaction, sent = twin.filled(*answer)
        dropped = self._dropped.pop(id(twin), None)
        if dropped is not None:
            self._drop(dropped)
        elif reaction is Reaction.GO:
            track.counts.fills += 1
            track.counts.filled += fill.length
            self._went(track, twin)
        else:
            said = f"{codes.name_of(answer.code)}, log end {answer.log_end}"
            why = f"a gap of {fill.length} at offset {fill.first}: {said}"
            self._react(track, twin, sent, reaction, why)

    def _went(self, track: Track, twin: Twin) -> None:
        track.position = twin.settled
        track.moves()
        if twin.has_steps:
            self._ready[id(twin)] = (track, twin)

    def _react(self, track: Track, twin: Twin, sent: Sent, reaction: Reaction, why: str) -> None:
        if reaction is Reaction.DEPOSED:
            self._deposed(why)
            return
        if reaction is Reaction.HOLE:
            track.holes.add(sent.chain)
            track.counts.refused += 1
        elif reaction is Reaction.RENEW:
            track.raise_epoch = True
            track.counts.refused += 1
        self._drop(Drop(track, twin, why, reaction is Reaction.STOP))

    def _drop(self, drop: Drop) -> None:
        drop.twin.close()
        number = id(drop.twin)
        self._ready.pop(number, None)
        if drop.twin.in_flight:
            self._dropped.setdefault(number, drop)
        else:
            self._surprised(*drop)

    def _break(self, why: str) -> None:
        self._ended = True
        self._take_inbox(wait=False)
        for drop in self._dropped.values():
            self._surprised(*drop)
        works = {id(twin): (track, twin) for sent in self._in_flight for track, twin in sent.works}
        works |= self._ready
        for track, twin in works.values():
            self._surprised(track, twin, f"writing to the standby: {why}", False)
