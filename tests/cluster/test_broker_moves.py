"""Brokers restarted and partitions moved under a steady load, on one site of three brokers in three racks.

What takes minutes (every node restarted, disks lost, brokers added and removed) is in `test_broker_drill`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import confluent_kafka
import pytest

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.ends import Row, check_ends
from tests.cluster.steady import Steady
from twinlog.progress import Silent
from twinlog.sites import local, processes
from twinlog.wire import groups, topics
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.clientfiles.write import Client, Format, render
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.groups import Committed
from twinlog.wire.stores import StoreType

pytestmark = pytest.mark.cluster

FILE = """\
bus: racked
kafka:
  broker.session.timeout.ms: 5s
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 1
sites:
  a: {brokers: 3, racks: [r1, r2, r3], memory: 256MB}
topics:
  load: {partitions: 6, replication: 3, min_insync: 2}
  pairs: {partitions: 4, replication: 2, min_insync: 1}
  near: {partitions: 1, replication: 3}
  plain: {partitions: 1}
users:
  app: {produce: [load, pairs, near], consume: [load, pairs, near], groups: [app-*]}
"""
TWO_RACKS = """\
bus: halved
kafka: {offsets.topic.num.partitions: 3}
sites:
  a: {brokers: 3, racks: [r1, r2], memory: 256MB}
topics:
  pairs: {partitions: 6, replication: 2}
