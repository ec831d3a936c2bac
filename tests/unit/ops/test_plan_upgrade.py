"""Another version of Kafka in the file: restarts, a raise that waits to be asked for, then no way back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from twinlog.ops import steps
from twinlog.ops.plan import plan
from twinlog.ops.world import VERSION, NodeWorld, World
from twinlog.sites.levels import LEVELS
from twinlog.spec.model import KAFKA_VERSION, Bus, KafkaVersion, Role, Site
from twinlog.wire.roles import Standing

OLD: KafkaVersion = "4.2.1"
NODES = (NodeWorld(901, "a/controller-901", running=True), NodeWorld(1, "a/broker-1", running=True))
DONE = World(
    "a",
    NODES,
    brokers=1,
    settings={"min.insync.replicas": "1"},
    standing=Standing("model", "a", Role.ACTIVE, 1),
    level=LEVELS[OLD],
)
CHANGED = {VERSION: (OLD, KAFKA_VERSION)}
RAISE = steps.RaiseLevel("a", LEVELS[OLD], LEVELS[KAFKA_VERSION], KAFKA_VERSION)


def planned(
    world: World, version: KafkaVersion = KAFKA_VERSION, site: Site | None = None
) -> list[steps.Step]:
    bus = Bus(bus="model", kafka_version=version, sites={"a": site or Site(brokers=1)})
    return plan(bus, Role.ACTIVE, world, {}, term=1)


def test_nodes_of_another_version_are_restarted_and_the_level_waits_for_the_last_of_them() -> None:
    both = planned(replace(DONE, nodes=tuple(replace(node, changed=CHANGED) for node in NODES)))
    assert [step.what for step in both] == [
        f"restart a/{name}: kafka_version {OLD} → {KAFKA_VERSION}" for name in ("controller-901", "broker-1")
    ]
    one = planned(replace(DONE, nodes=(NODES[0], replace(NODES[1], changed=CHANGED))))
    assert [type(step) for step in one] == [steps.Restart]
    stopped = planned(replace(DONE, nodes=(NODES[0], replace(NODES[1], running=False))))
    assert [type(step) for step in stopped] == [steps.Start]


def test_level_is_raised_when_every_node_runs_the_new_version_and_cannot_be_taken_back() -> None:
    assert planned(DONE) == [RAISE]
    assert RAISE.destructive
    assert "29 to 30" in RAISE.what
    assert planned(replace(DONE, level=LEVELS[KAFKA_VERSION])) == []


def test_version_of_the_site_wins_over_that_of_the_bus() -> None:
    assert planned(DONE, KAFKA_VERSION, Site(brokers=1, kafka_version=OLD)) == []
    assert planned(DONE, OLD, Site(brokers=1, kafka_version=KAFKA_VERSION)) == [RAISE]


@pytest.mark.parametrize("unreachable", ["", "no node of it runs"])
def test_old_version_is_impossible_once_the_level_was_raised(unreachable: str) -> None:
    (step,) = [
        step
        for step in planned(replace(DONE, level=LEVELS[KAFKA_VERSION], unreachable=unreachable), OLD)
        if not isinstance(step, steps.Unknown)
    ]
    assert isinstance(step, steps.Impossible)
    assert step.what == "kafka_version: its metadata has level 30 and Kafka 4.2.1 knows 29 at most"
    assert step.hint == f"kafka_version: {KAFKA_VERSION}"


def test_old_version_may_come_back_while_the_level_is_its_own() -> None:
    back = tuple(replace(node, changed={VERSION: (KAFKA_VERSION, OLD)}) for node in NODES)
    assert [type(step) for step in planned(replace(DONE, nodes=back), OLD)] == [steps.Restart, steps.Restart]
