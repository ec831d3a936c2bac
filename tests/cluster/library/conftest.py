"""A site of one broker that the tests of this folder share; each has topics and groups of its own names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.conftest import Bus, making
from twinlog import Consumer, Producer, Received
from twinlog.wire import offsets, topics
from twinlog.wire.cluster import Cluster

WAIT_S = 120.0  # for what takes a second; the rest is a busy machine
USER = "app"
PARTITIONS = 3
FILE = """\
bus: work
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 2
  transaction.state.log.num.partitions: 2
sites:
  a: {brokers: 1, controllers: 1}
users:
  app: {produce: ["*"], consume: ["*"], groups: ["*"], transactions: ["*"]}
  reader: {consume: ["*"], groups: ["*"]}
"""

MakeTopic = Callable[..., str]


@pytest.fixture(scope="package")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    """The bus."""
    with making(tmp_path_factory) as make:
        yield make(FILE)


@pytest.fixture(scope="package")
def make_topic(work: Bus) -> Iterator[MakeTopic]:
    """Makes topics of three partitions, or of as many as are wanted."""
    with Cluster(work.home().admin_access("a")) as cluster:

        def make(name: str, partitions: int = PARTITIONS) -> str:
            topics.create(cluster, topics.NewTopic(name, partitions, 1))
            # The broker names itself as leader a moment before it acts as one.
            offsets.log_ends(cluster, [(name, index) for index in range(partitions)])
            return name

        yield make


@pytest.fixture
def topic(make_topic: MakeTopic, request: pytest.FixtureRequest) -> str:
    """A topic that is named after the test."""
    name: str = request.node.name.replace("[", ".").replace("]", "")
    return make_topic(name[-200:])


@pytest.fixture
def producer(work: Bus) -> Iterator[Producer]:
    """A producer of the only user."""
    with Producer.of_bus(work.file, USER, timeout_s=WAIT_S) as made:
        yield made


def take(consumer: Consumer, count: int) -> list[Received]:
    """So many records, within the time of a busy machine."""
    end = time.monotonic() + WAIT_S
    got: list[Received] = []
    while len(got) < count:
        assert time.monotonic() < end, f"{len(got)} of {count} records"
        got += consumer.poll_many(1.0, most=count - len(got))
    return got