"""
READ_BYTES = 4_000_000
TRIPS = "--num-records 1 --record-size 1 --producer-acks all"
ENDS_WITHIN_S = 60.0  # three seconds are given, for each question; the rest is a start on a busy machine


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Bus:
    return make_bus(FILE)


def steady(bus: Bus, topic: str = "load", minimum: int = 2) -> Steady:
    home = bus.home()
    return Steady(home.user_access("app", "a"), home.admin_access("a"), topic, minimum)


def replicas(bus: Bus, topic: str) -> list[tuple[int, ...]]:
    with Cluster(bus.home().admin_access("a")) as cluster:
        (found,) = topics.describe(cluster, [topic])
        return [part.replicas for part in found.partitions]


def test_brokers_disks_and_requests_are_listed(bus: Bus) -> None:
    rows = bus.json("broker", "list")
    assert [(row["broker"], row["state"], row["rack"]) for row in rows] == [
        (1, "up", "r1"),
        (2, "up", "r2"),
        (3, "up", "r3"),
    ]
    assert sum(row["preferred"] for row in rows) == sum(row["leads"] for row in rows)
    dirs = bus.json("broker", "log-dirs", "2")
    assert [(row["broker"], row["problem"]) for row in dirs] == [(2, "")]
    assert "broker-2" in dirs[0]["path"]
    requests = {row["request"]: row for row in bus.json("broker", "api-versions", "1")}
    assert requests["Produce"]["highest"] >= 11


def test_unhappy_calls_say_what_is_wrong_and_change_nothing(bus: Bus) -> None:
    for words, code, said in (
        (("broker", "roll", "77"), 1, "no node 77"),
        (("broker", "replace", "2"), 2, "--disk-lost"),
        (("broker", "replace", "2", "--disk-lost", "--yes"), 2, "is not lost"),
        (("broker", "replace", "901", "--disk-lost", "--yes"), 2, "is not lost"),
        (("broker", "add"), 2, "brokers: 4"),
        (("broker", "remove", "--yes"), 2, "brokers: 2"),
        (("broker", "log-dirs", "9", "--timeout", "1"), 1, "broker 9"),
        (("move", "plan", "--topic", "nothing"), 1, "no topic 'nothing'"),
        (("move", "plan", "--without", "3"), 2, "has 3 copies"),
        (("move", "run", "--rate", "5MB"), 2, "did you mean 5MB/s?"),
    ):
        ended = bus.run(*words)
        assert ended.returncode == code, f"{words}: {ended.stdout}{ended.stderr}"
        assert said in ended.stderr, f"{words}: {ended.stderr}"


def test_with_a_broker_down_commands_say_so_and_records_pass(bus: Bus) -> None:
    bus.done("elect")
    bus.done("topic", "create", "strict", "--config", "min.insync.replicas=3")
    lose_broker_3(bus)
    deadline = Deadline(120.0)
    for words, code, said in (
        (("broker", "list"), 3, "are not up"),
        (("topic", "describe", "load"), 3, "not every replica is in sync"),
        (("broker", "log-dirs", "3", "--timeout", "1"), 1, "broker 3"),
        (("broker", "api-versions", "3", "--timeout", "1"), 1, "broker 3"),
        (("config", "describe", "broker", "3"), 2, "no live broker"),
        (("elect",), 3, "did not move"),
        (("broker", "roll", "1", "--timeout", "1"), 1, "a/broker-3 does not run"),
        (("produce", "load", "--user", "app", "--whole-file", str(bus.file), "--partition", "0"), 0, ""),
        (("consume", "load", "--user", "app", "--from", "-1", "--partition", "0"), 0, ""),
        (("group", "lag"), 0, ""),
        (("topic", "offsets", "load"), 0, ""),
        (("topic", "size"), 0, ""),
        (("topic", "advise", "--peak-rate", "1", "--record-size", "1KB", "--seconds", "0.5"), 0, ""),
    ):
        ended = bus.run(*words)
        assert ended.returncode == code, f"{words}: {ended.stdout}{ended.stderr}"
        assert said in ended.stderr and (not code or "hint:" in ended.stderr), f"{words}: {ended.stderr}"
    # Fewer are in sync than the topic asks for; who was in sync until then may still lead without a loss.
    (part,) = bus.json("topic", "describe", "strict", exit_code=3)["partitions"]
    assert (sorted(part["in_sync"]), part["eligible"], part["offline"]) == ([1, 2], [3], [3])
    bus.done("topic", "delete", "strict", "--yes")
    copies_are_counted_by_the_brokers_of_the_file(bus)
    bus.done("up")
    while bus.run("broker", "list").returncode != 0:
        assert not deadline.passed
    assert [sorted(held) for held in replicas(bus, "late")] == [[1, 2, 3]] * 2
    bus.done("topic", "describe", "late")  # with every copy in sync
    bus.done("topic", "delete", "late", "--yes")
    assert bus.json("plan") == []
    bus.done("elect")


def test_a_partition_without_a_leader_is_named_and_the_others_are_served(bus: Bus) -> None:
    with Cluster(bus.home().admin_access("a")) as cluster:
        topics.create(cluster, topics.NewTopic("lone", assignment=((3,), (1,))))
        for partition in ("0", "1"):
            bus.done("produce", "lone", "--whole-file", str(bus.file), "--partition", partition)
        groups.commit(cluster, {"app-lone": {("lone", 0): Committed(0), ("lone", 1): Committed(0)}})
    lose_broker_3(bus)
    rows = (
        (
            ("produce", "lone", "--whole-file", str(bus.file), "--partition", "0"),
            1,
            "may or may not be written",
        ),
        (("produce", "lone", "--whole-file", str(bus.file), "--partition", "1"), 0, ""),
        (("consume", "lone"), 1, "LEADER_NOT_AVAILABLE"),
        (("consume", "lone", "--partition", "0"), 1, "LEADER_NOT_AVAILABLE"),
        (("consume", "lone", "--partition", "1"), 0, ""),
        (("topic", "offsets", "lone"), 1, "LEADER_NOT_AVAILABLE"),
        (("topic", "trim", "lone", "--before", "end", "--yes"), 1, "LEADER_NOT_AVAILABLE"),
        (
            ("topic", "trim", "lone", "--before", "end", "--partition", "0", "--yes"),
            1,
            "LEADER_NOT_AVAILABLE",
        ),
        (("group", "reset", "app-lone", "--to", "end", "--yes"), 1, "LEADER_NOT_AVAILABLE"),
        (("events", "check", "lone"), 1, "LEADER_NOT_AVAILABLE"),
        (("redrive", "lone", "--yes"), 1, "LEADER_NOT_AVAILABLE"),
        (("topic", "describe", "lone"), 3, "not every replica is in sync"),
    )
    measured = (
        (("perf", "consume", "--topic", "lone", "--num-records", "9", "--timeout", "1000"), 1, "no leader"),
        (("perf", "latency", "--topic", "lone", *TRIPS.split()), 1, "no leader"),
    )
    given = [Row((*words, "--timeout", "3"), code, said) for words, code, said in rows]
    check_ends(bus, [*given, *(Row(*row) for row in measured)], within_s=ENDS_WITHIN_S)
    # Nobody can say how far behind the group is there, and elsewhere it is told.
    places = bus.json("group", "lag", "app-lone", "--partitions", "--timeout", "3", exit_code=3)
    assert [(place["lag_records"], place["status"]) for place in places] == [
        (None, "unknown"),
        (2, "stopped"),
    ]
    bus.done("topic", "delete", "lone", "--yes")
    bus.done("up")
    deadline = Deadline(120.0)
    while bus.run("broker", "list").returncode != 0:
        assert not deadline.passed
    bus.done("elect")


def lose_broker_3(bus: Bus) -> None:
    """End it at once, and wait until the others know: before that it may get copies of a new topic."""
    (lost,) = processes.find([bus.home().layout("a").node(3)]).values()
    processes.end([lost], signal.SIGKILL)
    with Cluster(bus.home().admin_access("a")) as cluster:
        cluster.wait_until(
            lambda: "" if 3 not in {one.id for one in cluster.brokers()} else "it is up", "a loss"
        )
    assert bus.run("broker", "list").returncode == 3


def copies_are_counted_by_the_brokers_of_the_file(bus: Bus) -> None:
    """With two of three brokers up a new topic has three copies, and no present one is found fault with."""
    (step,) = bus.json("plan", exit_code=3)
    assert step["what"] == "start a/broker-3"
    ended = bus.run("topic", "create", "late", "--partitions", "2")
    assert ended.returncode == 0 and "2 of 3 brokers are up" in ended.stderr, ended.stderr
    many = bus.run("topic", "create", "many", "--replication", "4")
    assert many.returncode == 1 and "hint: are there as many brokers" in many.stderr, many.stderr


def test_two_copies_in_two_racks_stand_in_both(make_bus: MakeBus) -> None:
    bus = make_bus(TWO_RACKS)
    bus.done("topic", "alter", "pairs", "--partitions", "12", "--yes")
    racks = {node.id: node.rack for node in bus.home().layout("a").brokers}
    assert sorted(map(str, racks.values())) == ["r1", "r1", "r2"]
    held = replicas(bus, "pairs")
    assert [sorted(str(racks[broker]) for broker in brokers) for brokers in held] == [["r1", "r2"]] * 12
    bus.done("destroy", "--yes")  # its nodes would idle beside the other tests


def test_partitions_are_moved_and_a_broker_is_restarted_under_load_without_a_loss(
    bus: Bus, tmp_path: Path
) -> None:
    before = replicas(bus, "pairs")
    plan, back = tmp_path / "plan.json", tmp_path / "back.json"
    with steady(bus) as load, steady(bus, "pairs", 1) as moved:
        load.wait_for_more(20)
        moved.wait_for_more(20)
        told = bus.json(
            "move",
            "plan",
            "--topic",
            "pairs",
            "--without",
            "3",
            "--write",
            str(plan),
            "--write-current",
            str(back),
        )
        assert all(3 in change["before"] or change["before"] != change["after"] for change in told["changes"])
        assert next(row for row in told["brokers"] if row["broker"] == 3)["replicas_after"] == 0
        done = bus.json("move", "run", "--from-file", str(plan), "--rate", "50MB/s")
        assert done["partitions"] == len(told["changes"])
        assert all(3 not in held for held in replicas(bus, "pairs"))
        assert verified_by_kafka(bus, plan, tmp_path)
        bus.done("move", "run", "--from-file", str(back))
        assert replicas(bus, "pairs") == before
        pid = processes.find(bus.home().layout("a").brokers)[2].pid
        assert bus.json("broker", "roll", "2")["restarted"] == [2]
        assert processes.find(bus.home().layout("a").brokers)[2].pid != pid
        load.wait_for_more(50)
    load.check()
    moved.check()
    status = bus.json("move", "status")
    assert status["move"]["limits"] == {} and not status["move"]["unfinished"]
    assert bus.json("plan") == []


def placed(bus: Bus, file: Path) -> bool:
    """True if the copies of `pairs` are where a file wants them."""
    there = replicas(bus, "pairs")
    entries = json.loads(file.read_text())["partitions"]
    return all(there[entry["partition"]] == tuple(entry["replicas"]) for entry in entries)


def reassigned_by_kafka(bus: Bus, directory: Path, *words: str) -> str:
    """Call Kafka's own tool for reassignments as the administrator; returns what it printed."""
    access = bus.home().admin_access("a")
    client = Client("admin", access, Tuning(), StoreType.PEM, directory)
    properties = directory / "admin.properties"
    properties.write_text(render(client, Format.JAVA).text)
    command = [
        *local.ensure_kafka(Silent()).command(),
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    ]
    command += ["--bootstrap-server", ",".join(access.bootstrap), "--command-config", str(properties)]
    ended = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def verified_by_kafka(bus: Bus, plan: Path, directory: Path) -> bool:
    """Ask Kafka's own tool whether the move in a file is complete."""
    words = ["--verify", "--preserve-throttles", "--reassignment-json-file", str(plan)]
    told = reassigned_by_kafka(bus, directory, *words)
    lines = [line for line in told.splitlines() if line.startswith("Reassignment of partition")]
    entries = json.loads(plan.read_text())["partitions"]
    assert len(lines) == len(entries), told
    return all("is completed" in line for line in lines)


