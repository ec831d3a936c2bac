"""A site of one broker that the tests of this folder share; each has a topic and a group of its own name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import Site, making
from twinlog.wire import offsets, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import Connection

FILE = """\
bus: raw
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 2
  transaction.state.log.num.partitions: 2
  message.max.bytes: 4194304
sites:
  a: {brokers: 1, controllers: 1}
"""


@pytest.fixture(scope="package")
def raw_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site."""
    with making(tmp_path_factory) as make:
        yield Site(make(FILE), "a")


@pytest.fixture
def cluster(raw_site: Site) -> Iterator[Cluster]:
    """The site, as its administrator."""
    with Cluster(raw_site.access()) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of three partitions, named after the test."""
    name: str = request.node.name.partition("[")[0]
    topics.create(cluster, topics.NewTopic(name, 3, 1))
    # The broker names itself as leader a moment before it acts as one.
    offsets.log_ends(cluster, [(name, index) for index in range(3)])
    return name


@pytest.fixture
def leader(cluster: Cluster, topic: str) -> Connection:
    """A connection to the only broker, which leads everything."""
    return cluster.broker(cluster.leader(topic, 0))
