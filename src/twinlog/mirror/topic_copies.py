"""Topics of the standby, made after those of the active: partitions and settings.

For topics that the file does not declare, and for standbys that exist already; `apply` looks after
the rest. A copy has the active's settings but for those that belong to the role of its site and those
that speak of the active's own brokers or remote storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from twinlog.spec.roles import AT_STANDBY
from twinlog.wire import configs, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Entry, Kind, Source
from twinlog.wire.topics import NewTopic

MIN_INSYNC = "min.insync.replicas"
# These speak of brokers by id, or of storage that only one site has.
SITES_OWN = frozenset(
    {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "remote.storage.enable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "local.retention.ms",
        "local.retention.bytes",
    }
)
# What these say for the whole site matters to a copy too: it must be cleaned the same way, and fit.
EVEN_IF_INHERITED = frozenset({"cleanup.policy", "max.message.bytes"})


class Change(NamedTuple):
    """What to set at a topic of the standby, and what to take away."""

    values: dict[str, str]
    unset: tuple[str, ...]


def wanted_settings(at_active: Mapping[str, Entry], replication: int) -> dict[str, str]:
    """The settings of a copy with so many replicas, given all that the active says of the topic."""
    own = {
        name: entry.value
        for name, entry in at_active.items()
        if entry.value is not None and name not in SITES_OWN and _is_said(entry)
    }
    if MIN_INSYNC in own:
        own[MIN_INSYNC] = str(min(int(own[MIN_INSYNC]), replication))
    return {**own, **AT_STANDBY}


def settings_change(
    at_active: Mapping[str, Entry], at_standby: Mapping[str, Entry], replication: int
) -> Change:
    """What makes a topic's settings at the standby follow the active's."""
    wanted = wanted_settings(at_active, replication)
    values = {
        name: value
        for name, value in wanted.items()
        if name not in at_standby or at_standby[name].value != value
    }
    unset = (
        name
        for name, entry in at_standby.items()
        if entry.source is Source.TOPIC and name not in wanted and name not in SITES_OWN
    )
    return Change(values, tuple(sorted(unset)))


def create(active: Cluster, standby: Cluster, names: Iterable[str], brokers: int) -> None:
    """Make topics at the standby, which has so many brokers, as wide as they are at the active."""
    wanted = sorted(names)
    settings = configs.describe_many(active, Kind.TOPIC, wanted)
    for topic in topics.describe(active, wanted):
        replication = min(topic.replication, brokers)
        values = wanted_settings(settings[topic.name], replication)
        topics.create(standby, NewTopic(topic.name, len(topic.partitions), replication, configs=values))


def widen(active: Cluster, standby: Cluster, names: Iterable[str]) -> None:
    """Give topics at the standby as many partitions as they have at the active."""
    for topic in topics.describe(active, sorted(names)):
        topics.add_partitions(standby, topic.name, len(topic.partitions))


def follow_settings(active: Cluster, standby: Cluster, names: Iterable[str]) -> tuple[str, ...]:
    """Let topics' settings at the standby follow the active's; gives those that were changed."""
    wanted = sorted(names)
    replication = {topic.name: topic.replication for topic in topics.describe(standby, wanted)}
    here = configs.describe_many(active, Kind.TOPIC, wanted)
    there = configs.describe_many(standby, Kind.TOPIC, wanted)
    changed = []
    for name in wanted:
        change = settings_change(here[name], there[name], replication[name])
        if change.values or change.unset:
            configs.alter(standby, Kind.TOPIC, name, values=change.values, unset=change.unset)
            changed.append(name)
    return tuple(changed)


def _is_said(entry: Entry) -> bool:
    """True if somebody said so, for this topic or, where that matters, for its whole site."""
    if entry.source is Source.TOPIC:
        return True
    return entry.name in EVEN_IF_INHERITED and entry.source is not Source.DEFAULT
