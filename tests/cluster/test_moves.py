"""Roles change on real sites: clients that know one address go on, and whoever is killed is replaced.

One bus of two small sites, its mirror and its traffic manager serve all tests here, in the order in which
they stand: the site that is active at the end of one is active at the beginning of the next.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.mortals import killed_at_every_step, one_step
from twinlog.errors import SiteError
from twinlog.mirror.watch import Watch
from twinlog.progress import Silent
from twinlog.sites import fencing, processes
from twinlog.sites.java import find_java
from twinlog.sites.readiness import wait_until_ready
from twinlog.spec.model import Role
from twinlog.traffic import beginning, newcomers, switchover
from twinlog.traffic.crossing import carry_out
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Kind, Move, Step
from twinlog.wire import offsets, roles
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

LOG = logging.getLogger("tests.clients")
LOG.setLevel(logging.CRITICAL)  # librdkafka tells of every connection that is closed

WAIT_S = 90.0
PARTITIONS = 3
PLACES = [("orders", number) for number in range(PARTITIONS)]
FILE = """\
bus: moving
kafka:
  group.initial.rebalance.delay.ms: 0
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 3
sites:
  a: {{brokers: 1}}
  b: {{brokers: 1}}
topics:
  orders: {{partitions: 3}}
  calm: {{partitions: 1}}
users:
  app: {{produce: ["*"], consume: ["*"], groups: ["*"], transactions: ["*"]}}
gate:
  address: 127.0.0.1:{gate}
  tls_address: 127.0.0.1:{tls}
  page: 127.0.0.1:{page}
  failover_after: 3s
"""
# A member of a group that knows the gate and nothing else, in a process that can be stopped.
MEMBER = """
import json, sys
from confluent_kafka import Consumer

consumer = Consumer(json.loads(sys.argv[1]))
consumer.subscribe(["orders"])
while True:
    message = consumer.poll(0.2)
    if message is not None and message.error() is None:
        print(message.partition(), message.offset(), flush=True)
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture(scope="module")
def moving(make_bus: MakeBus) -> Iterator[Bus]:
    """A bus whose mirror and traffic manager run."""
    gate, tls, page = free_ports(3)
    bus = make_bus(FILE.format(gate=gate, tls=tls, page=page))
    bus.done("link", "up")
    bus.done("traffic", "up")
    yield bus
    bus.done("traffic", "down")
    bus.done("link", "down")


def client_settings(bus: Bus) -> dict[str, str]:
    """What `twinlog client --gate` prints, as a program reads it."""
    printed = bus.done("client", "app", "--gate", "--format", "librdkafka")
    lines = [line for line in printed.splitlines() if line and not line.startswith("#")]
    return {name.strip(): value.strip() for name, value in (line.split("=", 1) for line in lines)}


@dataclass
class Load:
    """An idempotent producer and a consumer group that know the gate and nothing else."""

    bus: Bus
    name: str
    acknowledged: dict[str, tuple[int, int]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    read: list[tuple[int, int, str]] = field(default_factory=list)
    sent: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    def produce(self, settings: dict[str, str]) -> None:
        producer = Producer({**settings, "enable.idempotence": True}, logger=LOG)
        while not self.stopping.wait(0.01):
            value = f"{self.name}:{self.sent}"
            producer.produce("orders", key=f"{self.sent % 5}", value=value, on_delivery=self._delivered)
            self.sent += 1
            producer.poll(0)
        if producer.flush(WAIT_S):
            self.errors.append("not all was acknowledged")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert value is not None
        if error is not None:
            self.errors.append(str(error))
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.acknowledged[value.decode()] = (partition, offset)
        self.times.append(time.monotonic())

    def consume(self, settings: dict[str, str]) -> None:
        more: dict[str, Any] = {"group.id": self.name, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, **more, "enable.auto.commit": False}, logger=LOG)
        consumer.subscribe(["orders"])
        while not self.stopping.is_set():
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            self.read.append((partition, offset, value.decode()))
            consumer.commit(message, asynchronous=True)
        consumer.close()

    def goes_on(self) -> Callable[[], bool]:
        """Asks whether something was acknowledged and read since now."""
        acknowledged, read = len(self.acknowledged), len(self.read)
        return lambda: len(self.acknowledged) > acknowledged + 20 and len(self.read) > read + 20


