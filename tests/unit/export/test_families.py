"""Metrics of a site under the names of kafka_exporter."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tests.conftest import REPOSITORY
from twinlog import __version__
from twinlog.export.families import families
from twinlog.export.link import LinkSeen
from twinlog.export.observation import OFFSETS, TOPICS, Filters, GroupSeen, Seen
from twinlog.mirror.watch import PartitionStatus
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import BrokerAddress
from twinlog.wire.topics import Partition, TopicState

# As kafka_exporter 1.9 has them.
BUILD = "kafka_exporter_build_info"
THEIRS = {
    BUILD: ("version", "revision", "branch", "goversion", "goos", "goarch", "tags"),
    "kafka_brokers": (),
    "kafka_broker_info": ("id", "address"),
    "kafka_topic_partitions": ("topic",),
    "kafka_topic_partition_current_offset": ("topic", "partition"),
    "kafka_topic_partition_oldest_offset": ("topic", "partition"),
    "kafka_topic_partition_leader": ("topic", "partition"),
    "kafka_topic_partition_replicas": ("topic", "partition"),
    "kafka_topic_partition_in_sync_replica": ("topic", "partition"),
    "kafka_topic_partition_leader_is_preferred": ("topic", "partition"),
    "kafka_topic_partition_under_replicated_partition": ("topic", "partition"),
    "kafka_consumergroup_current_offset": ("consumergroup", "topic", "partition"),
    "kafka_consumergroup_current_offset_sum": ("consumergroup", "topic"),
    "kafka_consumergroup_lag": ("consumergroup", "topic", "partition"),
    "kafka_consumergroup_lag_sum": ("consumergroup", "topic"),
    "kafka_consumergroup_members": ("consumergroup",),
}
# What its dashboard asks for (number 7589 at grafana.com): labels that choose or group, for each metric.
ASKED = [
    ("kafka_topic_partition_current_offset", {"topic"}),
    ("kafka_consumergroup_current_offset", {"consumergroup", "topic"}),
    ("kafka_consumergroup_lag", {"consumergroup", "topic"}),
    ("kafka_topic_partitions", {"topic"}),
]
SEEN = Seen(
    brokers=(BrokerAddress(1, HostPort("k1", 9092)), BrokerAddress(2, HostPort("k2", 9092))),
    topics=(
        TopicState(
            "orders",
            UUID(int=1),
            False,
            (
                Partition(0, 1, 3, (1, 2), (1, 2)),
                Partition(1, 1, 3, (2, 1), (1,)),
                Partition(2, -1, 3, (2,), ()),
            ),
        ),
    ),
    starts={("orders", 0): 5, ("orders", 1): 0},
    ends={("orders", 0): 105, ("orders", 1): 20},
    groups=(
        GroupSeen(
            "stock", 2, {("orders", 0): 100, ("orders", 1): 20}, {("orders", 0): 1.5, ("orders", 1): 0.0}
        ),
        GroupSeen("idle", 0, {}),
    ),
    seconds=0.25,
)


LINKED = LinkSeen(
    is_running=True,
    partitions=(
        PartitionStatus("orders", 0, 105, 100, 5, 2.5),
        PartitionStatus("orders", 1, 20, 20, 0, None),
    ),
)


def told(seen: Seen, link: LinkSeen | None = LINKED) -> list[Metric]:
    return list(families(seen, "shop", "a", is_active=True, link=link))


def values(seen: Seen, link: LinkSeen | None = LINKED) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for one in told(seen, link)
        for sample in one.samples
    }


def test_names_and_labels_are_those_of_kafka_exporter() -> None:
    found = {one.name: tuple(one.samples[0].labels) for one in told(SEEN) if one.name.startswith("kafka_")}
    assert found == THEIRS
    assert all(one.type == "gauge" for one in told(SEEN))


@pytest.mark.parametrize(("name", "labels"), ASKED)
def test_what_the_dashboard_of_kafka_exporter_asks_for_is_there(name: str, labels: set[str]) -> None:
    (family,) = [one for one in told(SEEN) if one.name == name]
    assert family.samples and all(labels <= sample.labels.keys() for sample in family.samples)


def test_the_version_is_told_even_of_a_site_that_is_down() -> None:
    for seen in (SEEN, Seen(problems={TOPICS: "nobody answers"})):
        assert values(seen)[BUILD, (__version__, *[""] * 6)] == 1


def test_values_are_what_was_seen() -> None:
    found = values(SEEN)
    assert found["kafka_brokers", ()] == 2
    assert found["kafka_broker_info", ("2", "k2:9092")] == 1
    assert found["kafka_topic_partition_leader_is_preferred", ("orders", "0")] == 1
    assert found["kafka_topic_partition_leader_is_preferred", ("orders", "1")] == 0
    assert found["kafka_topic_partition_under_replicated_partition", ("orders", "1")] == 1
    assert ("kafka_topic_partition_leader", ("orders", "2")) not in found
    assert found["kafka_consumergroup_lag", ("stock", "orders", "0")] == 5
    assert found["kafka_consumergroup_lag", ("stock", "orders", "2")] == -1
    assert found["kafka_consumergroup_lag_sum", ("stock", "orders")] == 5
    assert found["kafka_consumergroup_current_offset_sum", ("stock", "orders")] == 120
    assert found["kafka_consumergroup_members", ("idle",)] == 0
    assert found["twinlog_consumergroup_lag_seconds", ("stock", "orders", "0")] == 1.5
    assert found["twinlog_site_up", ("shop", "a")] == 1


def test_members_that_never_committed_have_no_offset_and_no_lag_and_no_sum_of_nothing() -> None:
    crashing = GroupSeen("crashing", 1, {}, assigned=frozenset({"orders"}))
    found = values(replace(SEEN, groups=(crashing,)))
    for index in "012":
        assert found["kafka_consumergroup_lag", ("crashing", "orders", index)] == -1
        assert found["kafka_consumergroup_current_offset", ("crashing", "orders", index)] == -1
    assert ("kafka_consumergroup_lag_sum", ("crashing", "orders")) not in found
    assert ("kafka_consumergroup_current_offset_sum", ("crashing", "orders")) not in found
    assert found["kafka_consumergroup_members", ("crashing",)] == 1


def test_a_site_that_is_down_has_one_metric_that_says_so_and_no_old_numbers() -> None:
    found = values(Seen(problems={TOPICS: "nobody answers"}, seconds=5.0))
    assert found["twinlog_site_up", ("shop", "a")] == 0
    assert found["twinlog_scrape_failed", ("shop", "a", "topics")] == 1
    assert not any(name.startswith("kafka_") for name, _ in found if name != BUILD)


def test_a_part_that_failed_is_named_and_leaves_the_others() -> None:
    found = values(
        Seen(brokers=SEEN.brokers, topics=SEEN.topics, groups=SEEN.groups, problems={OFFSETS: "late"})
    )
    assert found["twinlog_scrape_failed", ("shop", "a", "offsets")] == 1
    assert found["kafka_topic_partitions", ("orders",)] == 3
    assert ("kafka_consumergroup_lag", ("stock", "orders", "0")) not in found
    assert ("kafka_consumergroup_lag_sum", ("stock", "orders")) not in found


def test_the_active_end_of_a_link_says_how_far_the_standby_is_behind() -> None:
    found = values(SEEN)
    assert found["twinlog_link_running", ("shop",)] == 1
    assert found["twinlog_link_lag_records", ("shop", "orders", "0")] == 5
    assert found["twinlog_link_lag_seconds", ("shop", "orders", "0")] == 2.5
    assert ("twinlog_link_lag_seconds", ("shop", "orders", "1")) not in found
    assert found["twinlog_scrape_failed", ("shop", "a", "link")] == 0


def test_a_link_that_could_not_be_looked_at_is_named_and_has_no_old_numbers() -> None:
    found = values(SEEN, LinkSeen(problem="site b does not answer"))
    assert found["twinlog_scrape_failed", ("shop", "a", "link")] == 1
    assert not any(name.startswith("twinlog_link") for name, _ in found)
    assert ("twinlog_scrape_failed", ("shop", "a", "link")) not in values(SEEN, None)


def test_prometheus_takes_the_page() -> None:
    class Fixed(Collector):
        def collect(self) -> list[Metric]:
            return told(SEEN)

    registry = CollectorRegistry()
    registry.register(Fixed())
    page = generate_latest(registry).decode()
    assert 'kafka_consumergroup_lag{consumergroup="stock",partition="0",topic="orders"} 5.0' in page.replace(
        'consumergroup="stock",topic="orders",partition="0"',
        'consumergroup="stock",partition="0",topic="orders"',
    )


def test_filters_take_what_matches_the_first_and_not_the_second() -> None:
    filters = Filters(topics=re.compile("^o"), no_topics=re.compile("old"))
    assert [name for name in ("orders", "orders-old", "stock") if filters.wants_topic(name)] == ["orders"]
    assert filters.wants_group("anything")


def test_the_dashboard_asks_only_for_metrics_and_labels_that_there_are() -> None:
    dashboard = json.loads((REPOSITORY / "examples" / "grafana.json").read_text())
    labels = {one.name: {"job", "instance", *one.samples[0].labels} for one in told(SEEN) if one.samples}
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(queries) >= 12
    for query in queries:
        asked = re.findall(r"((?:kafka|twinlog)_\w+)\{([^}]*)\}", query)
        assert asked, query
        for name, chosen in asked:
            assert set(re.findall(r"(\w+)=~", chosen)) <= labels[name], query
