"""Controllers that stop and die, and what their quorum keeps: writes, topics, ranges of producer ids.

One bus of two sites: five controllers at the first, three (a dynamic quorum too) at the second.
"""

from __future__ import annotations

import signal
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import confluent_kafka
import pytest
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from tests.cluster.conftest import Bus, MakeBus
from twinlog.progress import Silent
from twinlog.sites import local, processes, storage
from twinlog.sites.home import Home
from twinlog.sites.layout import Kind, Listener, Node, SiteLayout, random_id
from twinlog.wire import codes, quorum, topics
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline

pytestmark = pytest.mark.cluster

FILE = """\
bus: quorum
sites:
  a: {brokers: 2, controllers: 5, memory: 256MB, controller_memory: 96MB}
  b: {brokers: 1, controllers: 3, memory: 256MB, controller_memory: 96MB}
topics:
  orders: {partitions: 2, mirror: false}
users:
  shop: {produce: [orders]}
"""
PATIENCE = Patience(total_s=60.0)  # an election takes a second or two; the rest is a busy machine
END_TIMEOUT_S = 60.0
SNAPSHOT_HEADER = b"\0\0\0\3"  # the key of a checkpoint's first record
IDS_IN_A_BLOCK = 1000  # Kafka's controllers hand them out to brokers in such blocks


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Bus:
    return make_bus(FILE)


class Writer:
    """An ordinary client that writes with acks=all until it is told to stop."""

    def __init__(self, access: Access) -> None:
        settings = access.librdkafka() | {"acks": "all", "delivery.timeout.ms": int(END_TIMEOUT_S * 1000)}
        self._producer = confluent_kafka.Producer(settings)
        self._stop = Event()
        self._thread = Thread(target=self._write)
        self.acknowledged = 0
        self.refused: list[str] = []

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(2 * END_TIMEOUT_S)

    def wait_for_more(self, count: int) -> None:
        """Wait until so many further writes were acknowledged."""
        deadline, pause, wanted = Deadline(END_TIMEOUT_S), Event(), self.acknowledged + count
        while self.acknowledged < wanted:
            assert not deadline.passed, f"{self.acknowledged} acknowledged, refused: {self.refused[:3]}"
            pause.wait(0.05)

    def _write(self) -> None:
        while not self._stop.wait(0.01):
            self._producer.produce("orders", b"x", on_delivery=self._note)
            self._producer.poll(0)
        self._producer.flush(END_TIMEOUT_S)

    def _note(self, error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.refused.append(str(error))


def leader_of(cluster: Cluster) -> int:
    return quorum.describe(cluster).leader_id


def end(node: Node, how: signal.Signals) -> None:
    """End one node and wait until it has."""
    found = list(processes.find([node]).values())
    assert len(found) == 1
    processes.end(found, how)
    assert processes.wait(found, END_TIMEOUT_S) == []


def test_of_five_controllers_one_stopped_and_one_killed_writes_and_new_topics_go_on(bus: Bus) -> None:
    home = bus.home()
    layout = home.layout("a")
    assert len(layout.controllers) == 5
    with (
        Cluster(home.admin_access("a"), patience=PATIENCE) as cluster,
        Writer(home.user_access("shop", "a")) as writer,
    ):
        writer.wait_for_more(20)
        first = leader_of(cluster)
        stopped = next(node for node in layout.controllers if node.id != first)
        end(stopped, signal.SIGTERM)
        writer.wait_for_more(20)
        topics.create(cluster, topics.NewTopic("after-a-stop", 2, 2))
        end(layout.node(first), signal.SIGKILL)
        topics.create(cluster, topics.NewTopic("after-a-kill", 2, 2))
        writer.wait_for_more(50)
        assert leader_of(cluster) not in (first, stopped.id)
        assert {found.name for found in topics.describe(cluster)} >= {"after-a-stop", "after-a-kill"}
    assert writer.refused == []
    assert writer.acknowledged >= 90
    started = bus.json("up")
    assert {row["site"]: row["started"] for row in started} == {"a": 2, "b": 0}
    with Cluster(home.admin_access("a"), patience=PATIENCE) as cluster:
        cluster.wait_until(lambda: lagging(cluster), "waiting for the controllers to catch up")


def lagging(cluster: Cluster) -> str:
    """Voters that the leader has not heard of lately."""
    return ", ".join(str(voter.id) for voter in quorum.describe(cluster).voters if voter.lag_records > 100)


def producer_ids(home: Home, site: str, count: int) -> list[int]:
    """So many new producer ids, as idempotent producers get them."""
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
    )
    with Cluster(home.admin_access(site), patience=PATIENCE) as cluster:

        def judge(answer: InitProducerIdResponse) -> None:
            codes.check(answer.error_code, None, "asking for a producer id", cluster.where)

        return [
            cluster.ask(request, InitProducerIdResponse, judge, repeatable=True).producer_id
            for _ in range(count)
        ]


def range_of(home: Home, site: str) -> range:
    first = storage.first_producer_id(home.layout(site).producer_range)
    return range(first, first + storage.PRODUCER_IDS_PER_RANGE)


def test_producer_ids_of_a_dynamic_quorum_start_at_the_range_of_the_site(bus: Bus) -> None:
    home = bus.home()
    with Cluster(home.admin_access("b")) as cluster:
        assert quorum.features(cluster).levels[quorum.KRAFT_VERSION] == 1
        assert len(quorum.describe(cluster).voters) == 3
    (first,) = producer_ids(home, "b", 1)
    assert first in range_of(home, "b")
    assert first - range_of(home, "b").start < 100 * IDS_IN_A_BLOCK
    assert range_of(home, "b").start >= storage.PRODUCER_IDS_PER_RANGE


