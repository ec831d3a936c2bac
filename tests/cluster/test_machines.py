"""Machines of a drill: reached, cut apart without a word, joined again, and gone at the end. Needs root."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from twinlog.drills.machines import Machine, Network, network

pytestmark = pytest.mark.cluster

WAIT_S = 20.0
PORT = 7000
ECHO = f"""
import socket
server = socket.create_server(("", {PORT}))
while True:
    connection, _ = server.accept()
    connection.sendall(b"here")
    connection.close()
"""
ASK = f"""
import socket, sys
try:
    with socket.create_connection((sys.argv[1], {PORT}), timeout=1.0) as connection:
        print(connection.recv(10).decode())
except TimeoutError:
    print("silence")
"""


def ask(machine: Machine, other: Machine) -> str:
    done = subprocess.run(
        machine.command([sys.executable, "-c", ASK, other.address]),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    return done.stdout.strip() or done.stderr


def is_reached(machine: Machine) -> bool:
    """True if whoever runs the drill reaches it."""
    with suppress(OSError), socket.create_connection((machine.address, PORT), timeout=1.0) as connection:
        return connection.recv(10) == b"here"
    return False


@pytest.fixture
def joined() -> Iterator[Network]:
    with network(("a", "b", "w")) as made, ExitStack() as servers:
        for machine in made.machines.values():
            words = machine.command([sys.executable, "-c", ECHO])
            server = servers.enter_context(subprocess.Popen(words, stdin=subprocess.DEVNULL))
            servers.callback(server.kill)
        pause, end = threading.Event(), time.monotonic() + WAIT_S
        while not all(is_reached(machine) for machine in made.machines.values()):
            assert time.monotonic() < end
            pause.wait(0.05)
        yield made


def test_machines_that_are_cut_apart_hear_silence_until_they_are_healed(joined: Network) -> None:
    a, b, w = joined.machines.values()
    assert ask(a, b) == ask(b, a) == "here"
    joined.cut("a", "b")
    assert ask(a, b) == ask(b, a) == "silence"
    assert ask(a, w) == ask(w, b) == "here"
    assert is_reached(a)
    assert is_reached(b)
    joined.heal()
    assert ask(a, b) == ask(b, a) == "here"


def test_machine_that_is_cut_off_from_one_other_still_reaches_the_rest_and_they_each_other(
    joined: Network,
) -> None:
    a, b, w = joined.machines.values()
    joined.cut("w", "a")
    assert ask(w, a) == ask(a, w) == "silence"
    assert ask(w, b) == ask(b, w) == ask(a, b) == ask(b, a) == "here"
    joined.heal()
    assert ask(w, a) == ask(a, w) == "here"


def test_what_is_started_alone_sees_no_process_of_others(joined: Network) -> None:
    a = joined.machines["a"]
    words = [sys.executable, "-c", "import psutil; print(len(psutil.pids()))"]
    alone = a.command(words, alone=True)
    seen = subprocess.run(alone, capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert int(seen.stdout) == 2  # what holds it, and what asks


def test_when_the_block_ends_nothing_is_left_and_this_process_is_where_it_was() -> None:
    before = Path("/proc/thread-self/ns/net").readlink()
    with network(("a", "b")) as made:
        holders = [machine.pid for machine in made.machines.values()] + [made.router]
        assert Path("/proc/thread-self/ns/net").readlink() != before
    assert Path("/proc/thread-self/ns/net").readlink() == before
    end = time.monotonic() + WAIT_S
    while any(psutil.pid_exists(pid) for pid in holders):
        assert time.monotonic() < end
