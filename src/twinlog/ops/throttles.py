"""Limits on the copying that a move of partitions causes, so that clients keep their share of the network.

Kafka wants two things: a rate at every broker that takes part, and at every topic the list of copies
that it holds for. Both are set before a move and taken away after it; what a killed move left behind,
`move cancel` and the next `move run` take away. Copies in sync are never slowed down by them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from twinlog.ops.assignment import Change
from twinlog.wire import configs, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Kind, Source

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
FROM, TO = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
COPIES = (FROM, TO)


def limited(changes: Iterable[Change]) -> dict[str, dict[str, str]]:
    """By topic, the copies that are read and those that are written, as Kafka lists them."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: {FROM: [], TO: []})
    for change in changes:
        if change.adding:
            entries = found[change.topic]
            entries[FROM] += [f"{change.partition}:{broker}" for broker in change.before]
            entries[TO] += [f"{change.partition}:{broker}" for broker in change.adding]
    return {topic: {key: ",".join(pairs) for key, pairs in keys.items()} for topic, keys in found.items()}


def taking_part(changes: Iterable[Change]) -> set[int]:
    """Brokers that copies are read from or written to."""
    return {broker for change in changes if change.adding for broker in (*change.before, *change.adding)}


def limit(cluster: Cluster, changes: Collection[Change], rate_bytes: int) -> None:
    """Let the copying of a move take so many bytes a second at each broker, in each direction."""
    live = {broker.id for broker in cluster.brokers()}
    for broker in sorted(taking_part(changes) & live):
        set_rate(cluster, broker, rate_bytes)
    for topic, values in limited(changes).items():
        configs.alter(cluster, Kind.TOPIC, topic, values=values)


def set_rate(cluster: Cluster, broker: int, rate_bytes: int) -> None:
    """Change the rate of one broker."""
    configs.alter(cluster, Kind.BROKER, str(broker), values=dict.fromkeys(RATES, str(rate_bytes)))


def rates(cluster: Cluster) -> dict[int, int]:
    """The rates that are set now, by broker, in bytes a second."""
    names = [str(broker.id) for broker in cluster.brokers()]
    return {
        int(name): int(entries[RATES[0]].value or 0)
        for name, entries in configs.describe_many(cluster, Kind.BROKER, names, list(RATES)).items()
        if any(_is_given(entries, key) for key in RATES)
    }


def lift(cluster: Cluster, due: Collection[Change] | None = None) -> int:
    """Take away the limits of a move, or all; returns at how many brokers and topics there were some."""
    brokers = set(rates(cluster)) if due is None else set(rates(cluster)) & taking_part(due)
    there = {topic.name for topic in topics.describe(cluster)}
    names = sorted(there if due is None else there & {change.topic for change in due})
    limits = configs.describe_many(cluster, Kind.TOPIC, names, list(COPIES))
    given = {
        name: keys
        for name, entries in limits.items()
        if (keys := [key for key in COPIES if _is_given(entries, key)])
    }
    for broker in sorted(brokers):
        configs.alter(cluster, Kind.BROKER, str(broker), unset=RATES)
    for name, keys in given.items():
        configs.alter(cluster, Kind.TOPIC, name, unset=keys)
    return len(brokers) + len(given)


def _is_given(entries: Mapping[str, configs.Entry], key: str) -> bool:
    return key in entries and entries[key].source in (Source.TOPIC, Source.BROKER)
