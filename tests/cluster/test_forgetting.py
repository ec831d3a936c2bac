"""What two sites of three brokers remember of producers, before one of them opens.

The topics are this file's own; the link does not run, so each test says itself what every site got.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.cluster.conftest import Bus
from twinlog.progress import Silent
from twinlog.sites.home import Home
from twinlog.traffic import forgetting
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Kind, Move
from twinlog.traffic.shelf import append
from twinlog.wire import configs, elections, producers, reassignments, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.records import Record, encode_batch

pytestmark = pytest.mark.cluster

TOPIC = "alike"
PLACE = (TOPIC, 0)
COPIES = 3
OLD_S, NEWER_S = 60, 30


@pytest.fixture
def ground(bus: Bus) -> Iterator[Ground]:
    """The shared bus, with a topic that its link would copy."""
    home = bus.home()
    link = home.bus.link.but(include=(f"{TOPIC}*",))
    with Ground(Home(home.bus.but(link=link), home.file), Silent()) as ground:
        for site in home.bus.sites:
            topics.create(ground.cluster(site), topics.NewTopic(TOPIC, 1, COPIES))
        yield ground
        for site in home.bus.sites:
            topics.delete(ground.cluster(site), TOPIC)


def write(cluster: Cluster, producer: int, sequence: int, *, age_s: int = 0) -> None:
    """One record of an idempotent producer, so old."""
    record = Record(b"value", time.time_ns() // 1_000_000 - age_s * 1000, b"key")
    append(
        cluster,
        PLACE,
        bytearray(encode_batch([record], producer_id=producer, producer_epoch=0, first_sequence=sequence)),
    )


def known(cluster: Cluster) -> list[set[int]]:
    """The producers that each replica remembers."""
    return [set(producers.describe_at(cluster, one.id, [PLACE])[PLACE]) for one in cluster.brokers()]


def settings(cluster: Cluster) -> set[str | None]:
    """For how long brokers remember."""
    name = forgetting.EXPIRATION
    return {
        configs.describe(cluster, configs.Kind.BROKER, str(one.id), [name])[name].value
        for one in cluster.brokers()
    }


def test_a_site_that_is_to_open_forgets_what_the_old_one_does_not_say_and_nobody_else(ground: Ground) -> None:
    old, other = ground.cluster("a"), ground.cluster("b")
    before = settings(other)
    stale, only_there, both = 900, 901, 902
    write(old, stale, 7)
    write(other, stale, 3, age_s=OLD_S)
    write(other, only_there, 0, age_s=NEWER_S)
    for cluster in (old, other):
        write(cluster, both, 5)
    assert known(other) == [{stale, only_there, both}] * COPIES
    forgetting.know_alike(ground, Move.begin(Kind.SWITCHOVER, "shared", ("a", "b"), 2))
    assert known(other) == [{both}] * COPIES
    assert known(old) == [{stale, both}] * COPIES
    write(other, stale, 8)
    write(other, both, 6)
    assert settings(other) == before


def test_a_site_that_returned_forgets_all_and_takes_what_follows_a_hole(ground: Ground) -> None:
    returned = ground.cluster("a")
    write(returned, 900, 191)
    write(returned, 901, 5, age_s=OLD_S)
    forgetting.forget_all(ground, "a")
    assert known(returned) == [set()] * COPIES
    write(returned, 900, 260)
    write(returned, 900, 261)
    forgetting.forget_all(ground, "a")  # whoever took this step may have been killed, and it is taken again
    assert settings(returned) == settings(ground.cluster("b"))


def test_a_producer_from_the_future_stays_known_and_the_move_goes_on(ground: Ground) -> None:
    returned = ground.cluster("a")
    write(returned, 900, 5, age_s=-600)
    write(returned, 901, 5)
    forgetting.forget_all(ground, "a")
    assert known(returned) == [{900}] * COPIES


def test_a_broker_that_leads_only_since_a_moment_ago_forgets_too(ground: Ground) -> None:
    cluster = ground.cluster("b")
    write(cluster, 7, 0)
    before = cluster.leader(*PLACE)
    with Cluster(ground.home.admin_access("b")) as other:
        (replicas,) = [one.replicas for topic in topics.describe(other, [TOPIC]) for one in topic.partitions]
        order = [*(one for one in replicas if one != before), before]
        reassignments.begin(other, {PLACE: order})
        elections.elect_preferred(other, [PLACE])
        other.wait_until(lambda: "" if led_by(other) == order[0] else "the old one leads", "an election")
    assert cluster.leader(*PLACE) == before  # as it was told, and nobody has said otherwise
    forgetting.forget_all(ground, "b")
    assert cluster.leader(*PLACE) == order[0]
    assert known(cluster) == [set()] * COPIES


def led_by(cluster: Cluster) -> int:
    (topic,) = topics.describe(cluster, [TOPIC])
    return topic.partitions[0].leader