def test_a_killed_move_is_refused_gone_on_with_and_called_off(bus: Bus, tmp_path: Path) -> None:
    filled(bus, "pairs", 8_000_000)
    before = replicas(bus, "pairs")
    killed_under_way(bus, "--topic", "pairs", "--without", "3", "--rate", "50kB/s")
    refused = bus.run("move", "run", "--topic", "load")
    assert refused.returncode == 2 and "unfinished" in refused.stderr
    status = bus.json("move", "status")
    assert status["move"]["unfinished"] and set(status["move"]["limits"].values()) == {50_000}
    assert bus.json("plan") == []  # the limits of a move are no difference to the file
    bus.done("move", "throttle", "60kB/s")
    assert set(bus.json("move", "status")["move"]["limits"].values()) == {60_000}
    assert bus.json("move", "cancel")["cancelled"] > 0
    assert bus.json("move", "status")["partitions"] == []
    stayed = replicas(bus, "pairs")
    assert [set(held) for held in stayed if 3 in held] != [] and len(stayed) == len(before)
    bus.done("move", "run", "--topic", "pairs", "--without", "3")
    assert all(3 not in held for held in replicas(bus, "pairs"))


def killed_under_way(bus: Bus, *words: str) -> None:
    """Run a move that is slow, and kill it as soon as Kafka copies something."""
    running = subprocess.Popen(
        bus.command("move", "run", *words),
        cwd=bus.directory,
        env=bus.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = Deadline(60.0)
        while not bus.json("move", "status")["partitions"]:
            assert not deadline.passed and running.poll() is None
    finally:
        running.kill()
        running.wait()


def test_a_killed_move_that_is_run_again_ends_where_it_was_planned(bus: Bus, tmp_path: Path) -> None:
    filled(bus, "pairs", 4_000_000)
    plan = tmp_path / "plan.json"
    without = next(broker for broker in (1, 2, 3) if any(broker in held for held in replicas(bus, "pairs")))
    bus.json("move", "plan", "--topic", "pairs", "--without", str(without), "--write", str(plan))
    entries = json.loads(plan.read_text())["partitions"]
    planned = {entry["partition"]: tuple(entry["replicas"]) for entry in entries}
    assert planned
    # One partition at a time: when it is killed, most of the move has not even begun.
    killed_under_way(bus, "--from-file", str(plan), "--rate", "50kB/s", "--at-once", "1")
    there = replicas(bus, "pairs")
    assert any(there[partition] != wanted for partition, wanted in planned.items())
    done = bus.json("move", "run", "--rate", "100MB/s")
    assert done["partitions"] == len(planned)
    there = replicas(bus, "pairs")
    assert {partition: there[partition] for partition in planned} == planned
    assert verified_by_kafka(bus, plan, tmp_path)
    status = bus.json("move", "status")
    assert not status["move"]["unfinished"] and status["move"]["limits"] == {} and status["partitions"] == []


def test_kafkas_tool_executes_a_plan_of_ours_and_its_proposal_is_run_here(bus: Bus, tmp_path: Path) -> None:
    plan, chosen, proposal = (tmp_path / name for name in ("plan.json", "topics.json", "proposal.json"))
    gone = replicas(bus, "pairs")[0][0]
    bus.done("move", "plan", "--topic", "pairs", "--without", str(gone), "--write", str(plan))
    told = reassigned_by_kafka(bus, tmp_path, "--execute", "--reassignment-json-file", str(plan))
    assert "Successfully started partition reassignment" in told, told
    deadline = Deadline(ENDS_WITHIN_S)
    while not verified_by_kafka(bus, plan, tmp_path):
        assert not deadline.passed, "the move that Kafka's tool began does not end"
    assert placed(bus, plan) and all(gone not in held for held in replicas(bus, "pairs"))
    # Each partition has a copy on both others now, so that every one has something to move.
    other = replicas(bus, "pairs")[0][0]
    chosen.write_text(json.dumps({"version": 1, "topics": [{"topic": "pairs"}]}))
    words = ["--topics-to-move-json-file", str(chosen)]
    words += ["--broker-list", ",".join(str(broker) for broker in (1, 2, 3) if broker != other)]
    told = reassigned_by_kafka(bus, tmp_path, "--generate", *words)
    current, proposed = (line for line in told.splitlines() if line.startswith("{"))
    proposal.write_text(proposed)
    assert current != proposed
    assert bus.json("move", "run", "--from-file", str(proposal))["partitions"] == len(replicas(bus, "pairs"))
    assert placed(bus, proposal) and all(other not in held for held in replicas(bus, "pairs"))
    assert verified_by_kafka(bus, proposal, tmp_path)


def test_a_broker_that_a_partition_cannot_do_without_is_not_restarted(bus: Bus) -> None:
    with Cluster(bus.home().admin_access("a")) as cluster:
        strict = topics.NewTopic("strict", 1, 3, configs={"min.insync.replicas": "3"})
        topics.create(cluster, strict)
        pid = processes.find(bus.home().layout("a").brokers)[1].pid
        ended = bus.run("broker", "roll", "1", "--timeout", "2")
        assert ended.returncode == 1, ended.stdout + ended.stderr
        assert "strict-0 has 3 copies in sync and needs 3" in ended.stderr and "hint:" in ended.stderr
        assert processes.find(bus.home().layout("a").brokers)[1].pid == pid
        topics.delete(cluster, "strict")
    # Unfinished, it is gone on with when nothing is in its way any more.
    assert bus.json("broker", "roll", "1")["restarted"] == [1]
    assert processes.find(bus.home().layout("a").brokers)[1].pid != pid


def filled(bus: Bus, topic: str, size_bytes: int) -> None:
    producer = confluent_kafka.Producer(bus.home().user_access("app", "a").librdkafka())
    for _ in range(size_bytes // 100_000):
        producer.produce(topic, bytes(100_000))
        producer.flush(60)
    assert producer.flush(60) == 0


@pytest.mark.parametrize("rack", ["r1", "r2", "r3"])
def test_a_consumer_in_a_rack_reads_from_the_broker_there(bus: Bus, rack: str, tmp_path: Path) -> None:
    if rack == "r1":
        filled(bus, "near", READ_BYTES)
    text = bus.done("client", "app", "--format", "librdkafka", "--rack", rack, "--directory", str(tmp_path))
    path = Path(text.splitlines()[0])
    settings = dict(
        line.split("=", 1)
        for line in path.read_text().splitlines()
        if "=" in line and not line.startswith("#")
    )
    received = received_bytes(settings)
    nearest = int(rack[1:])
    assert received[nearest] > READ_BYTES
    # One answer of the leader's may hold records: it says with it who is nearer.
    assert all(count < READ_BYTES / 2 for broker, count in received.items() if broker != nearest)


def received_bytes(settings: dict[str, str]) -> dict[int, int]:
    """Read the topic and count what came from each broker, by the client's own statistics."""
    counted: dict[int, int] = {}

    def count(statistics: str) -> None:
        for broker in json.loads(statistics)["brokers"].values():
            if broker["nodeid"] > 0:
                counted[broker["nodeid"]] = broker["rxbytes"]

    more = {"group.id": "app-near", "statistics.interval.ms": 200, "stats_cb": count}
    # Small fetches, so that those before the leader has named the nearer broker do not count for much.
    small = {"fetch.message.max.bytes": 200_000, "fetch.max.bytes": 200_000, "message.max.bytes": 200_000}
    consumer = confluent_kafka.Consumer(settings | more | small)
    consumer.assign([confluent_kafka.TopicPartition("near", 0, 0)])
    read = 0
    end_s = time.monotonic() + 60
    while read < READ_BYTES or sum(counted.values()) < READ_BYTES:
        assert time.monotonic() < end_s, f"{read} bytes read, {counted}"
        message = consumer.poll(0.2)
        value = message.value() if message is not None and message.error() is None else None
        read += len(value) if value is not None else 0
    consumer.close()
    return counted


def test_leaders_go_back_where_they_belong(bus: Bus) -> None:
    bus.done("elect")
    rows = bus.json("broker", "list")
    assert [row["leads"] for row in rows] == [row["preferred"] for row in rows]
