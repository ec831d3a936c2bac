"""Everything that is done to brokers, under a steady load: nothing lost, repeated, or below its minimum.

One site of three brokers and three controllers. The steps build on each other, and the load goes on
from the first to the last; every record is compared at the end.
"""

from __future__ import annotations

import shutil
import signal
import subprocess

import pytest

from tests.cluster import metadata_log
from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.steady import Steady
from twinlog.ops.assignment import to_file
from twinlog.sites import processes
from twinlog.sites.layout import Node
from twinlog.sites.roll_journal import RollJournal
from twinlog.wire import quorum, roles, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

FILE = """\
bus: worked
kafka:
  broker.session.timeout.ms: 5s
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 1
sites:
  a: {brokers: 3, controllers: 3, memory: 256MB, controller_memory: 96MB}
topics:
  load: {partitions: 6, replication: 3, min_insync: 2}
  single: {partitions: 3, replication: 1}
users:
  app: {produce: [load, single], consume: [load, single], groups: [app-*]}
"""
KILL_TIMEOUT_S = 60.0
MORE = 100


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Bus:
    return make_bus(FILE)


def test_brokers_rolled_replaced_added_removed_and_every_partition_moved_lose_nothing(bus: Bus) -> None:
    home = bus.home()
    with Steady(home.user_access("app", "a"), home.admin_access("a"), "load", 2) as load:
        load.wait_for_more(MORE)
        roll_that_is_killed_once(bus)
        load.wait_for_more(MORE)
        replace_a_broker(bus, load)
        load.wait_for_more(MORE)
        replace_a_controller(bus)
        load.wait_for_more(MORE)
        grow(bus)
        load.wait_for_more(MORE)
        move_every_partition(bus)
        load.wait_for_more(MORE)
        shrink(bus)
        load.wait_for_more(MORE)
    load.check()
    never_below_minimum(bus, "load", 6, 2)
    assert bus.json("plan") == []


def never_below_minimum(bus: Bus, topic: str, partitions: int, minimum: int) -> None:
    """By what the controllers wrote down since the topic was made: also between two looks."""
    with Cluster(bus.home().admin_access("a")) as cluster:
        (described,) = topics.describe(cluster, [topic])
    found = metadata_log.in_sync(bus.home().layout("a"), described.id)
    assert sorted(one.partition for one in found if one.is_made) == list(range(partitions))
    # Every broker was restarted, so for a while every partition was without each of its copies.
    assert {len(one.brokers) for one in found} >= {2, 3} and len(found) > 2 * partitions * 3
    assert [one for one in found if len(one.brokers) < minimum] == []


def pids(bus: Bus) -> dict[int, int]:
    return {number: found.pid for number, found in processes.find(bus.home().layout("a").nodes).items()}


def roll_that_is_killed_once(bus: Bus) -> None:
    """All six nodes; the command is killed when one is done, and run again."""
    before = pids(bus)
    running = subprocess.Popen(
        bus.command("broker", "roll"),
        cwd=bus.directory,
        env=bus.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    journal = RollJournal(bus.home(), "a")
    deadline = Deadline(180.0)
    while (found := journal.read()) is None or not found.done:
        assert not deadline.passed and running.poll() is None
    running.kill()
    running.wait()
    refused = bus.run("broker", "roll", "1")
    assert refused.returncode == 2 and "unfinished" in refused.stderr
    with Cluster(bus.home().admin_access("a")) as cluster:
        leader = quorum.describe(cluster).leader_id
    ended = bus.json("broker", "roll")
    assert sorted({*ended["before"], *ended["restarted"]}) == sorted(before)
    assert ended["before"][0] == 1
    assert ended["restarted"][-1] == leader
    assert all(pid != before[number] for number, pid in pids(bus).items())
    assert journal.read() is None


def lose_disk(node: Node) -> None:
    """End a node at once and take its disk away."""
    found = list(processes.find([node]).values())
    processes.end(found, signal.SIGKILL)
    assert processes.wait(found, KILL_TIMEOUT_S) == []
    for path in node.data:
        shutil.rmtree(path)


def replace_a_broker(bus: Bus, load: Steady) -> None:
    node = bus.home().layout("a").node(2)
    lose_disk(node)
    load.wait_for_more(20)  # two copies are enough for acks=all
    refused = bus.run("up")
    assert refused.returncode == 1 and "twinlog broker replace 2 --disk-lost --yes" in refused.stderr
    told = bus.run("broker", "replace", "2", "--disk-lost")
    assert told.returncode == 2 and "single" in told.stdout and "all its records" in told.stdout
    ended = bus.json("broker", "replace", "2", "--disk-lost", "--yes")
    assert ended["replaced"]["partitions"] > 6
    assert {row["topic"] for row in ended["endangered"]} == {"single"}
    assert all(row["behind"] == 0 and row["state"] == "up" for row in bus.json("broker", "list"))


def replace_a_controller(bus: Bus) -> None:
    home = bus.home()
    with Cluster(home.admin_access("a")) as cluster:
        lost = quorum.describe(cluster).leader_id
        before = {voter.id: voter.directory for voter in quorum.describe(cluster).voters}
        lose_disk(home.layout("a").node(lost))
        bus.done("broker", "replace", str(lost), "--disk-lost", "--yes")
        after = {voter.id: voter.directory for voter in quorum.describe(cluster).voters}
    assert after.keys() == before.keys()
    assert {number for number in after if after[number] != before[number]} == {lost}


def declare(bus: Bus, brokers: int, now: int) -> None:
    text = bus.file.read_text()
    assert f"brokers: {now}," in text
    bus.file.write_text(text.replace(f"brokers: {now},", f"brokers: {brokers},"))


def held(bus: Bus) -> dict[tuple[str, int], tuple[int, ...]]:
    with Cluster(bus.home().admin_access("a")) as cluster:
        return {
            (topic.name, part.index): part.replicas
            for topic in topics.describe(cluster)
            for part in topic.partitions
        }


def grow(bus: Bus) -> None:
    declare(bus, 4, 3)
    ended = bus.json("broker", "add", "--rate", "50MB/s")
    assert ended["added"] == [4] and ended["partitions"] > 0
    rows = bus.json("broker", "list")
    counts = [row["replicas"] for row in rows]
    assert len(rows) == 4 and max(counts) - min(counts) <= 1


def move_every_partition(bus: Bus) -> None:
    """Each copy of everything goes one broker further: of the load, and of Kafka's topics and Twinlog's."""
    further = {place: tuple(broker % 4 + 1 for broker in brokers) for place, brokers in held(bus).items()}
    assert {topic for topic, _ in further} >= {"load", "single", "__consumer_offsets", roles.TOPIC}
    plan = bus.directory / "further.json"
    plan.write_text(to_file(further))
    done = bus.json("move", "run", "--from-file", str(plan), "--at-once", "2")
    assert done["partitions"] == len(further)
    after = held(bus)
    assert {place: after[place] for place in further} == further


def shrink(bus: Bus) -> None:
    declare(bus, 3, 4)
    refused = bus.run("apply")
    assert refused.returncode == 2 and "twinlog broker remove --site a --yes" in refused.stderr
    refused = bus.run("broker", "remove")
    assert refused.returncode == 2 and "--yes" in refused.stderr
    node = bus.home().layout("a").node(4)
    assert bus.json("broker", "remove", "--yes")["removed"] == [4]
    assert not node.directory.exists()
    assert [row["broker"] for row in bus.json("broker", "list")] == [1, 2, 3]
    assert all(4 not in brokers for brokers in held(bus).values())
