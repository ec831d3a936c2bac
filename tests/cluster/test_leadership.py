"""Leader epochs when roles change: consumers get the next record, and nobody waits for an epoch that is gone.

Consumers that assign their partitions themselves hold the epoch of what they read last against the site that
they come to, and no group tells them where to go on. Clients on librdkafka that have heard of a higher epoch
pay no heed to leaders of a lower one. One bus of two sites of two brokers: elections need two.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.cluster import moving
from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.programs import bootstrap, console
from twinlog.sites import processes
from twinlog.traffic import replicated
from twinlog.wire import offsets, topics
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

# Brokers that are shut down in order would tell librdkafka at last that there are none (decision 20).
AT_ONCE = "  controlled.shutdown.enable: false\nsites:"
FILE = moving.FILE.replace("brokers: 1", "brokers: 2, memory: 256MB").replace("sites:", AT_ONCE)


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

    def __init__(self, bus: Bus, partition: int, topic: str = "orders") -> None:
        settings = {**moving.client_settings(bus), "group.id": "nobody", "auto.offset.reset": "latest"}
        self._consumer = Consumer({**settings, "enable.auto.commit": False}, logger=moving.LOG)
        self._consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
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

    def __init__(self, bus: Bus, partition: int, directory: Path, topic: str = "orders") -> None:
        file = directory / "client.properties"
        file.write_text(
            bus.done("client", "app", "--gate", "--format", "java") + "\nauto.offset.reset=latest\n"
        )
        tool = console()
        command = [*tool.java, tool.names.consumer, "--bootstrap-server", bootstrap(file)]
        command += [tool.names.consumer_file, str(file), "--topic", topic]
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


def write_calmly(bus: Bus, count: int, acks: str = "all") -> None:
    """Write to the topic that nobody else writes to."""
    settings = {**moving.client_settings(bus), "acks": acks, "enable.idempotence": acks == "all"}
    producer = Producer(settings, logger=moving.LOG)
    for number in range(count):
        producer.produce("calm", value=f"{number}")
    assert producer.flush(moving.WAIT_S) == 0


def calm_end(bus: Bus, site: str) -> int:
    with Cluster(bus.home().admin_access(site)) as cluster:
        return offsets.log_ends(cluster, [("calm", 0)])["calm", 0]


def shut_down(bus: Bus, site: str) -> None:
    """SIGTERM of a whole site, controllers last, as a machine does that is turned off."""
    layout = bus.home().layout(site)
    for nodes in (layout.brokers, layout.local_nodes):
        found = list(processes.find(nodes).values())
        assert found
        processes.end(found, signal.SIGTERM)
        assert processes.wait(found, moving.WAIT_S) == []


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


def test_nobody_is_elected_while_a_replica_in_sync_lacks_what_the_leader_has(pair: Bus) -> None:
    site, place = moving.active_site(pair), ("calm", 0)
    nodes = pair.home().layout(site).brokers
    with Cluster(pair.home().admin_access(site)) as cluster:
        leader = cluster.leader(*place)
        (follower,) = processes.find(node for node in nodes if node.id != leader).values()
        assert replicated.late(cluster, [place]) == []
        follower.suspend()
        try:
            write_calmly(pair, 1, acks="1")
            assert replicated.late(cluster, [place]) == [place]
        finally:
            follower.resume()
        moving.wait_for("the follower has it", lambda: replicated.late(cluster, [place]) == [])


def test_clients_of_a_site_that_was_shut_down_go_on_at_the_promoted_one(pair: Bus, tmp_path: Path) -> None:
    old, new = moving.active_site(pair), moving.other_site(moving.active_site(pair))
    write_calmly(pair, 50)
    end = calm_end(pair, old)
    moving.wait_for("the standby has it all", lambda: calm_end(pair, new) == end)
    readers: list[Reader | JavaReader] = [Reader(pair, 0, "calm"), JavaReader(pair, 0, tmp_path, "calm")]
    try:
        moving.wait_for("all was read", lambda: all(len(one.seen) == end for one in readers))
        with ExitStack() as stack:
            on = stack.enter_context  # every group reads what all of them write
            loads = [on(moving.load_on(pair, f"orderly-{one}", every_s=0.1)) for one in range(8)]
            heard = epochs(pair, old)
            shut_down(pair, old)
            pair.done("promote")
            for load in loads:
                moving.wait_for(f"clients of {load.name} go on", load.goes_on())
        # Two brokers have ended; the last one may have said under a higher epoch that nobody leads.
        assert all(epochs(pair, new)[part] >= epoch + 2 for part, epoch in heard.items())
        write_calmly(pair, 50)
        moving.wait_for("all was read on", lambda: all(len(one.seen) >= end + 50 for one in readers))
    finally:
        for one in readers:
            one.end()
    for one in readers:
        assert one.seen == list(range(end + 50))
    pair.done("return")
