"""Where a twin begins: the start sequence at the standby, and the check that it fits the active.

The order matters. First the link's chain (its epoch and last sequence), then the log end: the other
way round, something that was still on its way could land between the two unnoticed. The log end
counts when all before it is replicated, so that no change of leaders takes it back. Then the end of
the standby is compared with the active: the last record there must be the active's record at that
offset, and whatever follows it must be nothing to see at the active too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from twinlog.errors import SiteError, TwinlogError
from twinlog.mirror import stretch
from twinlog.mirror.compare import first_difference
from twinlog.mirror.steps import Chain
from twinlog.mirror.track import Track
from twinlog.mirror.twin import Start
from twinlog.wire import offsets, producers, topics
from twinlog.wire.cluster import BrokerAddress, Cluster

STILL_S = 1.0  # so long a log end must stand when something went unanswered
TURN_S = 5.0  # so long partitions are begun one by one before the steward looks after the others
STUBBORN_S = 1.0  # a pause that has grown so far
LAST_EPOCH = 32_000  # before 2^15 the link moves to its next producer id
_LOOK_BACK = (1, 64, 4096, 1 << 18)  # how far back the last record is looked for, one after the other


class Ends(NamedTuple):
    """Where the logs of one partition begin and end."""

    active_start: int
    active_end: int  # as far as readers get
    standby_start: int
    standby_end: int  # the log's own end, not the high watermark
    is_lasting: bool  # the standby's end is replicated, and the link's chain did not move meanwhile


def link_chain(
    states: Mapping[int, producers.ProducerState],
    link_id: int,
    *,
    raise_epoch: bool,
    last: tuple[Chain, int] | None = None,
) -> tuple[Chain, int]:
    """The link's chain to continue in a partition, and its next sequence.

    `last` is where this holder's last twin stood. What that one sent and the standby has not seen yet
    may still arrive: under the same chain and sequence it is the same batch, and taken once.
    """
    stands = last
    for producer_id, state in states.items():
        known = Chain(producer_id, state.epoch)
        if link_id <= producer_id < link_id + (1 << 16) and (stands is None or known >= stands[0]):
            stands = known, (state.last_sequence + 1) & 0x7FFFFFFF
    if stands is None:
        return Chain(link_id, 0), 0
    chain, sequence = stands
    known_at = states.get(chain.producer_id)
    is_lost = known_at is not None and known_at.epoch < chain.epoch and sequence != 0
    if not raise_epoch and not is_lost:
        return chain, sequence
    if chain.epoch >= LAST_EPOCH:
        return Chain(chain.producer_id + 1, 0), 0
    return Chain(chain.producer_id, chain.epoch + 1), 0


class Begun(NamedTuple):
    """A twin that may begin."""

    start: Start
    ends: Ends


class Starter:
    """Begins twins, many at a time; belongs to the steward."""

    def __init__(
        self, active: Cluster, standby: Cluster, link_id: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._active = active
        self._standby = standby
        self._link_id = link_id
        self._clock = clock
        self.active_ids: dict[str, UUID] = {}
        self.standby_ids: dict[str, UUID] = {}

    def active_leader(self, track: Track) -> BrokerAddress:
        """The broker to read a partition from."""
        return _leader(self._active, track)

    def standby_leader(self, track: Track) -> BrokerAddress:
        """The broker to write a partition to."""
        return _leader(self._standby, track)

    def begin(
        self, tracks: Sequence[Track], is_over: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Track, Begun]]:
        """Every twin that may begin now; the others are told why not, or have to wait for their turn."""
        end = self._clock() + TURN_S
        # One that fails keeps the others waiting, so those that failed again and again come alone and last.
        together = [track for track in tracks if track.pause_s < STUBBORN_S]
        alone = [track for track in tracks if track.pause_s >= STUBBORN_S]
        try:
            yield from self._begin(together)
        except TwinlogError as error:
            if len(together) == 1:
                together[0].surprise(str(error), self._clock())
            else:
                alone = together + alone
        for track in alone:
            if is_over() or self._clock() > end:
                return
            try:
                yield from self._begin([track])
            except TwinlogError as error:
                track.surprise(str(error), self._clock())

    def _begin(self, tracks: Sequence[Track]) -> Iterator[tuple[Track, Begun]]:
        if not tracks:
            return
        self._know_topics({track.topic for track in tracks})
        known = [track for track in tracks if self._is_known(track)]
        found = self._read(known)
        for track in known:
            begun = self._judge(track, *found[track.key])
            if begun is not None:
                yield track, begun

    def _know_topics(self, names: set[str]) -> None:
        for cluster, ids in ((self._active, self.active_ids), (self._standby, self.standby_ids)):
            for topic in topics.describe(cluster, sorted(names)):
                # An id stays: a topic that was made anew is another topic, and brokers will refuse ours.
                ids.setdefault(topic.name, topic.id)

    def _is_known(self, track: Track) -> bool:
        for place, ids in (("active", self.active_ids), ("standby", self.standby_ids)):
            if track.topic not in ids:
                track.surprise(f"the topic does not exist at the {place}", self._clock(), stop=True)
                return False
        return True

    def _read(self, tracks: Sequence[Track]) -> dict[tuple[str, int], tuple[Start, Ends]]:
        keys = [track.key for track in tracks]
        states = producers.describe(self._standby, keys)  # first the chain ...
        log_ends = offsets.log_ends(self._standby, keys)  # ... then the log end ...
        replicated = offsets.end_offsets(self._standby, keys)  # ... and whether it is there to stay ...
        states_after = producers.describe(self._standby, keys)  # ... with the chain that was read
        standby_starts = offsets.start_offsets(self._standby, keys)
        active_starts = offsets.start_offsets(self._active, keys)
        active_ends = offsets.last_stable_offsets(self._active, keys)
        found = {}
        for track in tracks:
            key = track.key
            chain, sequence = self._chain(track, states[key])
            ends = Ends(
                active_starts[key],
                active_ends[key],
                standby_starts[key],
                log_ends[key],
                is_lasting=replicated[key] >= log_ends[key]
                and self._chain(track, states_after[key]) == (chain, sequence),
            )
            found[key] = (Start(log_ends[key], chain, sequence), ends)
        return found

    def _chain(self, track: Track, states: Mapping[int, producers.ProducerState]) -> tuple[Chain, int]:
        return link_chain(states, self._link_id, raise_epoch=track.raise_epoch, last=track.last)

    def _judge(self, track: Track, start: Start, ends: Ends) -> Begun | None:
        now = self._clock()
        if track.settle_first and not self._stands_still(track, ends.standby_end, now):
            return None
        if not ends.is_lasting:
            # A leader that follows this one may lack what is not replicated, and be shorter.
            track.surprise(f"the standby's end at offset {ends.standby_end} is not settled yet", now)
            return None
        if ends.standby_end > ends.active_end:
            ahead = f"the standby ends at offset {ends.standby_end} and the active at {ends.active_end}"
            track.surprise(ahead, now)
            return None
        if not track.orderly:
            try:
                differs = self._what_differs(track, ends)
            except TwinlogError as error:
                track.surprise(str(error), now)
                return None
            if differs:
                track.surprise(f"the logs differ: {differs}", now, stop=True)
                return None
        return Begun(start, ends)

    def _stands_still(self, track: Track, log_end: int, now: float) -> bool:
        """True when the log end has been the same for a while."""
        if track.stood_at is None or track.stood_at[0] != log_end:
            track.stood_at = (log_end, now)
        if now - track.stood_at[1] < STILL_S:
            track.not_before = now + STILL_S / 4
            return False
        track.stood_at = None
        return True

    def _what_differs(self, track: Track, ends: Ends) -> str:
        """Why the standby's end is not the active's log, in words; empty when it is."""
        end, least = ends.standby_end, max(ends.standby_start, ends.active_start)
        first, ours = end, {}
        for back in _LOOK_BACK:
            first = max(least, end - back)
            if first >= end:
                return ""  # nothing of it is left at the active
            ours = stretch.records(self._standby, self.standby_ids, *track.key, first, end)
            if ours or first == least:
                break
        theirs = stretch.records(self._active, self.active_ids, *track.key, first, end)
        found = first_difference(theirs, ours, compacted=track.compacted)
        return f"at offset {found.offset} {found.what}" if found else ""


def _leader(cluster: Cluster, track: Track) -> BrokerAddress:
    leader = cluster.leader(*track.key)
    for broker in cluster.brokers():
        if broker.id == leader:
            return broker
    raise SiteError(
        f"{track} is led by broker {leader}, which the site does not list",
        where=cluster.where,
        hint="has it just ended? twinlog status",
    )
