"""Clients leave a site that is closed to them: connections go at once, and members out of their groups."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Producer

from tests.cluster.conftest import Bus, MakeBus
from twinlog.sites import fencing
from twinlog.sites.layout import Listener, SiteLayout
from twinlog.traffic import switchover
from twinlog.wire import codes, departures, groups, offsets
from twinlog.wire.cluster import Cluster
from twinlog.wire.groups import Committed

pytestmark = pytest.mark.cluster

LOG = logging.getLogger("tests.departures")
LOG.setLevel(logging.CRITICAL)  # librdkafka tells of every connection that is closed
WAIT_S = 60.0
IDLE = 500  # connections
MORE = 300  # records that a writer sends into nothing: more than half a second of them
PLACE = ("orders", 0)
FILE = """\
bus: departures
kafka: {group.initial.rebalance.delay.ms: 0, offsets.topic.num.partitions: 1}
sites:
  a: {brokers: 1}
topics:
  orders: {partitions: 1}
users:
  app: {produce: ["*"], consume: ["*"], groups: ["*"]}
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


def test_fence_lets_many_idle_connections_go_as_quickly_as_one(leaving: Bus) -> None:
    layout = leaving.home().layout("a")
    running = fencing.brokers(layout)
    (broker,) = layout.brokers
    place = (broker.listen, broker.ports[Listener.CLIENT])
    with Cluster(leaving.home().admin_access("a")) as cluster, ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(socket.create_connection(place))
        wait_for("all are connected", lambda: len(fencing.clients(layout, running)) >= IDLE)
        took_s, before = fenced(cluster, layout, running)
        for _ in range(2):  # as clients do that try again; one is accepted, and nobody reads from it
            stack.enter_context(socket.create_connection(place))
        wait_for("one waits", lambda: len(fencing.clients(layout, running)) == 1)
        assert fencing.still_served(fencing.clients(layout, running), before) == 0
        fencing.release(cluster)
    # Three network threads that look three times a second would need a minute, on any machine; a switchover
    # gives up long before that, and so is the bound here.
    assert took_s < switchover.FENCE_TIMEOUT_S


def fenced(
    cluster: Cluster, layout: SiteLayout, running: fencing.Running
) -> tuple[float, frozenset[fencing.Connection]]:
    """Fence as a switchover does; how long that took, and who was connected before."""
    before = fencing.clients(layout, running)
    begun_s = time.monotonic()
    with fencing.stirred(layout):
        fencing.thin(cluster, layout, running)
        fencing.fence(cluster)
        wait_for("all are gone", lambda: not fencing.still_served(fencing.clients(layout, running), before))
    return time.monotonic() - begun_s, before


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_nothing_is_appended_behind_a_fence_whatever_writers_wait_for(leaving: Bus, acks: str) -> None:
    layout = leaving.home().layout("a")
    running = fencing.brokers(layout)
    stopping, sent = threading.Event(), [0]
    settings = leaving.home().user_access("app", "a").librdkafka()

    def write() -> None:
        producer = Producer({**settings, "acks": acks, "linger.ms": 0}, logger=LOG)
        while not stopping.wait(0.002):
            producer.produce("orders", str(sent[0]))
            producer.poll(0)
            sent[0] += 1
        producer.purge()
        producer.flush(WAIT_S)

    with Cluster(leaving.home().admin_access("a")) as cluster:
        end = [offsets.log_ends(cluster, [PLACE])[PLACE]]

        def stands_still() -> bool:
            before, end[0] = end[0], offsets.log_ends(cluster, [PLACE])[PLACE]
            return end[0] == before

        writer = threading.Thread(target=write)
        writer.start()
        try:
            wait_for("it writes", lambda: not stands_still())
            fenced(cluster, layout, running)
            wait_for("what the broker had read before is appended", stands_still)
            since = sent[0]
            wait_for("it goes on writing", lambda: sent[0] > since + MORE)
            assert stands_still()
            fencing.release(cluster)
            wait_for("it writes again", lambda: not stands_still())
        finally:
            stopping.set()
            writer.join(WAIT_S)
            fencing.release(cluster)