@contextmanager
def load_on(bus: Bus, name: str) -> Iterator[Load]:
    load, settings = Load(bus, name), client_settings(bus)
    threads = [threading.Thread(target=one, args=(settings,)) for one in (load.produce, load.consume)]
    for thread in threads:
        thread.start()
    try:
        wait_for("the load has begun", load.goes_on())
        yield load
    finally:
        load.stopping.set()
        for thread in threads:
            thread.join(WAIT_S)


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {WAIT_S:g} s"
        pause.wait(0.1)


def active_site(bus: Bus) -> str:
    return bus.home().state().active


def link_state(bus: Bus) -> str:
    return str(json.loads(bus.run("link", "status", "-o", "json").stdout)["link"]["state"])


def other_site(site: str) -> str:
    return "b" if site == "a" else "a"


def records_at(bus: Bus, site: str) -> dict[tuple[int, int], str]:
    """Everything that a reader finds at one site."""
    settings = {**bus.home().user_access("app", site).librdkafka(), "group.id": "standby.test"}
    with Cluster(bus.home().admin_access(site)) as cluster:
        ends = offsets.last_stable_offsets(cluster, PLACES)
    consumer = Consumer(
        {**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False}, logger=LOG
    )
    consumer.subscribe(["orders"])
    found: dict[tuple[int, int], str] = {}
    reached = {partition: 0 for _, partition in PLACES}
    deadline = time.monotonic() + WAIT_S
    while any(reached[partition] < end for (_, partition), end in ends.items()):
        assert time.monotonic() < deadline, f"{reached} of {ends}"
        message = consumer.poll(0.5)
        if message is None or message.error() is not None:
            continue
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        found[partition, offset] = value.decode()
        reached[partition] = offset + 1
    consumer.close()
    return found


def wait_until_equal(bus: Bus) -> None:
    home = bus.home()
    with Cluster(home.admin_access("a")) as one, Cluster(home.admin_access("b")) as other:
        wait_for("both logs end alike", lambda: _ends(one) == _ends(other))


def _ends(cluster: Cluster) -> dict[tuple[str, int], int]:
    return offsets.log_ends(cluster, PLACES)


def check(bus: Bus, load: Load) -> None:
    """Everything acknowledged is there once, where it was acknowledged, at both sites."""
    assert load.errors == []
    assert len(load.acknowledged) == load.sent
    wait_until_equal(bus)
    here, there = records_at(bus, "a"), records_at(bus, "b")
    assert here == there
    mine = Counter(value for value in here.values() if value.startswith(f"{load.name}:"))
    assert mine == Counter(load.acknowledged.keys())
    assert all(here[place] == value for value, place in load.acknowledged.items())


def page(bus: Bus, path: str) -> tuple[int, str]:
    address = bus.home().bus.gate.page
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_clients_go_on_at_the_other_site_and_nothing_is_lost_or_repeated(moving: Bus) -> None:
    with load_on(moving, "planned") as load:
        before = dict(Counter(partition for partition, _, _ in load.read))
        moving.done("switchover")
        assert active_site(moving) == "b"
        wait_for("clients go on", load.goes_on())
        moving.done("switchover")
        assert active_site(moving) == "a"
        wait_for("clients go on", load.goes_on())
    assert before
    check(moving, load)
    # Whatever came twice to the group had not been committed; nothing was passed over.
    seen = {(partition, offset) for partition, offset, _ in load.read}
    for partition in range(PARTITIONS):
        mine = sorted(offset for one, offset in seen if one == partition)
        assert mine == (list(range(mine[0], mine[-1] + 1)) if mine else [])


def test_both_sites_say_what_they_are_and_the_page_follows(moving: Bus) -> None:
    home = moving.home()
    for site, role in (("a", Role.ACTIVE), ("b", Role.STANDBY)):
        with Cluster(home.admin_access(site)) as cluster:
            standing = roles.read(cluster)
            assert standing is not None
            assert (standing.role, standing.term) == (role, home.state().term)
            assert not fencing.is_fenced(cluster)
    wait_for("the page knows", lambda: page(moving, "/site/a")[0] == 200)
    assert page(moving, "/site/b")[0] == 503
    assert "a is active" in page(moving, "/site/b")[1]
    assert moving.json("traffic", "status")["traffic"]["active"] == "a"


