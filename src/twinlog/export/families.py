"""What was seen of a site, as families of metrics. Pure.

Names, labels and meanings are those of kafka_exporter (github.com/danielqsj/kafka_exporter), so that its
dashboards and alerts work unchanged; what it does not have begins with `twinlog_`. A partition of a topic
that a group reads, and of which it has committed nothing, has offset and lag -1, as there; sums are of the
others. So have all partitions of a topic that members read and never committed, which kafka_exporter leaves
out; they have no sums, because a sum of nothing would say that the group has read all. Only what it asks
ZooKeeper for (`kafka_consumergroupzookeeper_lag_zookeeper`) has no counterpart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from twinlog import __version__
from twinlog.export.link import LinkSeen
from twinlog.export.observation import PARTS, GroupSeen, Seen
from twinlog.mirror import gauges
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.topics import Partition, TopicState

NOTHING = -1
LINK = "link"
_PLACE = ("topic", "partition")
_GROUP_PLACE = ("consumergroup", "topic", "partition")
_GROUP_TOPIC = ("consumergroup", "topic")
_SITE = ("bus", "site")
_BUILD = ("version", "revision", "branch", "goversion", "goos", "goarch", "tags")


def families(
    seen: Seen, bus: str, site: str, *, is_active: bool, link: LinkSeen | None = None
) -> Iterator[Metric]:
    """All metrics of one site; `link` is what it is the active end of."""
    problems = seen.problems if link is None or not link.problem else {**seen.problems, LINK: link.problem}
    yield _build()
    yield from _site(seen, bus, site, is_active)
    yield _gauge(
        "twinlog_scrape_failed",
        "1 if this part of what is looked at could not be had.",
        (*_SITE, "part"),
        [((bus, site, part), part in problems) for part in (*PARTS, *([] if link is None else [LINK]))],
    )
    if link is not None and not link.problem:
        yield gauges.running(bus, link.is_running)
        yield from gauges.lag(bus, link.partitions)
    if seen.is_up:
        yield from _brokers(seen)
        yield from _topics(seen)
        yield from _offsets(seen)
        yield from _groups(seen)


def _build() -> Metric:
    # No Go compiler made this: labels are there for whoever asks for them, and an empty one is none.
    values = (__version__, *[""] * (len(_BUILD) - 1))
    return _gauge("kafka_exporter_build_info", "1, with the version of this exporter.", _BUILD, [(values, 1)])


def _site(seen: Seen, bus: str, site: str, is_active: bool) -> Iterator[Metric]:
    yield _gauge("twinlog_site_up", "1 if the site answered.", _SITE, [((bus, site), seen.is_up)])
    yield _gauge("twinlog_site_active", "1 if clients write at this site.", _SITE, [((bus, site), is_active)])
    yield _gauge("twinlog_scrape_seconds", "How long looking took.", _SITE, [((bus, site), seen.seconds)])


def _brokers(seen: Seen) -> Iterator[Metric]:
    yield _gauge("kafka_brokers", "Number of Brokers in the Kafka Cluster.", (), [((), len(seen.brokers))])
    yield _gauge(
        "kafka_broker_info",
        "Information about the Kafka Broker.",
        ("id", "address"),
        [((str(broker.id), str(broker.address)), 1) for broker in seen.brokers],
    )


def _topics(seen: Seen) -> Iterator[Metric]:
    yield _gauge(
        "kafka_topic_partitions",
        "Number of partitions for this Topic",
        ("topic",),
        [((topic.name,), len(topic.partitions)) for topic in seen.topics],
    )
    yield _of_partitions(
        seen,
        "leader",
        "Leader Broker ID of this Topic/Partition",
        lambda part: part.leader if part.has_leader else None,
    )
    yield _of_partitions(
        seen, "replicas", "Number of Replicas for this Topic/Partition", lambda part: len(part.replicas)
    )
    yield _of_partitions(
        seen,
        "in_sync_replica",
        "Number of In-Sync Replicas for this Topic/Partition",
        lambda part: len(part.isr),
    )
    yield _of_partitions(
        seen,
        "leader_is_preferred",
        "1 if Topic/Partition is using the Preferred Broker",
        lambda part: part.replicas[:1] == (part.leader,),
    )
    yield _of_partitions(
        seen,
        "under_replicated_partition",
        "1 if Topic/Partition is under Replicated",
        lambda part: len(part.isr) < len(part.replicas),
    )


def _of_partitions(seen: Seen, name: str, help_text: str, value: Callable[[Partition], int | None]) -> Metric:
    return _gauge(
        f"kafka_topic_partition_{name}",
        help_text,
        _PLACE,
        [
            ((topic.name, str(part.index)), number)
            for topic in seen.topics
            for part in topic.partitions
            if (number := value(part)) is not None
        ],
    )


def _offsets(seen: Seen) -> Iterator[Metric]:
    for name, help_text, found in (
        ("current_offset", "Current Offset of a Broker at Topic/Partition", seen.ends),
        ("oldest_offset", "Oldest Offset of a Broker at Topic/Partition", seen.starts),
    ):
        yield _gauge(
            f"kafka_topic_partition_{name}",
            help_text,
            _PLACE,
            [((topic, str(index)), offset) for (topic, index), offset in sorted(found.items())],
        )


def _groups(seen: Seen) -> Iterator[Metric]:
    committed, lags, seconds = [], [], []
    committed_sums, lag_sums = [], []
    for group in seen.groups:
        for topic, places in sorted(_places(group, seen.topics).items()):
            known = {place: group.committed[place] for place in places if place in group.committed}
            behind = {place: _lag(at, seen.ends.get(place)) for place, at in known.items()}
            for place in places:
                labels = (group.name, topic, str(place[1]))
                committed.append((labels, known.get(place, NOTHING)))
                if (lag := behind.get(place, NOTHING)) is not None:
                    lags.append((labels, lag))
                if place in group.lag_s:
                    seconds.append((labels, group.lag_s[place]))
            if known:
                committed_sums.append(((group.name, topic), sum(known.values())))
            if known and None not in behind.values():
                lag_sums.append(((group.name, topic), sum(lag for lag in behind.values() if lag is not None)))
    yield _gauge(
        "kafka_consumergroup_members",
        "Amount of members in a consumer group",
        ("consumergroup",),
        [((group.name,), group.members) for group in seen.groups],
    )
    yield _gauge(
        "kafka_consumergroup_current_offset",
        "Current Offset of a ConsumerGroup at Topic/Partition",
        _GROUP_PLACE,
        committed,
    )
    yield _gauge(
        "kafka_consumergroup_current_offset_sum",
        "Current Offset of a ConsumerGroup at Topic for all partitions",
        _GROUP_TOPIC,
        committed_sums,
    )
    yield _gauge(
        "kafka_consumergroup_lag",
        "Current Approximate Lag of a ConsumerGroup at Topic/Partition",
        _GROUP_PLACE,
        lags,
    )
    yield _gauge(
        "kafka_consumergroup_lag_sum",
        "Current Approximate Lag of a ConsumerGroup at Topic for all partitions",
        _GROUP_TOPIC,
        lag_sums,
    )
    yield _gauge(
        "twinlog_consumergroup_lag_seconds",
        "Age of the oldest record that the group has not read.",
        _GROUP_PLACE,
        seconds,
    )


def _places(group: GroupSeen, topics: Iterable[TopicState]) -> dict[str, list[TopicPartition]]:
    """All partitions of the topics that a group has committed something of, or that members read."""
    read = group.assigned | {topic for topic, _ in group.committed}
    places: dict[str, list[TopicPartition]] = defaultdict(list)
    for topic in topics:
        if topic.name in read:
            places[topic.name] = [(topic.name, part.index) for part in topic.partitions]
    return places


def _lag(committed: int, end: int | None) -> int | None:
    return None if end is None else max(0, end - committed)


def _gauge(
    name: str, help_text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    family = GaugeMetricFamily(name, help_text, labels=labels)
    for given, value in values:
        family.add_metric(given, float(value))
    return family
