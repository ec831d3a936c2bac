"""Looks after every site each second: writes a canary, and asks whether the site could be active.

A canary is a record written with acks=all. The canary topic has a partition led by each broker; one
acknowledged write is enough, because a site whose other brokers died still takes writes, so partitions
are tried in turn, beginning with the next one each time. A broker that hangs answers nothing: after a
try that took long the round is over, so that a site that hangs is found out as soon as one that is dead.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from twinlog.errors import KafkaError, TwinlogError
from twinlog.repeating import Repeating
from twinlog.sites.readiness import CANARY_TOPIC
from twinlog.sites.rolling import MINIMUM
from twinlog.traffic.watching import Outcome, Rules, Seen, Watch
from twinlog.wire import canary, configs, groups, quorum, topics, transactions
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster, Patience

EVERY_S = 1.0
FITNESS_EVERY = 3  # canaries
ROUND_S = 0.3  # no try begins later in a round
NOBODY = "twinlog-canary"  # has no members and no transactions
SHORTEST_TRY_S, LONGEST_TRY_S = 1.0, 3.0


@dataclass(frozen=True)
class Fitness:
    """Whether a site could take all writes; None where it did not say."""

    quorum_led: bool | None = None
    under_min_isr: int | None = None


def patience(failover_after_s: float) -> Patience:
    """How long a canary may take: two that hang, one after the other, and the site is found dead in time.

    Not less: a site whose machine is busy answers late, and is not dead.
    """
    longest_s = min(LONGEST_TRY_S, max(SHORTEST_TRY_S, (failover_after_s - EVERY_S) / 2))
    return Patience(connect_s=longest_s, request_s=longest_s, total_s=longest_s)


class Canaries(Repeating):
    """Watches the sites of a bus, each in a thread of its own."""

    def __init__(self, accesses: Mapping[str, Access], failover_after_s: float) -> None:
        self._patience = patience(failover_after_s)
        self._watches = {site: Watch(Rules(failover_after_s)) for site in accesses}
        self._fitness = {site: Fitness() for site in accesses}
        super().__init__(
            {f"canary-{site}": partial(self._look_after, site, access) for site, access in accesses.items()}
        )

    def seen(self) -> dict[str, Seen]:
        """How each site is now."""
        now = time.monotonic()
        return {site: watch.seen(now) for site, watch in self._watches.items()}

    def fitness(self) -> dict[str, Fitness]:
        """Whether each site could take all writes, as it said last."""
        return dict(self._fitness)

    def _look_after(self, site: str, access: Access) -> None:
        first = count = 0
        is_warm = False
        with Cluster(access, patience=self._patience) as cluster:
            for _ in self.turns(EVERY_S):
                count = count or _partitions(cluster)
                outcome, why = write_one(cluster, first, count)
                self._watches[site] = self._watches[site].after(outcome, time.monotonic(), why)
                is_warm = is_warm or (outcome is Outcome.OK and warm(cluster))
                if first % FITNESS_EVERY == 0:
                    self._fitness[site] = fitness_of(cluster) if outcome is Outcome.OK else Fitness()
                first += 1


def write_one(cluster: Cluster, first: int, count: int) -> tuple[Outcome, str]:
    """Try the canary partitions in turn until one write is acknowledged, or the round is over."""
    end = time.monotonic() + ROUND_S
    payload = str(time.time_ns()).encode()
    worst = Outcome.FAILED
    why = ""
    for number in range(count):
        outcome = canary.write(cluster, CANARY_TOPIC, (first + number) % count, payload)
        if isinstance(outcome, canary.Done):
            return Outcome.OK, ""
        why = outcome.reason
        if isinstance(outcome, canary.Unknown):
            worst = Outcome.TIMED_OUT
        if time.monotonic() > end:
            break
    return worst, why or "there is no canary topic"


def warm(cluster: Cluster) -> bool:
    """Have Kafka make its own topics: at a promoted site the first clients would have to wait for them.

    True when they are there, or when this user may not ask; one attempt, since canaries wait for it.
    """
    try:
        transactions.coordinator(cluster, NOBODY)
        groups.by_coordinator(cluster, [NOBODY])
    except KafkaError as error:
        return not error.retriable
    except TwinlogError:
        return False
    return True


def _partitions(cluster: Cluster) -> int:
    try:
        found = topics.describe(cluster, [CANARY_TOPIC])
    except TwinlogError:
        return 0
    return len(found[0].partitions) if found else 0


def fitness_of(cluster: Cluster) -> Fitness:
    """Whether a site's quorum is led, and how many partitions have too few copies in sync to be written."""
    try:
        led = quorum.describe(cluster).leader_id >= 0
        found = topics.describe(cluster)
        names = [topic.name for topic in found]
        given = configs.describe_many(cluster, configs.Kind.TOPIC, names, [MINIMUM])
    except TwinlogError:
        return Fitness()
    refusing = sum(
        len(one.isr) < int(given[topic.name][MINIMUM].value or 1)
        for topic in found
        for one in topic.partitions
    )
    return Fitness(led, refusing)
