"""`twinlog group` on real brokers: classic, consumer and share groups, with and without members."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition

from tests.cluster.conftest import Bus, Site
from twinlog.wire import share_offsets
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

READ_S = 60  # a busy machine; a group stands in a second
HOUR_S = 3600
COMMIT_EVERY_S = 0.2
WINDOW = 10  # commits that a status is judged by


@pytest.fixture
def topic(bus: Bus, site: Site) -> Iterator[str]:
    """A topic of three partitions with ten records in each."""
    name = f"cmd-{uuid.uuid4().hex[:8]}"
    bus.done("topic", "create", name, "--partitions", "3")
    write(site, name, 10)
    yield name
    bus.done("topic", "delete", name, "--yes")


def write(site: Site, topic: str, each: int, timestamp_ms: int = 0) -> None:
    """So many records more in each of three partitions; without a time they are of now."""
    producer = Producer(site.access(None).librdkafka())
    for number in range(3 * each):
        producer.produce(topic, f"value {number}", partition=number % 3, timestamp=timestamp_ms)
    assert producer.flush(READ_S) == 0


def first_record(consumer: Consumer, group: str) -> None:
    """Wait until a consumer is a member and was handed something."""
    deadline = time.monotonic() + READ_S
    while (message := consumer.poll(0.5)) is None or message.error() is not None:
        assert time.monotonic() < deadline, f"{group} was handed nothing"


def reader(site: Site, topic: str, group: str, **settings: Any) -> Consumer:
    """A consumer that is on its way into the group, and commits when told."""
    consumer = Consumer(
        {
            **site.access(None).librdkafka(),
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([topic])
    return consumer


@contextmanager
def member(site: Site, topic: str, group: str, **settings: Any) -> Iterator[Consumer]:
    """A member that has committed half of each partition."""
    consumer = reader(site, topic, group, **settings)
    try:
        first_record(consumer, group)
        consumer.commit(offsets=[TopicPartition(topic, index, 5) for index in range(3)], asynchronous=False)
        yield consumer
    finally:
        consumer.close()


KINDS = [
    ("classic", {"partition.assignment.strategy": "range"}, "range"),
    ("consumer", {"group.protocol": "consumer"}, "uniform"),
]


@pytest.mark.parametrize(("kind", "settings", "assignor"), KINDS)
def test_a_group_is_described_measured_reset_and_deleted(
    bus: Bus, site: Site, topic: str, kind: str, settings: dict[str, Any], assignor: str
) -> None:
    group = f"cmd-{uuid.uuid4().hex[:8]}"
    with member(site, topic, group, **settings):
        told = bus.json("group", "describe", group)
        assert (told["group"]["type"], told["group"]["assignor"]) == (kind, assignor)
        (one,) = told["members"]
        assert one["client_id"] == "reader" and not one["idle"]
        assert one["assigned"] == [f"{topic}-{index}" for index in range(3)]
        (lag,) = bus.json("group", "lag", group, exit_code=bus.run("group", "lag", group).returncode)
        assert lag["lag_records"] == 15 and lag["lag_s"] > 0 and lag["commit_age_s"] is not None
        refused = bus.run("group", "reset", group, "--to", "beginning", "--yes")
        assert refused.returncode == 1 and "has members" in refused.stderr
    (lag,) = bus.json("group", "lag", group, exit_code=3)
    assert lag["status"] == "stopped"
    planned = bus.run("group", "reset", group, "--topic", topic, "--to", "end")
    assert planned.returncode == 2 and "--to end --yes" in planned.stderr
    assert bus.json("group", "lag", group, exit_code=3)[0]["lag_records"] == lag["lag_records"]
    bus.done("group", "reset", group, "--topic", topic, "--to", "end", "--yes")
    moves = bus.json("group", "reset", group, "--shift-by", "-4", "--yes")
    assert [(move["before"], move["after"]) for move in moves] == [(10, 6)] * 3
    (lag,) = bus.json("group", "lag", group, exit_code=3)
    assert (lag["lag_records"], lag["status"]) == (12, "rewound")
    bus.done("group", "delete", group, "--yes")
    gone = bus.run("group", "describe", group)
    assert gone.returncode == 1 and "there is no group" in gone.stderr and "twinlog group list" in gone.stderr


@pytest.mark.parametrize(("kind", "settings", "assignor"), KINDS)
def test_what_members_never_committed_is_unknown_and_not_zero(
    bus: Bus, site: Site, topic: str, kind: str, settings: dict[str, Any], assignor: str
) -> None:
    group = f"cmd-{uuid.uuid4().hex[:8]}"
    consumer = reader(site, topic, group, **settings)
    try:
        first_record(consumer, group)
        (lag,) = bus.json("group", "lag", group)
        assert (lag["type"], lag["partitions"], lag["lag_records"]) == (kind, 3, None)
        assert (lag["lag_s"], lag["commit_age_s"], lag["status"]) == (None, None, "unknown")
        consumer.commit(offsets=[TopicPartition(topic, 0, 10)], asynchronous=False)
        bus.done("topic", "trim", topic, "--before", "end", "--partition", "2", "--yes")
        places = bus.json("group", "lag", group, "--partitions")
        told = [(one["committed"], one["end"], one["lag_records"], one["status"]) for one in places]
        # The third holds no record any more, so nothing is left to read there.
        assert told == [(10, 10, 0, "ok"), (None, 10, None, "unknown"), (None, 10, 0, "ok")]
        (lag,) = bus.json("group", "lag", group)
        assert (lag["partitions"], lag["lag_records"], lag["status"]) == (3, None, "unknown")
    finally:
        consumer.close()
    bus.done("group", "delete", group, "--yes")


@pytest.mark.parametrize(("kind", "settings", "assignor"), KINDS)
def test_seconds_are_the_age_of_the_oldest_record_that_was_not_read(
    bus: Bus, site: Site, topic: str, kind: str, settings: dict[str, Any], assignor: str
) -> None:
    group = f"cmd-{uuid.uuid4().hex[:8]}"
    write(site, topic, 5, int((time.time() - HOUR_S) * 1000))
    with member(site, topic, group, **settings) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, index, 10) for index in range(3)], asynchronous=False)
        told = bus.run("group", "lag", group, "--partitions", "-o", "json")
    places = json.loads(told.stdout)
    assert [place["lag_records"] for place in places] == [5] * 3
    assert all(HOUR_S <= place["lag_s"] < HOUR_S + 100 for place in places), places
    assert all(0 <= place["commit_age_s"] < 60 for place in places), places


@pytest.mark.parametrize(("kind", "settings", "assignor"), KINDS)
def test_a_group_that_commits_the_same_offset_again_and_again_is_stalled(
    bus: Bus, site: Site, topic: str, kind: str, settings: dict[str, Any], assignor: str
) -> None:
    group = f"cmd-{uuid.uuid4().hex[:8]}"
    with member(site, topic, group, **settings) as consumer:

        def commit() -> None:
            consumer.commit(
                offsets=[TopicPartition(topic, index, 5) for index in range(3)], asynchronous=False
            )

        lag = judged(bus, group, commit, "stalled")
    assert (lag["type"], lag["lag_records"]) == (kind, 15)


@pytest.mark.parametrize(("kind", "settings", "assignor"), KINDS)
def test_a_group_that_commits_less_than_is_written_is_falling_behind(
    bus: Bus, site: Site, topic: str, kind: str, settings: dict[str, Any], assignor: str
) -> None:
    group = f"cmd-{uuid.uuid4().hex[:8]}"
    with member(site, topic, group, **settings) as consumer:
        offset = 5

        def write_three_and_commit_one() -> None:
            nonlocal offset
            offset += 1
            write(site, topic, 3)
            consumer.commit(
                offsets=[TopicPartition(topic, index, offset) for index in range(3)], asynchronous=False
            )

        lag = judged(bus, group, write_three_and_commit_one, "falling behind")
    assert lag["type"] == kind and lag["lag_records"] > 15


def judged(bus: Bus, group: str, commit: Callable[[], None], status: str) -> dict[str, Any]:
    """What is said of a group that goes on committing like this, as soon as it has this status."""
    pause, deadline = threading.Event(), time.monotonic() + READ_S
    for _ in range(WINDOW):
        commit()
        pause.wait(COMMIT_EVERY_S)
    with ThreadPoolExecutor(1) as pool:
        while True:
            asked = pool.submit(bus.run, "group", "lag", group, "-o", "json")
            while not asked.done():  # one that committed nothing for longer than before would be stopped
                commit()
                pause.wait(COMMIT_EVERY_S)
            ended = asked.result()
            (lag,) = json.loads(ended.stdout)
            if lag["status"] == status:
                assert ended.returncode == 3 and f"not well: {group}" in ended.stderr
                assert f"twinlog group describe {group}" in ended.stderr
                assert isinstance(lag, dict)
                return lag
            assert time.monotonic() < deadline, lag


@pytest.mark.parametrize(("kind", "settings", "assignor"), KINDS)
def test_a_member_without_a_partition_is_idle(
    bus: Bus, site: Site, topic: str, kind: str, settings: dict[str, Any], assignor: str
) -> None:
    group = f"cmd-{uuid.uuid4().hex[:8]}"
    names = [f"reader-{number}" for number in range(4)]
    consumers = [reader(site, topic, group, **{"client.id": name}, **settings) for name in names]
    try:
        deadline = time.monotonic() + READ_S
        assigned: list[list[str]] = []
        while sorted(map(len, assigned)) != [0, 1, 1, 1]:
            assert time.monotonic() < deadline, assigned
            for consumer in consumers:
                consumer.poll(0.1)
            ended = bus.run("group", "members", group, "-o", "json")
            rows = json.loads(ended.stdout) if ended.returncode == 0 else []
            assigned = [row["assigned"] for row in rows]
        assert [row["idle"] for row in rows] == [not theirs for theirs in assigned]
        assert sorted(chain.from_iterable(assigned)) == [f"{topic}-{index}" for index in range(3)]
        assert sorted(row["client_id"] for row in rows) == names
        assert all(row["member"] and row["host"] for row in rows)
        assert bus.json("group", "describe", group)["group"]["type"] == kind
    finally:
        for consumer in consumers:
            consumer.close()
    bus.done("group", "delete", group, "--yes")


def test_a_share_group_is_listed_and_moved(bus: Bus, site: Site, topic: str) -> None:
    group = f"cmd-{uuid.uuid4().hex[:8]}"
    with Cluster(site.access(None)) as cluster:
        share_offsets.alter(cluster, {group: {(topic, index): 3 for index in range(3)}})
    assert {"group": group, "type": "share", "state": "Empty"} in bus.json("group", "list", "--type", "share")
    (lag,) = bus.json("group", "lag", group, exit_code=3)
    assert (lag["type"], lag["lag_records"], lag["status"]) == ("share", 21, "stopped")
    bus.done("group", "reset", group, "--to", "end", "--yes")
    assert bus.json("group", "lag", group)[0]["lag_records"] == 0
    bus.done("group", "delete", group, "--yes")


def test_members_of_a_share_group_are_shown_and_it_is_not_moved_under_them(
    bus: Bus, site: Site, topic: str
) -> None:
    group = f"cmd-{uuid.uuid4().hex[:8]}"
    settings = {**site.access(None).librdkafka(), "group.id": group, "client.id": "sharer"}
    consumer = ShareConsumer(settings)
    consumer.subscribe([topic])
    try:
        deadline = time.monotonic() + READ_S
        while True:
            consumer.poll(0.5)
            ended = bus.run("group", "describe", group, "-o", "json")
            told = json.loads(ended.stdout) if ended.returncode == 0 else {"members": []}
            if told["members"] and told["members"][0]["assigned"]:
                break
            assert time.monotonic() < deadline, ended.stderr
        assert told["group"]["type"] == "share"
        (one,) = told["members"]
        assert (one["client_id"], one["idle"]) == ("sharer", False)
        assert one["assigned"] == [f"{topic}-{index}" for index in range(3)]
        refused = bus.run("group", "reset", group, "--to", "beginning", "--yes")
        assert refused.returncode == 1 and "has members" in refused.stderr
    finally:
        consumer.close()
    bus.done("group", "delete", group, "--yes")
