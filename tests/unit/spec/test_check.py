"""Rules over a whole bus: what is doubtful, what is wrong, and what is neither."""

from __future__ import annotations

from typing import Any

import pytest

from twinlog.spec.check import findings
from twinlog.spec.model import Bus
from twinlog.spec.typed import validated

GOOD: dict[str, Any] = {"controllers": 3}
EXISTING: dict[str, Any] = {"bootstrap": ["kafka1:9093", "[::1]:9093"], "client": "b.properties"}
SIZES = {"message.max.bytes": 15728640, "replica.fetch.max.bytes": 15728640}


def bus(a: dict[str, Any] | None = None, b: dict[str, Any] | None = None, **rest: Any) -> Bus:
    sites = {"a": {**GOOD, **(a or {})}, "b": b if b and "bootstrap" in b else {**GOOD, **(b or {})}}
    return validated(Bus, {"bus": "orders", "sites": sites, **rest})


def found(*args: Any, **rest: Any) -> list[tuple[str, str]]:
    """Severity and path of everything that the rules find."""
    return [(item.severity, ".".join(map(str, item.path))) for item in findings(bus(*args, **rest))]


def test_plain_bus_has_nothing_to_report() -> None:
    users = {"shop": {"produce": ["orders"]}, "stock": {"consume": ["ord*"], "groups": ["stock-*"]}}
    assert found(topics={"orders": {}}, users=users) == []


def test_sizes_of_a_large_message_bus_are_fine() -> None:
    assert found(kafka=SIZES) == []


def test_existing_site_beside_a_local_one_is_fine() -> None:
    assert found(b=EXISTING, topics={"orders": {"replication": 3}}, kafka=SIZES) == []


@pytest.mark.parametrize(
    ("declared", "path"),
    [
        ({"a": {"controllers": 1}}, "sites.a.controllers"),
        ({"a": {"brokers": 1}}, "sites.a.brokers"),
        ({"topics": {"orders": {"replication": 1}}}, "topics.orders.replication"),
        ({"topics": {"orders": {"min_insync": 3}}}, "topics.orders.min_insync"),
        (
            {"topics": {"orders": {"config": {"min.insync.replicas": 3}}}},
            "topics.orders.config.min.insync.replicas",
        ),
        ({"topics": {"orders": {"cleanup": "compact", "retention": "7d"}}}, "topics.orders.retention"),
        ({"topics": {"orders": {"max_message": "15MiB"}}}, "topics.orders.max_message"),
        (
            {"topics": {"orders": {"config": {"max.message.bytes": "15MiB"}}}},
            "topics.orders.config.max.message.bytes",
        ),
        ({"kafka": {"message.max.bytes": 15728640}}, "kafka.message.max.bytes"),
        ({"kafka": {"unclean.leader.election.enable": True}}, "kafka.unclean.leader.election.enable"),
        ({"users": {"shop": {"produce": ["new-*"]}}}, "users.shop.produce.0"),
        ({"users": {"shop": {}}}, "users.shop"),
        ({"topics": {"orders": {}}, "users": {"stock": {"consume": ["orders"]}}}, "users.stock.consume"),
    ],
)
def test_doubtful_bus_is_warned_about_once(declared: dict[str, Any], path: str) -> None:
    assert found(**declared) == [("warning", path)]


@pytest.mark.parametrize("field", ["address", "tls_address", "page", "witness"])
def test_wrong_address_of_the_gate_is_refused_where_it_stands(field: str) -> None:
    assert found(gate={field: "nowhere"}) == [("error", f"gate.{field}")]


def test_wrong_dns_of_the_gate_is_refused_where_it_stands() -> None:
    wrong = {"dns": {"listen": "nowhere", "name": "not a name"}}
    assert found(gate=wrong) == [("error", "gate.dns.listen"), ("error", "gate.dns.name")]


def test_automatic_promotion_needs_a_witness() -> None:
    assert found(gate={"promote": "automatic"}) == [("error", "gate.promote")]
    assert found(gate={"promote": "automatic", "witness": "127.0.0.1:9099"}) == []


