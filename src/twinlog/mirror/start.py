"""Where a twin begins: the start sequence at the standby, and the check that it fits the active.

The order matters. First the link's chain (its epoch and last sequence), then the log end: the other
way round, something that was still on its way could land between the two unnoticed. The log end
counts when all before it is replicated, so that no change of leaders takes it back. Then the end of
the standby is compared with the active (`tails`). Partitions that the same two brokers lead are begun
together, so that a thousand of them take some dozens of requests.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from twinlog.errors import SiteError, TwinlogError
from twinlog.mirror import tails
from twinlog.mirror.steps import Chain
from twinlog.mirror.track import TopicPartition, Track
from twinlog.mirror.twin import Start
from twinlog.wire import offsets, producers, topics
from twinlog.wire.cluster import BrokerAddress, Cluster

STILL_S = 1.0  # so long a log end must stand when something went unanswered
TURN_S = 5.0  # so long partitions are begun one by one before the steward looks after the others
STUBBORN_S = 1.0  # a pause that has grown so far
LAST_EPOCH = 32_000  # before 2^15 the link moves to its next producer id


class Ends(NamedTuple):
    """Where the logs of one partition begin and end."""

    active_start: int
    active_end: int  # as far as readers get
    standby_start: int
    standby_end: int  # the log's own end, not the high watermark
    is_lasting: bool  # the standby's end is replicated, and the link's chain did not move meanwhile

    @property
    def unfit(self) -> str:
        """Why no twin may begin here now, in words; empty if one may, once the logs were compared."""
        if not self.is_lasting:
            # A leader that follows this one may lack what is not replicated, and be shorter.
            return f"the standby's end at offset {self.standby_end} is not settled yet"
        if self.standby_end > self.active_end:
            return f"the standby ends at offset {self.standby_end} and the active at {self.active_end}"
        return ""


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


def stands_still(track: Track, log_end: int, now: float) -> bool:
    """True when a log end has been the same for a while; else the track has to come again."""
    if track.stood_at is None or track.stood_at[0] != log_end:
        track.stood_at = (log_end, now)
    if now - track.stood_at[1] < STILL_S:
        track.not_before = now + STILL_S / 4
        return False
    track.stood_at = None
    return True


def groups(
    tracks: Iterable[Track], leaders: Mapping[TopicPartition, tuple[int, int]]
) -> tuple[list[list[Track]], list[Track]]:
    """Tracks to begin together, and those to begin alone, behind the others.

    Together begin those that the same two brokers lead. One that fails keeps its whole group waiting, so
    those that failed again and again come alone.
    """
    together: dict[tuple[int, int], list[Track]] = defaultdict(list)
    alone = []
    for track in tracks:
        if track.pause_s < STUBBORN_S:
            together[leaders[track.key]].append(track)
        else:
            alone.append(track)
    return list(together.values()), alone


class Begun(NamedTuple):
    """A twin that may begin."""

    start: Start
    ends: Ends


class Site:
    """What the starter knows of a site."""

    def __init__(self, place: str, cluster: Cluster) -> None:
        self.place = place
        self.cluster = cluster
        self.ids: dict[str, UUID] = {}
        self._brokers: dict[int, BrokerAddress] = {}

    def ask(self, names: Sequence[str]) -> dict[TopicPartition, int]:
        """Ask for brokers and topics; gives who leads each partition that anybody leads."""
        found: dict[TopicPartition, int] = {}
        for topic in topics.describe(self.cluster, names):
            # An id stays: a topic that was made anew is another topic, and brokers will refuse ours.
            self.ids.setdefault(topic.name, topic.id)
            found |= {(topic.name, one.index): one.leader for one in topic.partitions if one.has_leader}
        self._brokers = {broker.id: broker for broker in self.cluster.brokers()}
        self.cluster.believe(found)
        return found

    def leader(self, track: Track) -> BrokerAddress:
        """The broker that leads a partition."""
        leader = self.cluster.leader(*track.key)
        if leader not in self._brokers:
            raise SiteError(
                f"{track} is led by broker {leader}, which the site does not list",
                where=self.cluster.where,
                hint="has it just ended? twinlog status",
            )
        return self._brokers[leader]

    @property
    def log(self) -> tails.Log:
        """What the start check reads."""
        return tails.Log(self.cluster, self.ids)


class Starter:
    """Begins twins, many at a time; belongs to the steward."""

    def __init__(
        self, active: Cluster, standby: Cluster, link_id: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.active = Site("active", active)
        self.standby = Site("standby", standby)
        self._link_id = link_id
        self._clock = clock
        self._looked: tuple[dict[TopicPartition, int], dict[TopicPartition, int]] | None = None

    def look(self, tracks: Sequence[Track]) -> set[tuple[BrokerAddress, BrokerAddress]]:
        """Connect to who leads these partitions at the active and at the standby; gives who does.

        The next `begin` takes their word for it. Whoever does not lead any more by then says so.
        """
        names = sorted({track.topic for track in tracks})
        looked = self.active.ask(names), self.standby.ask(names)
        for site, leaders in zip((self.active, self.standby), looked, strict=True):
            for leader in sorted(set(leaders.values())):
                site.cluster.broker(leader)
        self._looked = looked
        led = [track for track in tracks if all(track.key in leaders for leaders in looked)]
        return {(self.active.leader(track), self.standby.leader(track)) for track in led}

    def close(self) -> None:
        """End its connections."""
        self.active.cluster.close()
        self.standby.cluster.close()

    def begin(
        self, tracks: Sequence[Track], is_over: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Track, Begun]]:
        """Every twin that may begin now; the others are told why not, or have to wait for their turn."""
        if not tracks:
            return
        end = self._clock() + TURN_S
        together, alone = groups(*self._led(tracks))
        for group in together:
            if is_over():
                return
            try:
                yield from self._begin(group)
            except TwinlogError as error:
                if len(group) == 1:
                    group[0].surprise(str(error), self._clock())
                else:
                    alone = group + alone
        for track in alone:
            if is_over() or self._clock() > end:
                return
            try:
                yield from self._begin([track])
            except TwinlogError as error:
                track.surprise(str(error), self._clock())

    def _led(self, tracks: Sequence[Track]) -> tuple[list[Track], dict[TopicPartition, tuple[int, int]]]:
        """Those that somebody leads on both sites, and who does; the others are told."""
        names = sorted({track.topic for track in tracks})
        looked, self._looked = self._looked, None
        try:
            active, standby = looked or (self.active.ask(names), self.standby.ask(names))
        except TwinlogError as error:  # a whole site does not answer
            for track in tracks:
                track.surprise(str(error), self._clock())
            return [], {}
        led = [track for track in tracks if self._is_led(track, active, standby)]
        return led, {track.key: (active[track.key], standby[track.key]) for track in led}

    def _is_led(self, track: Track, *leaders: Mapping[TopicPartition, int]) -> bool:
        for site, led in zip((self.active, self.standby), leaders, strict=True):
            if track.topic not in site.ids:
                track.surprise(f"the topic does not exist at the {site.place}", self._clock(), stop=True)
                return False
            if track.key not in led:
                track.surprise(f"no broker leads the partition at the {site.place}", self._clock())
                return False
        return True

    def _begin(self, tracks: Sequence[Track]) -> Iterator[tuple[Track, Begun]]:
        found = self._read(tracks)
        fit = [track for track in tracks if self._is_fit(track, found[track.key].ends)]
        verdicts = tails.check(
            self.active.log,
            self.standby.log,
            [_tail(track, found[track.key].ends) for track in fit if not track.orderly],
        )
        for track in fit:
            verdict = verdicts.get(track.key, tails.Verdict())
            if verdict.trouble:
                track.surprise(verdict.trouble, self._clock())
            elif verdict.differs:
                track.surprise(f"the logs differ: {verdict.differs}", self._clock(), stop=True)
            else:
                yield track, found[track.key]

    def _read(self, tracks: Sequence[Track]) -> dict[TopicPartition, Begun]:
        keys = [track.key for track in tracks]
        active, standby = self.active.cluster, self.standby.cluster
        states = producers.describe(standby, keys)  # first the chain ...
        log_ends = offsets.log_ends(standby, keys)  # ... then the log end ...
        replicated = offsets.end_offsets(standby, keys)  # ... and whether it is there to stay ...
        states_after = producers.describe(standby, keys)  # ... with the chain that was read
        standby_starts = offsets.start_offsets(standby, keys)
        active_starts = offsets.start_offsets(active, keys)
        active_ends = offsets.last_stable_offsets(active, keys)
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
            found[key] = Begun(Start(log_ends[key], chain, sequence), ends)
        return found

    def _chain(self, track: Track, states: Mapping[int, producers.ProducerState]) -> tuple[Chain, int]:
        return link_chain(states, self._link_id, raise_epoch=track.raise_epoch, last=track.last)

    def _is_fit(self, track: Track, ends: Ends) -> bool:
        now = self._clock()
        if track.settle_first and not stands_still(track, ends.standby_end, now):
            return False
        if ends.unfit:
            track.surprise(ends.unfit, now)
            return False
        return True


def _tail(track: Track, ends: Ends) -> tails.Tail:
    least = max(ends.standby_start, ends.active_start)
    return tails.Tail(track.key, least, ends.standby_end, track.compacted)
