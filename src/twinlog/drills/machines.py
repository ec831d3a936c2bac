"""Machines for drills that cut the network: namespaces of this one, joined by a router that can drop packets.

Each machine has an address and a loopback of its own; all share the disk. What is started `alone` there
sees no process of another machine, as the manager must not: it would end what it cannot reach. The router
drops what goes between two machines that are cut apart, as a broken line does: nobody is told. Whoever
runs the drill moves into the router's network, from where every machine is reached, whatever is cut. Needs
root, iproute2 and util-linux. All of it is gone when the block ends, or when this process is killed,
because every machine ends with the process that holds it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from twinlog.errors import PrerequisiteError, SiteError

TOOLS = ("ip", "nsenter", "unshare", "sysctl")
COMMAND_TIMEOUT_S = 20.0
BEGIN_TIMEOUT_S = 10.0
LOOK_AGAIN_S = 0.02
CLONE_NEWNET = 0x40000000
NETWORK = "10.78"
RULE_FIRST = 100  # before the rules that every namespace has


@dataclass(frozen=True)
class Machine:
    """One namespace, and how a command gets there."""

    name: str
    address: str
    pid: int  # of the process that holds it, as seen from outside

    def command(self, words: Sequence[str], *, alone: bool = False) -> list[str]:
        """The command that runs these words there; one that is alone sees no process of another machine."""
        kinds = ["--net", "--pid", "--mount"] if alone else ["--net"]
        return ["nsenter", f"--target={self.pid}", *kinds, "--", *words]


@dataclass
class Network:
    """The machines of a drill, and which of them are cut apart."""

    router: int  # the pid that holds it
    machines: Mapping[str, Machine]
    _cuts: set[tuple[str, str]] = field(default_factory=set)

    def cut(self, one: str, *others: str) -> None:
        """Drop everything between a machine and some others from now on, both ways."""
        for other in others:
            self._rules("add", one, other)
            self._cuts.add((one, other))

    def heal(self) -> None:
        """Let everything through again."""
        for one, other in sorted(self._cuts):
            self._rules("del", one, other)
        self._cuts.clear()

    def _rules(self, what: str, one: str, other: str) -> None:
        for source, target in ((one, other), (other, one)):
            way = ["from", self.machines[source].address, "to", self.machines[target].address]
            _inside(self.router, "ip", "rule", what, *way, "blackhole", "prio", str(RULE_FIRST))


@contextmanager
def network(names: Sequence[str]) -> Iterator[Network]:
    """Machines of these names, while the block runs, and this thread in the network that joins them."""
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise PrerequisiteError(f"a drill that cuts the network needs `{tool}`", hint=f"which {tool}")
    if os.geteuid() != 0:
        raise PrerequisiteError("a drill that cuts the network must be root", hint="sudo twinlog drill run")
    with ExitStack() as held:
        router = held.enter_context(_namespace("--net"))
        _inside(router, "ip", "link", "set", "lo", "up")
        _inside(router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        machines = {}
        for number, name in enumerate(names, start=1):
            pid = held.enter_context(_namespace("--net", "--pid", "--mount", "--mount-proc"))
            machines[name] = Machine(name, _join(router, pid, number), pid)
        held.enter_context(_moved_into(router))
        yield Network(router, machines)


def _join(router: int, machine: int, number: int) -> str:
    """Lay a line from a machine to the router; returns the machine's address."""
    near, far = f"{NETWORK}.{number}.1", f"{NETWORK}.{number}.2"
    line = ["type", "veth", "peer", "name", "line", "netns", str(machine)]
    _inside(router, "ip", "link", "add", f"line{number}", *line)
    _inside(router, "ip", "address", "add", f"{near}/30", "dev", f"line{number}")
    _inside(router, "ip", "link", "set", f"line{number}", "up")
    _inside(machine, "ip", "link", "set", "lo", "up")
    _inside(machine, "ip", "address", "add", f"{far}/30", "dev", "line")
    _inside(machine, "ip", "link", "set", "line", "up")
    # No way to anywhere else: what asks a name server hears at once that there is none.
    _inside(machine, "ip", "route", "add", f"{NETWORK}.0.0/16", "via", near)
    # Ports are chosen for all sites of a bus by the first command that runs, on whichever machine.
    _inside(machine, "sysctl", "-qw", "net.ipv4.ip_nonlocal_bind=1")
    return far


@contextmanager
def _namespace(*kinds: str) -> Iterator[int]:
    """A namespace while the block runs; the pid of the process that holds it."""
    holder = subprocess.Popen(
        ["unshare", *kinds, "--fork", "--kill-child", "sleep", "infinity"], stdin=subprocess.DEVNULL
    )
    try:
        yield _child(holder)
    finally:
        # The first process of a pid namespace takes all others with it.
        holder.kill()
        holder.wait()


def _child(holder: subprocess.Popen[bytes]) -> int:
    pause, end = threading.Event(), time.monotonic() + BEGIN_TIMEOUT_S
    while holder.poll() is None and time.monotonic() < end:
        for child in psutil.Process(holder.pid).children():
            if child.name() == "sleep":
                return child.pid
        pause.wait(LOOK_AGAIN_S)
    raise PrerequisiteError("this machine gives us no namespaces of our own", hint="unshare --net true")


@contextmanager
def _moved_into(pid: int) -> Iterator[None]:
    """This thread, and those that it starts, in the network of another process while the block runs."""
    with Path("/proc/thread-self/ns/net").open() as own, Path(f"/proc/{pid}/ns/net").open() as other:
        _set_namespace(other.fileno())
        try:
            yield
        finally:
            _set_namespace(own.fileno())


def _set_namespace(handle: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, CLONE_NEWNET):
        raise SiteError(f"the network cannot be entered: {os.strerror(ctypes.get_errno())}")


def _inside(pid: int, *words: str) -> None:
    """Run a command in the network of a process."""
    done = subprocess.run(
        ["nsenter", f"--target={pid}", "--net", "--", *words],
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise SiteError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