def test_a_switchover_does_not_begin_while_the_standby_falls_behind(moving: Bus) -> None:
    with load_on(moving, "behind") as load, Ground(moving.home(), Silent()) as ground:
        moving.done("link", "pause")
        with pytest.raises(SiteError, match="the link is paused"):
            beginning.switchover(ground)
        with Watch(moving.home()) as watch:
            wait_for("records are missing", lambda: any(one.lag_records for one in watch.look().partitions))
            assert "and the active was at" in beginning.still_lacks(watch.look(), watch.look, 1.0)
            moving.done("link", "resume")
            assert beginning.still_lacks(watch.look(), watch.look, WAIT_S) == ""
        assert beginning.any_unfinished(ground) is None
    check(moving, load)


def test_a_switchover_that_cannot_drain_is_called_off(moving: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switchover, "DRAIN_TIMEOUT_S", 2.0)
    moving.done("traffic", "pause")  # else the manager would go on with it
    with load_on(moving, "called-off") as load, Ground(moving.home(), Silent()) as ground:
        move = beginning.switchover(ground)
        moving.done("link", "pause")
        wait_for("the link is paused", lambda: link_state(moving) == "paused")
        with pytest.raises(SiteError, match="called off, and clients go on at a"):
            carry_out(ground, move)
        assert active_site(moving) == "a"
        assert beginning.any_unfinished(ground) is None
        wait_for("clients go on where they were", load.goes_on())
        moving.done("link", "resume")
    check(moving, load)


def has_members(bus: Bus, site: str, group: str) -> bool:
    with Cluster(bus.home().admin_access(site)) as cluster:
        return group in newcomers.members(cluster)


def is_fenced(bus: Bus, site: str) -> bool:
    with Cluster(bus.home().admin_access(site)) as cluster:
        return fencing.is_fenced(cluster)


def test_clients_are_let_into_the_old_site_when_the_members_of_groups_have_left_it(
    moving: Bus, tmp_path: Path
) -> None:
    """One that still waits there when it answers again would take it for the bus, and be refused for good."""
    old, heard = active_site(moving), tmp_path / "heard"
    settings = {**client_settings(moving), "group.id": "late", "auto.offset.reset": "earliest"}
    with load_on(moving, "late-load") as load, heard.open("w") as hears:
        command = [sys.executable, "-c", MEMBER, json.dumps(settings)]
        member = subprocess.Popen(command, stdout=hears, stderr=subprocess.DEVNULL)
        try:
            wait_for("it reads", lambda: heard.stat().st_size > 0 and has_members(moving, old, "late"))
            member.send_signal(signal.SIGSTOP)
            moving_on = subprocess.Popen(
                moving.command("switchover"), cwd=moving.directory, env=moving.environment()
            )
            with Ground(moving.home(), Silent()) as ground:
                wait_for(
                    "all is done but that",
                    lambda: moving_on.poll() is not None or _is_at(ground, Step.RELEASE),
                )
            assert moving_on.poll() is None
            assert is_fenced(moving, old)
            wait_for("the others have moved", load.goes_on())
            assert moving_on.poll() is None
            read = heard.stat().st_size
            member.send_signal(signal.SIGCONT)
            assert moving_on.wait(WAIT_S) == 0
            assert has_members(moving, other_site(old), "late")
            assert not is_fenced(moving, old)
            wait_for("it reads on", lambda: heard.stat().st_size > read)
        finally:
            member.kill()
            member.wait()
    check(moving, load)
    moving.done("switchover")
    assert active_site(moving) == old


def _is_at(ground: Ground, step: Step) -> bool:
    move = beginning.any_unfinished(ground)
    return move is not None and move.step is step


def test_a_group_that_does_not_come_is_not_waited_for_for_ever(
    moving: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers, "WAIT_S", 0.5)
    told = Told()
    move = replace(Move.begin(Kind.SWITCHOVER, "moving", ("b", "a"), 9), members={"ghost": 2})
    with Ground(moving.home(), told) as ground:
        newcomers.wait_for(ground, move)
    assert [note for note in told.notes if "ghost (0 of 2) after 0.5 s" in note]


