"""How long two sites take to come up, beside the plain way: no archive, one node after the other.

Run by `make bench-up`. Both ways start the same nodes with the same configuration from freshly
formatted disks and end with the same canary write, acknowledged on every broker of both sites.
They take turns, because machines are noisy. Progress goes to stderr; the last line on stdout is
JSON: seconds of each run, medians, and their ratio.
"""

from __future__ import annotations

import json
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from twinlog.progress import Silent
from twinlog.sites import local, processes, removal, storage
from twinlog.sites.home import Home
from twinlog.sites.layout import Node
from twinlog.sites.readiness import wait_until_ready
from twinlog.spec.model import Bus, Site

RUNS = 3
NODE_TIMEOUT_S = 120.0
LOOK_AGAIN_S = 0.05


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


def our_way(kafka: local.Kafka, controllers: int) -> float:
    """Seconds of `up` with the archive, all nodes side by side."""
    home = fresh_home(controllers)
    began = time.monotonic()
    try:
        local.up(home, ["a", "b"], Silent(), kafka=kafka)
        return time.monotonic() - began
    finally:
        remove(home)


def plain_way(kafka: local.Kafka, controllers: int) -> float:
    """Seconds without the archive, one node after the other."""
    home = fresh_home(controllers)
    began = time.monotonic()
    try:
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
        return time.monotonic() - began
    finally:
        remove(home)


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
    ours: list[float] = []
    theirs: list[float] = []
    three: list[float] = []
    for number in range(1, RUNS + 1):
        ours.append(our_way(archived, controllers=1))
        say(f"run {number} of {RUNS}: side by side with archive {ours[-1]:.1f} s")
        theirs.append(plain_way(plain, controllers=1))
        say(f"run {number} of {RUNS}: one after the other without archive {theirs[-1]:.1f} s")
        three.append(our_way(archived, controllers=3))
        say(f"run {number} of {RUNS}: side by side, three controllers a site {three[-1]:.1f} s")
    result = {
        "bench": "up",
        "sites": 2,
        "brokers_per_site": 3,
        "seconds": statistics.median(ours),
        "plain_seconds": statistics.median(theirs),
        "three_controllers_seconds": statistics.median(three),
        "ratio": statistics.median(theirs) / statistics.median(ours),
        "runs": {"seconds": ours, "plain_seconds": theirs, "three_controllers_seconds": three},
    }
    print(json.dumps(result, default=str))


if __name__ == "__main__":
    main()
