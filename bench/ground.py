"""A bus for a measurement: two sites in a directory of their own, gone when the measurement ends.

The bench modules beside this one run the program as a user does. What is measured next is declared
by writing the file anew, and what was measured is deleted, so that no measurement finds the topics of
another one. Whatever happens, an interrupt too, nodes and mirrors are ended and the directory removed.
On a network, each site is on its machine, and the mirror runs beside the standby; whoever measures is not
on either.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from twinlog.drills.machines import Machine
from twinlog.sites import processes
from twinlog.sites.home import Home
from twinlog.sites.state import DIRECTORY
from twinlog.spec.load import load
from twinlog.wire import offsets, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition

ACTIVE, STANDBY = "a", "b"
# Fewer partitions of Kafka's own topics than usual: they are empty, and the machine is small.
KAFKA = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 6,
    "transaction.state.log.num.partitions": 6,
}
LOOK_AGAIN_S = 0.1
RUN_TIMEOUT_S = 1800.0  # of one command; each has limits of its own, which are much shorter
TRIES = 3

Found = TypeVar("Found")


class Interrupted(Exception):
    """SIGTERM: to be ended in order, like Ctrl-C."""


def say(text: str) -> None:
    """Progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def wait_for(what: str, condition: Callable[[], bool], timeout_s: float) -> None:
    """Return when a condition holds; too long is the end of the whole measurement."""
    pause, end = threading.Event(), time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not after {timeout_s:g} s")
        pause.wait(LOOK_AGAIN_S)


def tried(what: str, work: Callable[[int], Found]) -> Found | None:
    """What work brings, which may stand still for its own reasons: done anew some times, then left out."""
    for number in range(1, TRIES + 1):
        try:
            return work(number)
        except TimeoutError as error:
            say(f"{what}: {error}; {'once more' if number < TRIES else 'left out'}")
    return None


@dataclass(frozen=True)
class Ground:
    """The bus."""

    directory: Path
    declared: Mapping[str, Any]  # the file without topics
    machines: Mapping[str, Machine] = field(default_factory=dict)  # of sites, where they have their own

    @property
    def file(self) -> Path:
        """The file that declares the bus."""
        return self.directory / "twinlog.yaml"

    @property
    def home(self) -> Home:
        """The bus as the program sees it now."""
        return Home(load(self.file, {}).bus, self.file, os.environ)

    @property
    def replication(self) -> int:
        """Copies of each partition on each site."""
        return min(3, int(self.declared["sites"][ACTIVE]["brokers"]))

    def cluster(self, site: str) -> Cluster:
        """A site, as its administrator."""
        return Cluster(self.home.admin_access(site))

    def node_processes(self) -> list[psutil.Process]:
        """The processes of both sites."""
        layouts = (self.home.layout(site) for site in (ACTIVE, STANDBY))
        return list(processes.find(node for layout in layouts for node in layout.local_nodes).values())

    def command(self, words: Sequence[str], at: str | None = None) -> list[str]:
        """The command that runs these words on a site's machine, or here if it has none."""
        machine = self.machines.get(at) if at is not None else None
        return machine.command(words) if machine is not None else list(words)

    def run(self, *args: str, at: str | None = None) -> str:
        """Run the program to its end; what it says when it fails is the error."""
        command = self.command([sys.executable, "-m", "twinlog", *args], at)
        try:
            ended = subprocess.run(
                command,
                cwd=self.directory,
                capture_output=True,
                text=True,
                check=False,
                timeout=RUN_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"twinlog {' '.join(args)} has not ended after {RUN_TIMEOUT_S:g} s") from error
        if ended.returncode not in (0, 3):
            raise RuntimeError(f"twinlog {' '.join(args)} failed:\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def write_file(self, declared_topics: Mapping[str, Any]) -> None:
        """Write the file; JSON is YAML too."""
        self.file.write_text(json.dumps({**self.declared, "topics": declared_topics}))

    @contextmanager
    def topics(self, declared_topics: Mapping[str, Any]) -> Iterator[list[TopicPartition]]:
        """Have these topics on both sites for a while; gives their partitions."""
        self.write_file(declared_topics)
        self.run("apply", "--yes")
        try:
            yield [
                (name, number)
                for name, topic in declared_topics.items()
                for number in range(topic["partitions"])
            ]
        finally:
            self.write_file({})
            for site in (ACTIVE, STANDBY):
                with self.cluster(site) as cluster:
                    for name in declared_topics:
                        topics.delete(cluster, name)


@contextmanager
def ground(
    name: str,
    brokers: int,
    sites: Sequence[str] = (ACTIVE, STANDBY),
    *,
    machines: Mapping[str, Machine] | None = None,
    site_settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> Iterator[Ground]:
    """Sites of so many brokers, up and ready."""
    machines, each = machines or {}, {"brokers": brokers, **(site_settings or {})}
    places = {site: {"listen": machines[site].address} if site in machines else {} for site in sites}
    declared_sites = {site: {**each, **place} for site, place in places.items()}
    declared = {"bus": name, "kafka": KAFKA, "sites": declared_sites, **more}
    made = Ground(Path(tempfile.mkdtemp(prefix="twinlog-bench-")), declared, machines)
    try:
        made.write_file({})
        say(f"bringing up {' and '.join(sites)}, {brokers} broker{'' if brokers == 1 else 's'} each")
        if machines:
            for site in sites:
                made.run("up", "--site", site, at=site)
        else:
            made.run("up")
        yield made
    finally:
        _remove(made)


def _remove(made: Ground) -> None:
    if (made.directory / DIRECTORY).exists():
        say("removing the sites")
        # A session of its own: a second Ctrl-C must not leave brokers behind.
        subprocess.run(
            [sys.executable, "-m", "twinlog", "destroy", "--yes"],
            cwd=made.directory,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            check=True,
            timeout=RUN_TIMEOUT_S,
        )
    shutil.rmtree(made.directory)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM end a measurement as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except (Interrupted, KeyboardInterrupt):
        say("interrupted")
        sys.exit(130)
    finally:
        signal.signal(signal.SIGTERM, before)


def records_at(cluster: Cluster, partitions: list[TopicPartition]) -> int:
    """How many offsets partitions have given out, in all."""
    return sum(offsets.log_ends(cluster, partitions).values())