def test_ranges_of_two_sites_do_not_meet(bus: Bus) -> None:
    home = bus.home()
    ids = {site: producer_ids(home, site, 3) for site in ("a", "b")}
    assert all(number in range_of(home, "a") for number in ids["a"])
    assert all(number in range_of(home, "b") for number in ids["b"])
    assert not set(range_of(home, "a")[:: 1 << 39]) & set(range_of(home, "b")[:: 1 << 39])


def test_after_the_leading_controller_was_killed_ids_go_on_in_the_same_range(bus: Bus) -> None:
    home = bus.home()
    with Cluster(home.admin_access("b"), patience=PATIENCE) as cluster:
        killed = home.layout("b").node(leader_of(cluster))
        before = producer_ids(home, "b", 1)[0]
        end(killed, signal.SIGKILL)
        # More than a block, so that the new leader has to hand out one.
        after = producer_ids(home, "b", IDS_IN_A_BLOCK + 1)
        assert leader_of(cluster) != killed.id
    assert all(number in range_of(home, "b") for number in after)
    assert min(after) > before and len(set(after)) == len(after)


def test_a_site_that_was_destroyed_and_made_again_gets_a_range_of_its_own(bus: Bus) -> None:
    before = {site: range_of(bus.home(), site) for site in ("a", "b")}
    cluster_id = bus.home().layout("b").cluster_id
    bus.done("destroy", "--site", "b", "--yes")
    assert processes.find(bus.home().layout("a").nodes)
    bus.done("up")
    home = bus.home()
    fresh = range_of(home, "b")
    assert home.layout("b").cluster_id != cluster_id
    assert fresh.start >= max(found.stop for found in before.values())
    assert producer_ids(home, "b", 1)[0] in fresh
    assert range_of(home, "a") == before["a"]


# What Kafka's own tool writes


@pytest.mark.parametrize(
    ("kind", "position", "disks"),
    [(Kind.BROKER, 0, 1), (Kind.BROKER, 0, 2), (Kind.CONTROLLER, 1, 1)],
    ids=["broker", "broker with two disks", "second controller"],
)
def test_a_formatted_disk_is_what_kafkas_own_tool_would_have_written(
    bus: Bus, tmp_path: Path, kind: Kind, position: int, disks: int
) -> None:
    layout = bus.home().layout("a")
    node = (layout.brokers if kind is Kind.BROKER else layout.controllers)[position]
    ids = (*node.directory_ids, random_id())[:disks]
    ours = tuple(tmp_path / f"ours-{number}" for number in range(disks))
    theirs = tuple(tmp_path / f"theirs-{number}" for number in range(disks))
    java = local.ensure_kafka(Silent()).command()
    storage.format_site(layout, [replace(node, data=ours, directory_ids=ids)], java, tmp_path / "scratch")
    run_storage_tool(node, layout, java, theirs)
    for our, their, directory_id in zip(ours, theirs, ids, strict=True):
        assert tree(our) == tree(their)
        our_meta, their_meta = storage.read_meta(our), storage.read_meta(their)
        assert our_meta.pop("directory.id") == directory_id
        chosen = their_meta.pop("directory.id")
        assert kind is Kind.BROKER or chosen == directory_id
        assert our_meta == their_meta
        for path in tree(our) - {storage.META}:
            found, expected = (comparable((side / path).read_bytes()) for side in (our, their))
            if path == storage.BOOTSTRAP:
                assert len(found) == len(expected) + 1  # the record with the first producer id
                del found[-2]
            assert found == expected


def tree(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def run_storage_tool(node: Node, layout: SiteLayout, java: list[str], disks: tuple[Path, ...]) -> None:
    """Format disks as Kafka's documentation says, with the node's own configuration."""
    settings = (node.directory / "server.properties").read_text()
    config = disks[0].with_suffix(".properties")
    lines = [line for line in settings.splitlines() if not line.startswith("log.dirs=")]
    config.write_text("\n".join([*lines, f"log.dirs={','.join(map(str, disks))}"]) + "\n")
    command = [*java, "kafka.tools.StorageTool", "format", "--cluster-id", layout.cluster_id]
    command += ["--config", str(config)]
    if Listener.CONTROLLER in node.ports:
        voters = (
            f"{each.id}@{each.address(Listener.CONTROLLER)}:{each.directory_ids[0]}"
            for each in layout.controllers
        )
        command += ["--initial-controllers", ",".join(voters)]
    subprocess.run(command, check=True, capture_output=True, timeout=END_TIMEOUT_S)


def comparable(data: bytes) -> list[bytes]:
    """The batches of a checkpoint without what differs from run to run: offset, times, checksum."""
    found = []
    while data:
        (length,) = struct.unpack_from(">i", data, 8)
        batch = bytearray(data[: 12 + length])
        data = data[12 + length :]
        batch[0:8] = bytes(8)  # base offset: ours has one record more before the footer
        batch[17:21] = bytes(4)  # checksum
        batch[27:43] = bytes(16)  # first and last time
        if batch[66:70] == SNAPSHOT_HEADER:
            batch[73:81] = bytes(8)  # and the time that it holds itself
        found.append(bytes(batch))
    return found
