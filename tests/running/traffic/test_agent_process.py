"""A real agent beside processes that stand in for brokers, when no other voter answers any more."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.conftest import program_environment
from tests.running.traffic.loopback import deaf_address, silent_address, wait_until
from twinlog.sites import holds, processes
from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.traffic import electorate
from twinlog.traffic.agent import HELD
from twinlog.traffic.votes import WITNESS, Memory, Request, Wish, voter_of
from twinlog.traffic.witness import Voting, enrol
from twinlog.wire.addresses import HostPort

TERM = 3
FILE = """\
bus: orders
sites:
  a: {{brokers: 1}}
  b: {{brokers: 1, agent: "127.0.0.1:{ports[0]}"}}
gate: {{failover_after: 5s, promote: automatic, witness: "127.0.0.1:{ports[1]}"}}
"""
OTHERS = (voter_of("b"), WITNESS)
Nowhere = Callable[[int], AbstractContextManager[HostPort]]


def free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def broker_of(home: Home, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like the broker of site a, and does nothing."""
    node = home.layout("a").brokers[0]
    node.directory.mkdir(parents=True)
    marker = processes.marker(node)
    # Python takes the second argument for a program; relative to this directory it is one.
    script = directory / marker
    script.parent.mkdir(parents=True)
    script.write_text("import signal; signal.pause()")
    child = subprocess.Popen([sys.executable, marker, processes.MAIN_CLASS], cwd=directory)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@contextmanager
def agent_of(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "twinlog.traffic.agent", str(home.file), "a"]
    agent = subprocess.Popen(command, env=program_environment(home.directory / "cache"))
    try:
        yield agent
    finally:
        agent.terminate()
        agent.wait()


def holds_lease(home: Home) -> bool:
    try:
        return bool(json.loads((home.directory / "traffic/agent-a.json").read_text())["valid"])
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("nowhere", [silent_address, deaf_address], ids=["silent", "black-hole"])
def test_voters_that_hang_the_brokers_are_ended_before_any_of_them_is_free(
    tmp_path: Path, nowhere: Nowhere
) -> None:
    file = tmp_path / "twinlog.yaml"
    file.write_text(FILE.format(ports=free_ports(2)))
    home = Home(load(file, {}).bus, file, os.environ)
    home.allocate()
    home.pki.ensure()
    timing = electorate.timing(home)
    for name in (voter_of("a"), *OTHERS):
        enrol(electorate.seat(home, name).path, Memory(TERM, "a", timing.lease_s))
    (home.directory / "traffic/agent-a.term").write_text(f"{TERM}\n")
    with ExitStack() as opened:
        broker = opened.enter_context(broker_of(home, tmp_path))
        voters = ExitStack()
        asked = [voters.enter_context(Voting(electorate.seat(home, name), timing)) for name in OTHERS]
        opened.callback(voters.close)
        opened.enter_context(agent_of(home))
        wait_until(lambda: holds_lease(home))
        assert broker.poll() is None
        voters.close()
        for one in asked:
            opened.enter_context(nowhere(one.address.port))
        wait_until(lambda: broker.poll() is not None)
        # By its own clock no voter has been free to turn to the other site yet.
        assert all(one.keeper.answer(Request(Wish.TELL)).wait_s > 0 for one in asked)
        assert holds.reason(home.layout("a").brokers[0]) == HELD
