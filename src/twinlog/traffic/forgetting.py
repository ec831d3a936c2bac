"""What a site remembers of producers when roles move, and having it forget what is not so.

A site takes from an idempotent producer only the batch that follows the last one that it remembers; a
producer that it does not know may go on with any. Kept by the steps of moves: at a failover the promoted
site may lack a producer's last batches, so it forgets all; from then on the producer's sequence has a hole
at the takeover point, which the returned site would refuse too, so that one forgets as well. Before a
planned move opens a site, what it remembers must be what the old one does.
Brokers forget by the age of a producer's last record, so older ones are forgotten along with those meant.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from twinlog.errors import TwinlogError
from twinlog.mirror.steps import FIRST_LINK_ID
from twinlog.traffic.ground import LOOK_AGAIN_S, Ground
from twinlog.traffic.moves import Move
from twinlog.wire import configs, producers, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.producers import ProducerState

EXPIRATION = "producer.id.expiration.ms"
LONGEST_MS = 2**31 - 1
FORGET_TIMEOUT_S = 10.0  # our brokers look twice a second

Known = Mapping[TopicPartition, Mapping[int, ProducerState]]
Meant = Callable[[Known], list["Remembered"]]


class Remembered(NamedTuple):
    """A producer that a partition remembers."""

    place: TopicPartition
    producer_id: int
    state: ProducerState

    def __str__(self) -> str:
        return f"{self.place[0]}-{self.place[1]} knows producer {self.producer_id}"


def remembered(known: Known) -> list[Remembered]:
    """The producers whose next batch has to follow their last one.

    Not links, which read where they stand; nor transactional ones, which get another epoch when they come
    and begin again with it.
    """
    return [
        Remembered(place, producer_id, state)
        for place, theirs in known.items()
        for producer_id, state in theirs.items()
        if producer_id < FIRST_LINK_ID and state.coordinator_epoch < 0
    ]


def at_odds(known: Known, truth: Known) -> list[Remembered]:
    """The producers that a site knows otherwise than the one they wrote to, or that only it knows."""
    return [one for one in remembered(known) if not _is_true(one, truth)]


def _is_true(one: Remembered, truth: Known) -> bool:
    other = truth.get(one.place, {}).get(one.producer_id)
    return other is not None and (other.epoch, other.last_sequence) == (
        one.state.epoch,
        one.state.last_sequence,
    )


def forgettable(meant: Iterable[Remembered], now_ms: int) -> list[Remembered]:
    """Those that brokers can forget soon: a record whose time is in the future keeps its producer known."""
    soon_ms = now_ms + int(FORGET_TIMEOUT_S * 1000)
    return [one for one in meant if one.state.last_timestamp_ms < soon_ms]


def expiration_ms(meant: Sequence[Remembered], now_ms: int) -> int:
    """The age at which these are forgotten, and whoever has written nothing since."""
    newest_ms = max((one.state.last_timestamp_ms for one in meant), default=now_ms)
    return min(max(1, now_ms - newest_ms), LONGEST_MS)


def forget_all(ground: Ground, site: str) -> None:
    """Have a site forget every producer of mirrored topics, so that each may go on with any sequence."""
    partitions = ground.mirrored(ground.cluster(site))
    _forget(ground, site, partitions, remembered)


def know_alike(ground: Ground, move: Move) -> Move:
    """Have the site that is about to open forget what the old one does not say of producers.

    There is nothing of the kind unless the mirror had to copy a producer's batches under its own name:
    because they were thinned, or have a hole behind a failover, or because the file wants it so.
    """
    source = ground.cluster(move.source)
    partitions = ground.mirrored(source)
    truth = producers.describe(source, partitions)
    _forget(ground, move.target, partitions, lambda known: at_odds(known, truth), sparing=True)
    return move


def _forget(
    ground: Ground, site: str, partitions: list[TopicPartition], meant: Meant, *, sparing: bool = False
) -> None:
    """Have every replica forget those that are meant, and others as little as can be if `sparing`."""
    cluster = ground.cluster(site)
    replicas = _Replicas(cluster, partitions)
    # A follower may be a moment behind its leader, and must not be taken for one that knows otherwise.
    left = replicas.led(meant) if sparing else replicas.left(meant)
    if ground.is_ours(site):
        now_ms = time.time_ns() // 1_000_000
        spared_ms = expiration_ms(forgettable(left, now_ms), now_ms)
        # That age is by our clock; where brokers have another one, all are forgotten in the end.
        ages_ms = dict.fromkeys((spared_ms, 1) if sparing else (1,))
        try:
            for age_ms in ages_ms if forgettable(left, now_ms) else ():
                _set(cluster, replicas.brokers, age_ms)
                left = replicas.wait(meant)
                if not forgettable(left, now_ms):
                    break
        finally:
            # Always: whoever took this step before may have been killed in the middle of it.
            _set(cluster, replicas.brokers, None)
        # A broker that has not heard of it yet would forget whoever writes next.
        cluster.wait_until(lambda: _still_set(cluster, replicas.brokers), f"remembering at site {site}")
    if left:
        # No reason to leave clients without a site: the others go on.
        count = len({one.producer_id for one in left})
        ground.progress.note(f"site {site} may refuse {count} idempotent producers: {left[0]}")


def _set(cluster: Cluster, brokers: Iterable[int], age_ms: int | None) -> None:
    for broker in brokers:
        values, unset = ({}, [EXPIRATION]) if age_ms is None else ({EXPIRATION: str(age_ms)}, [])
        configs.alter(cluster, configs.Kind.BROKER, str(broker), values=values, unset=unset)


def _still_set(cluster: Cluster, brokers: Iterable[int]) -> str:
    for broker in brokers:
        found = configs.describe(cluster, configs.Kind.BROKER, str(broker), [EXPIRATION])[EXPIRATION]
        if found.source is configs.Source.BROKER:
            return f"broker {broker} still forgets producers at once"
    return ""


class _Replicas:
    """All replicas of some partitions: each remembers for itself, and any may lead later."""

    def __init__(self, cluster: Cluster, partitions: list[TopicPartition]) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self.brokers = [broker.id for broker in cluster.brokers()]
        self._followed: dict[int, list[TopicPartition]] = defaultdict(list)
        found = topics.describe(cluster, sorted({name for name, _ in partitions}))
        states = {(topic.name, one.index): one for topic in found for one in topic.partitions}
        # Who led before may follow now, and answers all the same: then nobody would ask the leader.
        cluster.believe(
            {place: one.leader for place, one in states.items() if one.leader != topics.NO_LEADER}
        )
        for place in partitions:
            for broker in set(states[place].isr) - {states[place].leader}:
                self._followed[broker].append(place)

    def wait(self, meant: Meant) -> list[Remembered]:
        """Look until none of those is left that can be forgotten, or it has taken too long."""
        pause, deadline = threading.Event(), Deadline(FORGET_TIMEOUT_S)
        now_ms = time.time_ns() // 1_000_000
        while forgettable(left := self.left(meant), now_ms) and not deadline.passed:
            pause.wait(LOOK_AGAIN_S)
        return left

    def led(self, meant: Meant) -> list[Remembered]:
        """Those that are meant, as the leaders know them."""
        return meant(producers.describe(self._cluster, self._partitions))

    def left(self, meant: Meant) -> list[Remembered]:
        """The same, and as the followers know them."""
        left = self.led(meant)
        for broker, followed in list(self._followed.items()):
            try:
                left += meant(producers.describe_at(self._cluster, broker, followed))
            except TwinlogError:
                # It has just gone, or the leader has: a follower that is away copies what happens next.
                del self._followed[broker]
        return left