class Told(Silent):
    """Keeps what is worth a line."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_switchover_is_ended_by_others_when_each_is_killed(moving: Bus) -> None:
    with load_on(moving, "killed") as load:
        killed_at_every_step(moving, Kind.SWITCHOVER)
        assert active_site(moving) == "b"
        wait_for("clients go on", load.goes_on())
    check(moving, load)


def test_a_lost_site_comes_back_with_its_tail_salvaged_and_is_active_again(moving: Bus) -> None:
    lost = active_site(moving)
    with load_on(moving, "lost") as load:
        moving.done("link", "pause")
        wait_for("the link is paused", lambda: link_state(moving) == "paused")
        wait_for("what is written now only the lost site has", load.goes_on())
        kill_site(moving, lost)
        moving.done("link", "resume")
        killed_at_every_step(moving, Kind.FAILOVER)
        assert active_site(moving) == other_site(lost)
        wait_for("clients go on", load.goes_on())
        assert "twinlog return" in moving.run("up").stderr
        listed = moving.run("salvage", "list")
        assert (listed.returncode, f"what site {lost} keeps is not known" in listed.stderr) == (3, True)
        by_themselves = start_site(moving, lost)
        killed_at_every_step(moving, Kind.RETURN)
        assert processes.wait(by_themselves, 0.0) == []
        moving.done("traffic", "resume")
        with Watch(moving.home()) as watch:
            wait_for("the twin is well", lambda: not watch.look().findings)
            wait_for("the standby has caught up", lambda: is_close(watch))  # else a switchover is refused
        # The producer's sequences have a hole where the other site took over: home must not refuse it.
        moving.done("switchover")
        assert active_site(moving) == lost
        wait_for("clients go on at home", load.goes_on())
    assert load.errors == []
    wait_until_equal(moving)
    here, there = records_at(moving, "a"), records_at(moving, "b")
    assert here == there
    left = {value for value in load.acknowledged if value not in set(here.values())}
    assert left
    assert left == salvaged_values(moving)


def kill_site(bus: Bus, site: str) -> None:
    """kill -9 of every node of a site."""
    found = list(processes.find(bus.home().layout(site).local_nodes).values())
    assert found
    processes.end(found, signal.SIGKILL)
    assert processes.wait(found, 10.0) == []


def is_close(watch: Watch) -> bool:
    """True if the standby lacks only what was written just now."""
    return all((one.lag_records or 0) < 100 for one in watch.look().partitions)


def start_site(bus: Bus, site: str) -> list[psutil.Process]:
    """Start a site's nodes as they were, as a booting machine may; returns its brokers when they answer."""
    layout = bus.home().layout(site)
    started = {node.id: processes.start(node, find_java())[0] for node in layout.local_nodes}
    access = bus.home().admin_access(site)
    wait_until_ready(layout, access, started, WAIT_S)
    return [started[node.id] for node in layout.brokers]


def salvaged_values(bus: Bus) -> set[str]:
    return {row["value"] for row in bus.json("salvage", "show", "orders", "--limit", "100000")}


def test_the_manager_ends_what_another_has_begun(moving: Bus) -> None:
    before = active_site(moving)
    moving.done("traffic", "pause")
    one_step(moving, Kind.SWITCHOVER)  # clients are fenced, and their rights are gone
    moving.done("traffic", "resume")
    wait_for("the manager went on", lambda: active_site(moving) == other_site(before))
    with Ground(moving.home(), Silent()) as ground:
        wait_for("it is done", lambda: beginning.any_unfinished(ground) is None)


def test_a_healthy_active_is_not_given_up_without_being_asked_twice(moving: Bus) -> None:
    ended = moving.run("promote")
    assert ended.returncode == 2
    assert "twinlog switchover" in ended.stderr


def test_a_manager_that_is_killed_changes_nothing_for_clients(moving: Bus) -> None:
    from twinlog.traffic import manager  # noqa: PLC0415

    with load_on(moving, "orphans") as load:
        process = manager.background(moving.home()).find()
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        wait_for("clients go on without it", load.goes_on())
        moving.done("traffic", "up")
        wait_for("clients go on", load.goes_on())
    check(moving, load)


def test_state_directory_has_no_half_written_move(moving: Bus) -> None:
    left = [path.name for path in Path(moving.home().directory / "traffic").iterdir()]
    assert not [name for name in left if name.startswith(".")]
