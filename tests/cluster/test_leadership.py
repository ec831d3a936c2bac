"""Consumers that assign their partitions themselves, moved there and back: each gets the next record.

They hold the leader epoch of what they read last against the site that they come to, and no group tells them
where to go on. One bus of two sites of two brokers: elections need two.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.cluster import moving
from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.programs import bootstrap, console
from twinlog.wire import topics
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

FILE = moving.FILE.replace("brokers: 1", "brokers: 2, memory: 256MB")


@pytest.fixture(scope="module")
def pair(make_bus: MakeBus) -> Iterator[Bus]:
    """Two sites of two brokers each."""
    with moving.at_work(make_bus, FILE) as bus:
        yield bus


def epochs(bus: Bus, site: str) -> dict[int, int]:
    with Cluster(bus.home().admin_access(site)) as cluster:
        (found,) = topics.describe(cluster, ["orders"])
    return {one.index: one.leader_epoch for one in found.partitions}


def leaders(bus: Bus, site: str) -> set[bool]:
    """Whether partitions are led by the broker that stands first."""
    with Cluster(bus.home().admin_access(site)) as cluster:
        (found,) = topics.describe(cluster, ["orders"])
    return {one.leader == one.replicas[0] for one in found.partitions}


def are_spread(bus: Bus, site: str) -> Callable[[], bool]:
    return lambda: leaders(bus, site) == {True}


class Reader:
    """Reads one partition of its own choice on librdkafka, from its beginning."""

    def __init__(self, bus: Bus, partition: int) -> None:
        settings = {**moving.client_settings(bus), "group.id": "nobody", "auto.offset.reset": "latest"}
        self._consumer = Consumer({**settings, "enable.auto.commit": False}, logger=moving.LOG)
        self._consumer.assign([TopicPartition("orders", partition, OFFSET_BEGINNING)])
        self.seen: list[int] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while not self._ending.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                offset = message.offset()
                assert offset is not None
                self.seen.append(offset)
        self._consumer.close()

    def end(self) -> None:
        self._ending.set()
        self._thread.join(moving.WAIT_S)


class JavaReader:
    """Does the same with Kafka's own console consumer, which prints the offsets."""

    def __init__(self, bus: Bus, partition: int, directory: Path) -> None:
        file = directory / "client.properties"
        file.write_text(
            bus.done("client", "app", "--gate", "--format", "java") + "\nauto.offset.reset=latest\n"
        )
        tool = console()
        command = [*tool.java, tool.names.consumer, "--bootstrap-server", bootstrap(file)]
        command += [tool.names.consumer_file, str(file), "--topic", "orders"]
        command += ["--partition", str(partition), "--offset", "earliest"]
        command += ["--formatter-property", "print.offset=true", "--formatter-property", "print.value=false"]
        self._heard = directory / "heard"
        with self._heard.open("w") as hears, (directory / "said").open("w") as says:
            self._process = subprocess.Popen(command, stdout=hears, stderr=says)

    @property
    def seen(self) -> list[int]:
        lines = self._heard.read_text().splitlines(keepends=True)
        return [int(line.split("Offset:")[1]) for line in lines if line.endswith("\n")]

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(moving.WAIT_S)


def read_on(readers: Sequence[Reader | JavaReader]) -> Callable[[], bool]:
    """Asks whether each has read something since now."""
    before = [len(one.seen) for one in readers]
    return lambda: all(len(one.seen) > count for one, count in zip(readers, before, strict=True))


def test_consumers_without_a_group_go_on_at_the_next_record_there_and_back(pair: Bus, tmp_path: Path) -> None:
    with moving.load_on(pair, "assigned") as load:
        partition, _ = next(iter(load.acknowledged.values()))  # one that keys lead to
        readers: list[Reader | JavaReader] = [Reader(pair, partition), JavaReader(pair, partition, tmp_path)]
        try:
            for _ in range(2):
                old, new = moving.active_site(pair), moving.other_site(moving.active_site(pair))
                moving.wait_for("all read", read_on(readers))
                pair.done("switchover")
                moving.wait_for("clients go on", load.goes_on())
                moving.wait_for("all read on", read_on(readers))
                # The old site was started again: it must not have come past what clients read now.
                assert all(epochs(pair, new)[part] >= epoch for part, epoch in epochs(pair, old).items())
                assert leaders(pair, new) == {True}
                # Nobody waits for Kafka's own look, which comes every five minutes.
                moving.wait_for("the standby's leaders are spread", are_spread(pair, old))
        finally:
            for one in readers:
                one.end()
    for one in readers:
        assert one.seen == list(range(one.seen[0], one.seen[0] + len(one.seen)))
    moving.check(pair, load)
