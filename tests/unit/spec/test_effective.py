"""What a bus comes to, site by site."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twinlog.spec.effective import (
    broker_ports,
    broker_settings,
    controller_ports,
    largest_message_bytes,
    max_message_bytes,
    needed_bytes_per_broker,
    topic_settings,
)
from twinlog.spec.model import Bus, Site, Topic
from twinlog.spec.typed import validated

MIB = 1024 * 1024


def bus(**rest: Any) -> Bus:
    return validated(Bus, {"bus": "orders", "sites": {"a": {}, "b": {"brokers": 1}}, **rest})


def test_nearer_setting_wins_and_is_written_as_kafka_takes_it() -> None:
    declared = bus(
        kafka={"message.max.bytes": "15MiB", "num.io.threads": 4, "auto.create.topics.enable": False},
        sites={"a": {"kafka": {"num.io.threads": 8}, "brokers": [{}, {"kafka": {"num.io.threads": 2}}]}},
    )
    assert broker_settings(declared, "a") == {
        "message.max.bytes": "15728640",
        "num.io.threads": "8",
        "auto.create.topics.enable": "false",
    }
    assert broker_settings(declared, "a", 1)["num.io.threads"] == "2"


def test_largest_message_is_kafkas_default_until_said_otherwise() -> None:
    assert max_message_bytes(bus(), "a") == 1048588
    assert max_message_bytes(bus(kafka={"message.max.bytes": "15MiB"}), "a") == 15 * MIB


def test_clients_must_hold_the_largest_message_of_any_topic() -> None:
    declared = bus(
        topics={"small": {"max_message": 1000}, "large": {"config": {"max.message.bytes": "15MiB"}}}
    )
    assert largest_message_bytes(declared, "a") == 15 * MIB


def test_topic_has_the_settings_that_its_fields_say() -> None:
    topic = validated(
        Topic,
        {
            "cleanup": "compact,delete",
            "retention": "7d",
            "retention_bytes": "1GiB",
            "max_message": "15MiB",
            "config": {"segment.bytes": "100MiB", "compression.type": "zstd"},
        },
    )
    declared = bus(topics={"orders": topic})
    assert topic_settings(declared, topic, "a") == {
        "cleanup.policy": "compact,delete",
        "retention.ms": "604800000",
        "retention.bytes": "1073741824",
        "max.message.bytes": "15728640",
        "segment.bytes": "104857600",
        "compression.type": "zstd",
        "min.insync.replicas": "2",
    }


def test_topic_follows_the_number_of_brokers_and_kafka_words() -> None:
    topic = validated(Topic, {"retention": "forever", "config": {"cleanup.policy": "compact"}})
    declared = bus(topics={"orders": topic})
    assert topic_settings(declared, topic, "b") == {
        "cleanup.policy": "compact",
        "retention.ms": "-1",
        "min.insync.replicas": "1",
    }


def test_disk_counts_retention_and_one_segment_of_each_partition_held() -> None:
    topic = {"partitions": 6, "retention_bytes": "100MiB", "config": {"segment.bytes": "10MiB"}}
    declared = bus(topics={"orders": topic})
    assert needed_bytes_per_broker(declared, "a") == 6 * 110 * MIB
    assert needed_bytes_per_broker(declared, "b") == 6 * 110 * MIB


def test_disk_takes_limits_of_the_broker_where_the_topic_has_none() -> None:
    kafka = {"log.retention.bytes": "90MiB", "log.segment.bytes": "10MiB"}
    declared = bus(topics={"orders": {"partitions": 3, "replication": 1}}, kafka=kafka)
    assert needed_bytes_per_broker(declared, "a") == 100 * MIB


def test_topic_without_a_limit_has_no_number() -> None:
    assert needed_bytes_per_broker(bus(topics={"orders": {}}), "a") is None
    compacted = {"cleanup": "compact", "retention_bytes": "1MiB"}
    assert needed_bytes_per_broker(bus(topics={"accounts": compacted}), "a") is None
    assert needed_bytes_per_broker(bus(), "a") == 0


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 9))
def test_disk_of_all_brokers_together_holds_every_copy(partitions: int, brokers: int, copies: int) -> None:
    copies = min(copies, brokers)
    topic = {"partitions": partitions, "replication": copies, "retention_bytes": 1000}
    declared = bus(sites={"a": {"brokers": brokers}}, topics={"orders": topic})
    needed = needed_bytes_per_broker(declared, "a")
    assert needed is not None
    assert needed * brokers >= partitions * copies * (1000 + 1024**3)


def test_ports_follow_the_declared_first_one() -> None:
    site = validated(Site, {"port": 9092, "controllers": 3, "brokers": [{}, {"port": 9500}, {}]})
    assert broker_ports(site) == {0: range(9092, 9095), 1: range(9500, 9503), 2: range(9100, 9103)}
    assert controller_ports(site) == range(10092, 10095)
    assert broker_ports(Site()) == {}
    assert not controller_ports(Site())
