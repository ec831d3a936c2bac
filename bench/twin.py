"""How long a write takes with acks=twin, beside acks=all, in one run.

Run by `make bench-twin`. One producer writes records of 1 KB to a mirrored topic at a steady rate while
the mirror runs; the two kinds of acks take turns, round by round, because machines are noisy. A latency
is the time from `send` until the future has ended, and a write that did not end as Done counts as
such and not as a latency. Progress goes to stderr; the last line on stdout is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psutil

from bench.ground import Ground, ground, interruptible, say
from twinlog import Done, Producer, Sent
from twinlog.client.producer import Acks
from twinlog.spec.model import KAFKA_VERSION

TOPIC, USER = "writes", "writer"
KINDS: tuple[Acks, ...] = ("all", "twin")
VALUE = b"v" * 1024
TIMEOUT_S = 60.0


@dataclass
class Rounds:
    """What all rounds of one kind gave."""

    latencies_ms: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """Percentiles and counts."""
        cuts = statistics.quantiles(self.latencies_ms, n=100, method="inclusive")
        return {
            "writes": sum(self.outcomes.values()),
            "outcomes": dict(self.outcomes),
            "p50_ms": round(cuts[49], 2),
            "p99_ms": round(cuts[98], 2),
            "max_ms": round(max(self.latencies_ms), 2),
        }


def options() -> argparse.Namespace:
    """How large, how fast, how long."""
    parser = argparse.ArgumentParser(prog="bench.twin", description=__doc__)
    parser.add_argument("--brokers", type=int, default=3, help="of each site")
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--rate", type=int, default=200, help="writes per second")
    parser.add_argument("--seconds", type=int, default=10, help="of one round")
    parser.add_argument("--rounds", type=int, default=3, help="of each kind")
    return parser.parse_args()


def write_steadily(producer: Producer, acks: Acks, chosen: argparse.Namespace, into: Rounds) -> None:
    """One round: writes at a rate, and their latencies."""
    lock = threading.Lock()

    def note(began: float, future: Sent) -> None:
        took_ms = (time.perf_counter() - began) * 1000
        outcome = future.result()
        with lock:
            into.outcomes[type(outcome).__name__] += 1
            if isinstance(outcome, Done) and outcome.twin == (acks == "twin"):
                into.latencies_ms.append(took_ms)

    pause = threading.Event()
    start = time.perf_counter()
    for number in range(chosen.rate * chosen.seconds):
        pause.wait(max(0.0, start + number / chosen.rate - time.perf_counter()))
        began = time.perf_counter()
        future = producer.send(TOPIC, VALUE, partition=number % chosen.partitions, acks=acks)
        future.add_done_callback(partial(note, began))
    producer.flush()


def measure(on: Ground, chosen: argparse.Namespace) -> dict[Acks, Rounds]:
    """Both kinds, taking turns; the first writes of all warm up and are not counted."""
    rounds = {kind: Rounds() for kind in KINDS}
    with Producer.of_bus(on.file, USER, timeout_s=TIMEOUT_S) as producer:
        for kind in KINDS:
            for _ in range(20):
                producer.send(TOPIC, VALUE, acks=kind).result()
        for number in range(1, chosen.rounds + 1):
            for kind in KINDS:
                say(f"round {number} of {chosen.rounds}: acks={kind}")
                write_steadily(producer, kind, chosen, rounds[kind])
    return rounds


def main() -> None:
    """Measure and print."""
    chosen = options()
    users = {USER: {"produce": ["*"]}}
    with (
        interruptible(),
        ground("bench", chosen.brokers, users=users) as on,
        on.topics({TOPIC: {"partitions": chosen.partitions}}),
    ):
        say("starting the mirror")
        on.run("link", "up")
        try:
            found: dict[str, Any] = {kind: each.as_json() for kind, each in measure(on, chosen).items()}
        finally:
            on.run("link", "down")
    result = {
        "bench": "twin",
        "kafka": KAFKA_VERSION,
        "cpus": os.cpu_count(),
        "load": psutil.getloadavg()[0],
        **vars(chosen),
        **found,
        "p50_ratio": round(found["twin"]["p50_ms"] / found["all"]["p50_ms"], 2),
        "p99_ratio": round(found["twin"]["p99_ms"] / found["all"]["p99_ms"], 2),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
