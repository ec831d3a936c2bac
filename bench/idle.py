"""What an idle mirror costs: CPU, memory and requests per second, by the number of partitions.

Run by `make bench-idle`. The mirror runs, all partitions are aligned, and nobody writes. Requests are
counted by the kernel: what the mirror's processes send to brokers, in TCP segments with data, and an
idle mirror's requests fit one each. Progress goes to stderr; the last line on stdout is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from functools import partial
from typing import Any

import psutil

from bench import sockets
from bench.ground import ACTIVE, STANDBY, Ground, ground, interruptible, say, wait_for
from bench.measuring import Cpu, memory_bytes
from bench.peers import Ours
from twinlog.mirror import link
from twinlog.mirror.board import read_board
from twinlog.sites.layout import Listener

TOPIC_PARTITIONS = 10  # so many topics as a tenth of the partitions
START_TIMEOUT_S = 300.0
KINDS = ("driver", "spark", "workers")


def options() -> argparse.Namespace:
    """What to measure, and how large."""
    parser = argparse.ArgumentParser(prog="bench.idle", description=__doc__)
    parser.add_argument("--partitions", default="10,100,1000", help="how many, with commas between")
    parser.add_argument("--brokers", type=int, default=1, help="of each site")
    parser.add_argument("--seconds", type=int, default=60, help="how long each is watched")
    parser.add_argument("--settle", type=int, default=20, help="seconds after the start that do not count")
    return parser.parse_args()


def measure(on: Ground, count: int, settle_s: int, seconds: int) -> dict[str, Any]:
    """One mirror with so many partitions."""
    names = [f"idle-{count}-{number}" for number in range(-(-count // TOPIC_PARTITIONS))]
    with on.topics({name: {"partitions": min(count, TOPIC_PARTITIONS)} for name in names}):
        ours = Ours(on)
        ours.start(names)
        try:
            wait_for("all partitions begin", lambda: begun(on) == count, START_TIMEOUT_S)
            pause = threading.Event()
            pause.wait(settle_s)
            return _watch(on, ours, pause, seconds) | {"partitions": count}
        finally:
            ours.kill()


def begun(on: Ground) -> int:
    """How many partitions the mirror knows a position of."""
    board = read_board(link.background(on.home).report)
    return sum(1 for one in board.partitions if one.position >= 0) if board else 0


def _watch(on: Ground, ours: Ours, pause: threading.Event, seconds: int) -> dict[str, Any]:
    cpus = {kind: Cpu(partial(of_kind, ours, kind)) for kind in KINDS}
    ports = link_ports(on)
    before = {kind: cpu.seconds() for kind, cpu in cpus.items()}
    sent, began = sockets.segments(ours.processes(), ports), time.monotonic()
    pause.wait(seconds)
    took_s = time.monotonic() - began
    shares = {kind: (cpu.seconds() - before[kind]) / took_s for kind, cpu in cpus.items()}
    requests = (sockets.segments(ours.processes(), ports) - sent) / took_s
    found = {
        "cpu_percent": 100 * sum(shares.values()),
        "cpu_percent_by_process": {kind: 100 * share for kind, share in shares.items()},
        "memory_mb": memory_bytes(ours.processes()) / 1e6,
        "requests_per_s": requests,
    }
    told = ", ".join(f"{kind} {100 * share:.1f} %" for kind, share in shares.items())
    say(
        f"{found['cpu_percent']:.1f} % of a core ({told}), {found['memory_mb']:.0f} MB,"
        f" {requests:.1f} requests per second"
    )
    return found


def of_kind(ours: Ours, kind: str) -> list[psutil.Process]:
    """The driver, Spark's JVM, or the Python workers."""
    driver, *children = ours.processes()
    if kind == "driver":
        return [driver]
    return [child for child in children if ("java" in child.name()) == (kind == "spark")]


def link_ports(on: Ground) -> frozenset[int]:
    """Where brokers listen for the mirror."""
    home = on.home
    return frozenset(
        node.ports[Listener.LINK] for site in (ACTIVE, STANDBY) for node in home.layout(site).brokers
    )


def main() -> None:
    """Measure and print."""
    chosen = options()
    with interruptible(), ground("idle", chosen.brokers) as on:
        found = []
        for count in map(int, chosen.partitions.split(",")):
            say(f"{count} partitions")
            found.append(measure(on, count, chosen.settle, chosen.seconds))
    result = {"bench": "idle", "brokers_per_site": chosen.brokers, "cores": os.cpu_count(), "runs": found}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
