"""Members that died without a word are taken out of their groups, which then take offsets from outside."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer

from tests.cluster.conftest import Bus, MakeBus
from twinlog.wire import codes, departures, groups
from twinlog.wire.cluster import Cluster
from twinlog.wire.groups import Committed

pytestmark = pytest.mark.cluster

LOG = logging.getLogger("tests.departures")
LOG.setLevel(logging.CRITICAL)  # librdkafka tells of every connection that is closed
WAIT_S = 60.0
PLACE = ("orders", 0)
FILE = """\
bus: departures
kafka: {group.initial.rebalance.delay.ms: 0, offsets.topic.num.partitions: 1}
sites:
  a: {brokers: 1}
topics:
  orders: {partitions: 1}
users:
  app: {consume: ["*"], groups: ["*"]}
"""


@pytest.fixture(scope="module")
def leaving(make_bus: MakeBus) -> Bus:
    """A bus of one broker."""
    return make_bus(FILE)


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.1)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_of_members_that_are_expelled_takes_offsets(leaving: Bus, protocol: str) -> None:
    name = f"group-{protocol}"
    settings = leaving.home().user_access("app", "a").librdkafka()
    consumer = Consumer({**settings, "group.id": name, "group.protocol": protocol}, logger=LOG)
    consumer.subscribe(["orders"])
    with Cluster(leaving.home().admin_access("a")) as cluster:

        def has_members() -> bool:
            consumer.poll(0.1)
            return any(one.name == name and one.has_members for one in groups.list_groups(cluster))

        def refuses() -> bool:
            told = groups.commit(cluster, {name: {PLACE: Committed(0)}})
            return told[name][PLACE] != codes.NONE

        wait_for("the consumer has joined", has_members)
        wait_for("it has its partition", lambda: consumer.poll(0.1) is None and bool(consumer.assignment()))
        assert refuses()
        assert departures.expel(cluster, lambda other: other != name) == ()
        assert refuses()
        assert departures.expel(cluster, lambda other: other == name) == (name,)
        assert not refuses()
    consumer.close()
