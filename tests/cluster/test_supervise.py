"""The supervisor on a live site: which nodes it restarts, and which it leaves alone.

The bus has a broker for each test, so that a crash loop, which takes its time, goes on beside the
other tests.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from threading import Event
from typing import Any

import psutil
import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.progress import Silent
from twinlog.sites import holds, local, processes, storage, supervisor
from twinlog.sites.layout import Node
from twinlog.wire.deadlines import Deadline

pytestmark = pytest.mark.cluster

FILE = """\
bus: supervised
kafka: {broker.session.timeout.ms: 5s, broker.heartbeat.interval.ms: 500ms}
sites:
  a: {brokers: 4, memory: 256MB, controller_memory: 128MB}
"""
RESTARTED, HELD, EMPTIED, BROKEN = 1, 2, 3, 4
SOON_S = 60.0  # a turn takes a second and a start five; the rest is a busy machine
CRASH_LOOP_S = 240.0  # six starts and 48 s of pauses


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Iterator[Bus]:
    made = make_bus(FILE, up=False)
    made.done("up", "--supervise")
    broken = node(made, BROKEN)
    settings = broken.directory / "server.properties"
    settings.write_text(settings.read_text() + "log.retention.ms=not-a-number\n")
    kill(broken)
    yield made
    made.done("destroy", "--yes")
    assert supervisor.background(made.home()).find() is None


def node(bus: Bus, number: int) -> Node:
    return bus.home().layout("a").node(number)


def process_of(one: Node) -> psutil.Process | None:
    return processes.find([one]).get(one.id)


def kill(one: Node) -> psutil.Process:
    """End a node as a crash would."""
    running = process_of(one)
    assert running is not None
    running.kill()
    running.wait(SOON_S)
    return running


def said(bus: Bus, one: Node) -> str:
    """What the supervisor says of a node."""
    return supervisor.report_of(bus.home()).get(one.name, "")


def wait_for(bus: Bus, one: Node, sentence: str, timeout_s: float = SOON_S) -> None:
    deadline, pause = Deadline(timeout_s), Event()
    while not said(bus, one).startswith(sentence):
        assert not deadline.passed, said(bus, one)
        pause.wait(0.1)


def status_of(bus: Bus, number: int) -> dict[str, Any]:
    """One node as `twinlog status` shows it."""
    nodes = bus.json("status", exit_code=3)["nodes"]  # the broken broker is down
    (found,) = [row for row in nodes if row["node"] == number]
    return dict(found)


def test_a_killed_broker_is_restarted_on_its_own_disk(bus: Bus) -> None:
    one = node(bus, RESTARTED)
    before = storage.read_meta(one.data[0])
    dead = kill(one)
    wait_for(bus, one, "runs")
    now = process_of(one)
    assert now is not None and now.pid != dead.pid
    assert storage.read_meta(one.data[0]) == before
    assert before["directory.id"] == one.directory_ids[0]


def test_a_held_broker_is_left_alone_until_it_is_released(bus: Bus) -> None:
    one = node(bus, HELD)
    holds.hold(one, "a drill")
    local.stop([one], Silent())
    wait_for(bus, one, "held: a drill")
    assert (status_of(bus, HELD)["state"], status_of(bus, HELD)["note"]) == ("held", "a drill")
    assert process_of(one) is None
    holds.release(one)
    wait_for(bus, one, "runs")


def test_a_lost_disk_is_reported_and_never_formatted(bus: Bus) -> None:
    one = node(bus, EMPTIED)
    (data,) = one.data
    away = data.with_name("away")
    holds.hold(one, "its disk is being moved")
    local.stop([one], Silent())
    data.rename(away)
    holds.release(one)
    try:
        wait_for(bus, one, "its data directory is gone")
        assert status_of(bus, EMPTIED)["note"] == "its data directory is gone; it is not formatted again"
        assert not data.exists() and process_of(one) is None
    finally:
        away.rename(data)
    wait_for(bus, one, "runs")


def test_a_second_supervisor_is_refused(bus: Bus) -> None:
    first = supervisor.background(bus.home()).find()
    assert first is not None
    second = bus.run("supervise", timeout_s=SOON_S)
    assert second.returncode == 2
    assert "runs already" in second.stderr
    assert supervisor.background(bus.home()).launch() == first.pid


def test_a_crash_loop_is_reported_in_status_and_ended(bus: Bus) -> None:
    one = node(bus, BROKEN)
    wait_for(bus, one, "crash loop", CRASH_LOOP_S)
    found = status_of(bus, BROKEN)
    assert found["state"] == "down"
    assert found["note"] == "crash loop: died 7 times; not restarted any more"
    assert process_of(one) is None


def test_a_killed_supervisor_leaves_the_nodes_running_and_up_brings_another(bus: Bus) -> None:
    first = supervisor.background(bus.home()).find()
    assert first is not None
    before = processes.find([node(bus, RESTARTED)])
    first.kill()
    first.wait(SOON_S)
    assert supervisor.background(bus.home()).find() is None
    assert processes.find([node(bus, RESTARTED)]) == before
    assert supervisor.background(bus.home()).launch() != first.pid


def test_down_ends_the_supervisor_and_nothing_is_restarted_after_it(make_bus: MakeBus) -> None:
    small = make_bus(FILE.replace("brokers: 4", "brokers: 1"), up=False)
    small.done("up", "--supervise")
    present = supervisor.background(small.home()).find()
    assert present is not None
    small.done("down")
    assert not processes.is_running(present)
    # Another one that comes meanwhile finds every node held.
    with subprocess.Popen(small.command("supervise"), cwd=small.directory, env=small.environment()) as late:
        for one in small.home().layout("a").nodes:
            wait_for(small, one, "held: twinlog down")
        late.terminate()
        assert late.wait(SOON_S) == 0
    assert processes.find(small.home().layout("a").nodes) == {}
