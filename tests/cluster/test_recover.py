"""A bus that has lost its state file, or has an old one, or its memory of moves, finds itself again."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.sites import processes
from twinlog.sites.state import BusState
from twinlog.spec.model import Role
from twinlog.traffic import promotions
from twinlog.wire import roles
from twinlog.wire.cluster import Cluster
from twinlog.wire.roles import Standing

pytestmark = pytest.mark.cluster

FILE = """\
bus: forgetful
kafka:
  offsets.topic.num.partitions: 2
  broker.session.timeout.ms: 5000
sites:
  a: {brokers: 1, controllers: 1, memory: 256MB}
  b: {brokers: 1, controllers: 1, memory: 256MB}
topics:
  orders: {partitions: 2}
users:
  shop: {produce: [orders]}
  ledger: {auth: mtls, consume: [orders], groups: [ledger-*]}
"""


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Iterator[Bus]:
    bus = make_bus(FILE)
    yield bus
    if not bus.home().state_file.path.exists():  # a test failed half-way, and the nodes must go all the same
        bus.done("recover", "--yes")


def identity(state: BusState) -> dict[str, Any]:
    """What must be found again: not the agents' ports, which the next `up` chooses."""
    told = asdict(state)
    for site in told["sites"].values():
        del site["agent_port"]
    del told["next_producer_range"]
    return told


def write_roles(bus: Bus, active: str, term: int) -> None:
    """Say at both sites what a move would have said there."""
    for site in ("a", "b"):
        role = Role.ACTIVE if site == active else Role.STANDBY
        with Cluster(bus.home().admin_access(site)) as cluster:
            roles.write(cluster, Standing("forgetful", site, role, term))


def test_a_state_that_agrees_is_left_alone(bus: Bus) -> None:
    ended = bus.run("recover", "--yes")
    assert ended.returncode == 2
    assert "there is nothing to recover" in ended.stderr


def test_a_lost_state_is_found_again_while_the_sites_run(bus: Bus) -> None:
    before = bus.home().state()
    path = bus.home().state_file.path
    path.unlink()
    for command in (["status"], ["plan"], ["up"], ["down"], ["destroy", "--yes"]):
        ended = bus.run(*command)
        assert ended.returncode == 1
        assert "hint: twinlog recover" in ended.stderr, command
    shown = bus.json("recover", exit_code=3)
    assert [row["told_by"] for row in shown["sites"]] == ["the site", "the site"]
    assert not path.exists()
    bus.done("recover", "--yes")
    after = bus.home().state()
    assert identity(after) == identity(before)
    assert after.next_producer_range >= before.next_producer_range
    bus.done("status")
    bus.done("plan")


def test_old_roles_are_named_and_replaced_also_when_nothing_runs(bus: Bus) -> None:
    write_roles(bus, "b", 5)
    shown = bus.json("recover", exit_code=3)
    assert {row["what"]: (row["remembered"], row["found"]) for row in shown["differences"]} == {
        "the active site": ("a", "b"),
        "the term": ("1", "5"),
    }
    assert bus.home().state().active == "a"
    bus.done("down")
    bus.home().state_file.path.unlink()
    shown = bus.json("recover", "--yes")
    assert [row["told_by"] for row in shown["sites"]] == ["its disks", "its disks"]
    state = bus.home().state()
    assert (state.active, state.term, state.lost) == ("b", 5, [])
    bus.done("up")
    bus.done("plan")
    with Cluster(bus.home().admin_access("b")) as cluster:
        assert roles.read(cluster) == Standing("forgetful", "b", Role.ACTIVE, 5)


def test_a_lost_site_is_still_known_as_lost_when_all_memory_of_moves_is_gone(bus: Bus) -> None:
    """The site that took over says so, and where; the lost one's own disks say that it was active."""
    left = list(processes.find(bus.home().layout("b").local_nodes).values())
    processes.end(left, signal.SIGKILL)
    assert processes.wait(left, 10.0) == []
    bus.done("promote")
    home = bus.home()
    before, taken_over = home.state(), promotions.read(home)
    assert (before.active, before.term, before.lost) == ("a", 6, ["b"])
    assert [one.term for one in taken_over] == [6]
    shutil.rmtree(home.directory / "traffic")
    shown = bus.json("recover", exit_code=3)
    assert [row["what"] for row in shown["differences"]] == ["where term 6 took over"]
    home.state_file.path.unlink()
    told = bus.run("recover", "--yes")
    assert told.returncode == 0, told.stderr
    assert "site b does not answer; next: twinlog return" in told.stderr
    after = bus.home().state()
    assert (after.active, after.term, after.lost) == ("a", 6, ["b"])
    assert identity(after)["sites"] == identity(before)["sites"]
    assert promotions.read(bus.home()) == taken_over
    assert "twinlog return" in bus.run("up").stderr
    bus.done("return")
    bus.done("link", "down")  # which the return has begun
    assert bus.home().state().lost == []
    bus.done("plan")
