"""How long two sites take to come up, beside the plain way: no archive, one node after the other.

Run by `make bench-up`. Both ways start the same nodes with the same configuration from freshly
formatted disks and end with the same canary write, acknowledged on every broker of both sites.
They take turns, because machines are noisy; what other processes took of the processors meanwhile
is measured beside each run. Progress goes to stderr; the last line on stdout is JSON: seconds of
each run, medians, and their ratio.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from twinlog.progress import Silent
from twinlog.sites import local, processes, removal, storage
from twinlog.sites.home import Home
from twinlog.sites.layout import Node
from twinlog.sites.readiness import wait_until_ready
from twinlog.spec.model import Bus, Site

RUNS = 3
NODE_TIMEOUT_S = 120.0
LOOK_AGAIN_S = 0.05


@dataclass(frozen=True)
class Run:
    """One start: how long it took, and how busy others kept the machine."""

    seconds: float
    others_share: float  # of all processor time: 0.1 is a tenth of the machine


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def fresh_home(controllers: int) -> Home:
    """A bus of two sites of three brokers in a directory of its own."""
    site = Site(brokers=3, controllers=controllers)
    return Home(Bus(bus="bench", sites={"a": site, "b": site}), Path(tempfile.mkdtemp()) / "twinlog.yaml", {})


def remove(home: Home) -> None:
    """End all nodes and delete the directory."""
    removal.destroy(home, ["a", "b"], Silent())
    shutil.rmtree(home.file.parent)
    # The nodes were our children: seen to here, their time is not counted in the next run.
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def measured(start: Callable[[Home], object], controllers: int) -> Run:
    """Start a fresh bus, measure, and remove it."""
    home = fresh_home(controllers)
    try:
        busy_s, own_s, began = machine_cpu_s(), own_cpu_s(), time.monotonic()
        start(home)
        took_s = time.monotonic() - began
        nodes = processes.find(node for name in ("a", "b") for node in home.layout(name).nodes)
        ours_s = own_cpu_s() - own_s + sum(sum(node.cpu_times()[:2]) for node in nodes.values())
        others_s = max(0.0, machine_cpu_s() - busy_s - ours_s)
        return Run(round(took_s, 2), round(others_s / took_s / (os.cpu_count() or 1), 2))
    finally:
        remove(home)


def machine_cpu_s() -> float:
    """Processor time that all processes have used."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)


def own_cpu_s() -> float:
    """Processor time of this process and of the tools that it has run to their end."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def our_way(home: Home, kafka: local.Kafka) -> None:
    """`up` with the archive, all nodes side by side."""
    local.up(home, ["a", "b"], Silent(), kafka={"a": kafka, "b": kafka})


def plain_way(home: Home, kafka: local.Kafka) -> None:
    """Without the archive, one node after the other."""
    home.allocate()
    home.pki.ensure()
    for name in ("a", "b"):
        layout = home.layout(name)
        storage.format_site(layout, layout.nodes, kafka.command(), home.directory / "formatting")
        for node in layout.nodes:
            local.configure(home, layout, node, kafka)
            processes.start(node, kafka.java)
            wait_for_port(node)
        running = processes.find(layout.nodes)
        wait_until_ready(layout, home.admin_access(name), running, NODE_TIMEOUT_S)


def wait_for_port(node: Node) -> None:
    """Return when the node listens on its last port, which it opens when it serves."""
    address = (node.listen, list(node.ports.values())[-1])
    pause = threading.Event()
    end = time.monotonic() + NODE_TIMEOUT_S
    while time.monotonic() < end:
        try:
            socket.create_connection(address, timeout=1).close()
            return
        except OSError:
            pause.wait(LOOK_AGAIN_S)
    raise SystemExit(f"{node.name} does not listen after {NODE_TIMEOUT_S:g} s")


def main() -> None:
    """Measure and print."""
    say("fetching Kafka and making the class-data archive where they are missing")
    archived = local.ensure_kafka(Silent())
    plain = local.ensure_kafka(Silent(), with_archive=False)
    ways: dict[str, Callable[[], Run]] = {
        "side by side with archive": lambda: measured(lambda home: our_way(home, archived), 1),
        "one after the other without archive": lambda: measured(lambda home: plain_way(home, plain), 1),
        "side by side, three controllers a site": lambda: measured(lambda home: our_way(home, archived), 3),
    }
    runs: dict[str, list[Run]] = {name: [] for name in ways}
    for number in range(1, RUNS + 1):
        for name, way in ways.items():
            runs[name].append(way())
            last = runs[name][-1]
            say(f"run {number} of {RUNS}: {name} {last.seconds} s, others took {last.others_share:.0%}")
    ours, theirs, three = (statistics.median(run.seconds for run in found) for found in runs.values())
    result = {
        "bench": "up",
        "sites": 2,
        "brokers_per_site": 3,
        "seconds": ours,
        "plain_seconds": theirs,
        "three_controllers_seconds": three,
        "ratio": round(theirs / ours, 2),
        "runs": {name: [asdict(run) for run in found] for name, found in runs.items()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
