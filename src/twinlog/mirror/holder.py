"""A holder: copies its partitions until it is told to end, then hands them over.

The one that calls `run` is the steward. It begins every partition by reading the standby, gives it
to the reader and the writer of the brokers that lead it, and begins it again after a surprise. Whoever
has to wait for another holder calls `prepare` meanwhile, so that nothing but the reading is left to do.
Readers and writers are threads, one for each broker; each partition is in the hands of one of each.
There must be no second holder of the same partitions: the rights of its principal see to that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from twinlog.errors import TwinlogError
from twinlog.mirror import alignment
from twinlog.mirror.hand import Hand
from twinlog.mirror.pace import Pace
from twinlog.mirror.reader import Reader
from twinlog.mirror.start import Begun, Site, Starter
from twinlog.mirror.track import Track
from twinlog.mirror.twin import Twin
from twinlog.mirror.writer import Drop, Writer
from twinlog.wire.access import Access
from twinlog.wire.cluster import BrokerAddress, Cluster, Patience

LOOK_AGAIN_S = 0.02  # while a partition waits for its begin
IDLE_S = 0.1
JOIN_TIMEOUT_S = 20.0
PATIENCE = Patience(connect_s=3.0, request_s=5.0, total_s=5.0)

AnyHand = TypeVar("AnyHand", bound=Hand[Any])


@dataclass(frozen=True)
class Terms:
    """What holds for all partitions of a holder."""

    active: Access
    standby: Access
    link_id: int
    keep_identity: bool = True
    max_bytes_per_s: float | None = None


class Holder:
    """Copies some partitions from the active to the standby."""

    def __init__(
        self, terms: Terms, tracks: Iterable[Track], may_write: Callable[[], bool] = lambda: True
    ) -> None:
        self.tracks = {track.key: track for track in tracks}
        self.deposed = ""  # why it must not write any more
        self._terms = terms
        self._may_write = may_write
        self._ended = threading.Event()
        self._pace = Pace(terms.max_bytes_per_s, wait=self._ended.wait)
        self._lock = threading.Lock()
        self._readers: dict[int, Reader] = {}
        self._writers: dict[int, Writer] = {}
        self._hands: dict[Twin, tuple[Reader, Writer]] = {}
        self._aligning: dict[Twin, tuple[Track, int]] = {}
        self._starter = Starter(
            Cluster(terms.active, patience=PATIENCE),
            Cluster(terms.standby, patience=PATIENCE),
            terms.link_id,
        )

    def prepare(self) -> None:
        """Open the connections that copying needs. Nothing is begun or read; who is away is left to `run`."""
        starter = self._starter
        with suppress(TwinlogError):
            for reading, writing in starter.look(list(self.tracks.values())):
                self._hands_of(starter, reading, writing)

    def end(self) -> None:
        """Let `run` return soon; harmless if it has."""
        self._ended.set()

    def run(self, tick: Callable[[], object] = lambda: None) -> bool:
        """Copy until `end`; True if all that was sent was also answered: others may go on from there."""
        try:
            while not self._ended.wait(LOOK_AGAIN_S if self._has_work else IDLE_S):
                self._begin(self._starter)
                self._align()
                tick()
        finally:
            self.close()
        return not self.deposed and all(track.is_clear for track in self.tracks.values())

    def close(self) -> None:
        """End what `prepare` began, for who is not to run after all; `run` does it itself."""
        self._ended.set()
        self._stop()
        self._starter.close()

    # The steward

    @property
    def _has_work(self) -> bool:
        return bool(self._aligning) or any(track.twin is None for track in self.tracks.values())

    def _begin(self, starter: Starter) -> None:
        now = time.monotonic()
        waiting = [one for one in self.tracks.values() if one.twin is None and one.not_before <= now]
        for track, begun in starter.begin(waiting, self._ended.is_set):
            try:
                self._give(starter, track, begun)
            except TwinlogError as error:
                track.surprise(str(error), time.monotonic())

    def _give(self, starter: Starter, track: Track, begun: Begun) -> None:
        reading, writing = starter.active.leader(track), starter.standby.leader(track)
        reader, writer = self._hands_of(starter, reading, writing)
        track.reader_id, track.writer_id = reading.id, writing.id
        twin = Twin(begun.start, frozenset(track.holes))
        track.begin(twin)
        track.active_end = begun.ends.active_end
        self._hands[twin] = reader, writer
        if track.position < begun.ends.active_start:
            self._aligning[twin] = (track, begun.ends.active_start)
        else:
            self._read(track, twin)

    def _hands_of(
        self, starter: Starter, reading: BrokerAddress, writing: BrokerAddress
    ) -> tuple[Reader, Writer]:
        reader = _at_work(self._readers, reading, lambda: self._reader(starter.active, reading))
        writer = _at_work(self._writers, writing, lambda: self._writer(starter.standby, writing))
        return reader, writer

    def _read(self, track: Track, twin: Twin) -> None:
        reader, _ = self._hands[twin]
        reader.read(track, twin)
        if reader.has_ended and not self._ended.is_set():
            self._unread(track, twin, "the connection to the active has ended", False)

    def _align(self) -> None:
        """Fill a new twin up to where the active's log begins, a piece at a time."""
        for twin, (track, end) in list(self._aligning.items()):
            if track.twin is not twin:
                del self._aligning[twin]
            elif twin.planned < end:
                piece = alignment.piece(twin, end, compacted=track.compacted)
                twin.offer(piece)
                self._offered(track, twin)
            else:
                del self._aligning[twin]
                self._read(track, twin)

    def _reader(self, site: Site, broker: BrokerAddress) -> Reader:
        return Reader(
            broker,
            self._terms.active,
            site.ids,
            self._pace,
            keep_identity=self._terms.keep_identity,
            offered=self._offered,
            surprised=self._unread,
        )

    def _writer(self, site: Site, broker: BrokerAddress) -> Writer:
        return Writer(
            broker,
            self._terms.standby,
            site.ids,
            may_write=self._may_write,
            surprised=self._surprised,
            deposed=self._depose,
        )

    def _stop(self) -> None:
        hands: list[Reader | Writer] = [*self._readers.values(), *self._writers.values()]
        for hand in hands:
            hand.end()
        # A reader may wait for its broker for a while, and what it brings then is nobody's any more.
        for writer in self._writers.values():
            writer.join(JOIN_TIMEOUT_S)
        for track in self.tracks.values():
            if track.twin is not None:
                track.position = track.twin.settled

    # What the threads tell

    def _offered(self, track: Track, twin: Twin) -> None:
        hands = self._hands.get(twin)
        if hands is None:
            return  # it was given up meanwhile
        writer = hands[1]
        writer.wake(track, twin)
        if writer.has_ended:
            self._surprised(track, twin, "the connection to the standby has ended", False)

    def _unread(self, track: Track, twin: Twin, why: str, stop: bool) -> None:
        """A twin cannot be read any more: its writer gives it up when all in flight was answered."""
        hands = self._hands.get(twin)
        if hands is None or self._ended.is_set():
            return
        writer = hands[1]
        writer.drop(Drop(track, twin, why, stop))
        if writer.has_ended:
            self._surprised(track, twin, why, stop)

    def _surprised(self, track: Track, twin: Twin, why: str, stop: bool) -> None:
        with self._lock:
            if track.twin is twin and not self._ended.is_set():
                track.surprise(why, time.monotonic(), stop=stop)
                self._hands.pop(twin, None)

    def _depose(self, why: str) -> None:
        self.deposed = why
        self._ended.set()


def _at_work(hands: dict[int, AnyHand], broker: BrokerAddress, make: Callable[[], AnyHand]) -> AnyHand:
    """The hand that works with a broker, a new one if there is none that still does."""
    hand = hands.get(broker.id)
    if hand is None or hand.has_ended or hand.broker != broker:
        if hand is not None:
            hand.end()
        hand = hands[broker.id] = make()
        hand.start()
    return hand