def test_automatic_promotion_that_a_lost_broker_would_cause_is_warned_about() -> None:
    gate = {"promote": "automatic", "witness": "127.0.0.1:9099", "failover_after": "4s"}
    assert found(gate=gate) == [("warning", "gate.failover_after")] * 2
    assert ("warning", "gate.failover_after") not in found({"brokers": 1}, {"brokers": 1}, gate=gate)
    assert found(gate={**gate, "failover_after": "5s"}) == []
    assert found(gate={**gate, "failover_after": "5s"}, b={"kafka": {"broker.session.timeout.ms": 6000}}) == [
        ("warning", "gate.failover_after")
    ]
    assert found(gate={**gate, "promote": "ask"}) == []


def test_one_site_is_warned_about() -> None:
    single = validated(Bus, {"bus": "orders", "sites": {"a": GOOD}})
    assert [(item.severity, item.path) for item in findings(single)] == [("warning", ("sites",))]


def test_sizes_that_differ_between_sites_are_warned_about_at_the_site() -> None:
    assert found(b={"kafka": SIZES}) == [
        ("warning", "sites.b.kafka.message.max.bytes"),
        ("warning", "sites.b.kafka.replica.fetch.max.bytes"),
    ]


def test_heap_of_one_broker_that_is_too_small_is_placed_at_that_broker() -> None:
    brokers = [{}, {"memory": "100MiB"}, {}]
    assert found({"brokers": brokers}, kafka=SIZES) == [("error", "sites.a.brokers.1.memory")]


def test_heap_that_nobody_declared_is_placed_at_the_message_size() -> None:
    sizes = {"message.max.bytes": "100MB", "replica.fetch.max.bytes": "100MB"}
    assert set(found(kafka=sizes)) == {("error", "kafka.message.max.bytes")}


def test_setting_of_one_broker_is_checked_too() -> None:
    brokers = [{"kafka": {"node.id": 7}}, {"kafka": {"num.io.threads": "x"}}, {}]
    assert found({"brokers": brokers}) == [
        ("error", "sites.a.brokers.0.kafka.node.id"),
        ("error", "sites.a.brokers.1.kafka.num.io.threads"),
    ]


def test_field_and_setting_that_say_the_same_are_fine() -> None:
    config = {"cleanup.policy": "compact", "max.message.bytes": 1000, "retention.ms": "7d"}
    topic = {"cleanup": "compact", "max_message": "1kB", "config": config}
    assert found(topics={"accounts": topic}) == []


def test_same_port_on_machines_of_their_own_is_fine() -> None:
    brokers = [{"listen": "0.0.0.0", "advertise": f"host{number}", "port": 9092} for number in range(3)]
    assert found({"brokers": brokers}) == []


def test_site_on_several_machines_is_fine() -> None:
    brokers = [{"listen": f"192.0.2.{number}"} for number in (1, 2, 3)]
    assert found({"remote": True, "listen": "192.0.2.1", "port": 9092, "brokers": brokers}) == []
    one_elsewhere = [{}, {}, {"listen": "192.0.2.2", "port": 9092, "remote": True}]
    assert found({"listen": "192.0.2.1", "brokers": one_elsewhere}) == []


def test_site_elsewhere_needs_an_address_and_ports() -> None:
    assert found({"remote": True}) == [
        ("error", "sites.a.listen"),
        ("error", "sites.a.port"),
    ]


def test_broker_elsewhere_needs_an_address_and_a_port() -> None:
    assert found({"listen": "192.0.2.1", "brokers": [{}, {}, {"listen": "::1", "remote": True}]}) == [
        ("error", "sites.a.brokers.2.port"),
        ("error", "sites.a.brokers.2.listen"),
    ]


def test_port_beyond_the_last_one_is_refused() -> None:
    assert ("error", "sites.a.port") in found({"port": 65530})


@pytest.mark.parametrize("address", ["127.0.0.1:9092", "[::1]:9092", "bus.example.org:443", "my_host:1"])
def test_right_gate_address_is_taken(address: str) -> None:
    assert found(gate={"address": address}) == []


@pytest.mark.parametrize(
    "address", ["x", ":9092", "::1:9092", "a b:1", "h:0", "h:65536", "h:x", "h:٣", "", "a,b:1"]
)
def test_wrong_gate_address_is_refused(address: str) -> None:
    assert found(gate={"address": address}) == [("error", "gate.address")]


def test_broken_part_keeps_rules_about_it_quiet() -> None:
    wrong = bus({"controllers": 2}, topics={"orders": {"replication": 9}}, active="c")
    quiet = findings(wrong, broken=[("sites", "a", "brokers")])
    assert [item.path for item in quiet] == [("active",)]
