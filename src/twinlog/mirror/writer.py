"""Writes partitions to one broker of the standby, and hears what became of it.

A thread of a holder, one for each broker that leads twins. A request carries one batch for each
partition that may send one; several requests are in flight, and the broker takes them one after the
other. Gaps go in requests of their own, for partitions that have nothing else in flight: markers, then,
for gaps of more than one, the question for the log ends, which must be where the gaps end.
A twin is given up only when all that was sent for it was answered, or the connection broke: whoever
reads the standby's log end then knows whether something may still be on its way.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from twinlog.mirror.hand import Hand
from twinlog.mirror.outgoing import Outgoing
from twinlog.mirror.reactions import Reaction, question
from twinlog.mirror.steps import Copy, Fill
from twinlog.mirror.track import Track, Work
from twinlog.mirror.twin import Sent, Twin
from twinlog.wire import codes, markers
from twinlog.wire.access import Access
from twinlog.wire.appending import MOST_IN_FLIGHT, Appended, Appender
from twinlog.wire.cluster import BrokerAddress
from twinlog.wire.connection import Connection
from twinlog.wire.deadlines import Deadline

ANSWER_TIMEOUT_S = 12.0  # longer than a broker's session: its partitions have moved by then
LOOK_AGAIN_S = 0.2

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


class Writer(Hand[Work | Drop]):
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
        super().__init__("writer", broker, access)
        self._ids = ids
        self._may_write = may_write
        self._surprised = surprised
        self._deposed = deposed
        self._outgoing = Outgoing()
        self._dropped: dict[int, Drop] = {}  # by the twin's identity: something of theirs is in flight
        self._in_flight: deque[Appending | Filling] = deque()

    def wake(self, track: Track, twin: Twin) -> None:
        """Something was offered to this twin."""
        self._inbox.put((track, twin))

    def drop(self, drop: Drop) -> None:
        """Send nothing more for a twin, and say so when all of it was answered."""
        self._inbox.put(drop)

    def _work(self, connection: Connection) -> None:
        appender = Appender(connection, ids=self._ids)
        while self._in_flight or not self._ended:
            self._round(appender)

    def _give_up(self, why: str) -> None:
        self._take_messages()
        for drop in self._dropped.values():
            self._surprised(*drop)
        works = {id(twin): (track, twin) for sent in self._in_flight for track, twin in sent.works}
        works |= {id(twin): (track, twin) for track, twin in self._outgoing.works}
        for track, twin in works.values():
            self._surprised(track, twin, f"writing to the standby: {why}", False)

    def _round(self, appender: Appender) -> None:
        may_write = not self._ended and self._may_write()
        has_work = self._in_flight or (may_write and self._outgoing)
        self._take_messages(wait_s=0.0 if has_work else LOOK_AGAIN_S)
        if may_write:
            while len(self._in_flight) < MOST_IN_FLIGHT and self._send(appender):
                pass
        if self._in_flight:
            self._receive(appender)

    def _take_messages(self, wait_s: float = 0.0) -> None:
        for message in self._messages(wait_s):
            if isinstance(message, Drop):
                self._drop(message)
            else:
                self._outgoing.add(*message)

    def _send(self, appender: Appender) -> bool:
        """Send all that may go now; False if nothing may."""
        load = self._outgoing.take(time.time_ns() // 1_000_000)
        if load.batches:
            self._append(appender, load.batches)
        if load.gaps:
            self._fill(appender.connection, load.gaps)
        return bool(load)

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
            if asked := question(answer.code):
                said += f"; {asked}"
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
            said = codes.name_of(answer.code)
            if answer.log_end is not None:
                said += f", log end {answer.log_end}"
            why = f"a gap of {fill.length} at offset {fill.first}: {said}"
            self._react(track, twin, sent, reaction, why)

    def _went(self, track: Track, twin: Twin) -> None:
        track.position = twin.settled
        track.moves()
        if twin.has_steps:
            self._outgoing.add(track, twin)

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
        self._outgoing.remove(drop.twin)
        if drop.twin.in_flight:
            self._dropped.setdefault(id(drop.twin), drop)
        else:
            self._surprised(*drop)
