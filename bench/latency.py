"""How old records are when a reader of the standby gets them, at steady rates.

All rates carry 1 MB/s: in large and small records on one topic, and spread over a hundred topics. A
record's time is when its producer took it. The reader is the same for both mirrors, so its own part is
in both figures. The largest age is the largest lag that anybody could have seen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench import load
from bench.ground import Ground, say, wait_for
from bench.measuring import Arrivals, Cpu, Latency
from bench.peers import Peer

START_TIMEOUT_S = 180.0
WARM_S = 10.0  # from the first record on
TAIL_TIMEOUT_S = 60.0


class Rate(NamedTuple):
    """A steady stream."""

    name: str
    topics: int
    partitions: int  # of each topic
    per_second: int  # records, in all
    value_bytes: int

    def value(self, number: int) -> bytes:
        """The value of a record."""
        return load.numbered(number, self.value_bytes)


RATES = (
    Rate("100 x 10 KiB/s", 1, 3, 100, 10 << 10),
    Rate("10 x 100 KiB/s", 1, 3, 10, 100 << 10),
    Rate("1 x 1 MB/s", 1, 3, 1, 1_048_000),
    Rate("100 topics x 10 KiB/s", 100, 1, 1000, 1 << 10),
)


def measure(ground: Ground, both: Sequence[Peer], seconds: int) -> dict[str, Any]:
    """Every rate for both mirrors: rate, name of the mirror, figures."""
    return {rate.name: {peer.name: _one(ground, peer, rate, seconds) for peer in both} for rate in RATES}


def _one(ground: Ground, peer: Peer, rate: Rate, seconds: int) -> dict[str, Any]:
    names = [f"rate-{peer.name}-{rate.value_bytes}-{number}" for number in range(rate.topics)]
    topic = {"partitions": rate.partitions, "mirror": peer.mirrors}
    with ground.topics(dict.fromkeys(names, topic)) as partitions:
        peer.start(names)
        arrivals = Arrivals(ground, partitions)
        stream = load.Stream(ground, partitions, rate.per_second, rate.value)
        try:
            stream.start()
            wait_for("the first records", lambda: arrivals.count > 0, START_TIMEOUT_S)
            pause = threading.Event()
            pause.wait(WARM_S)
            cpu = Cpu(peer.processes)
            first, used = time.time(), cpu.seconds()
            pause.wait(seconds)
            last, used = time.time(), cpu.seconds() - used
            total = stream.end()
            wait_for("the last records", lambda: arrivals.count >= total, TAIL_TIMEOUT_S)
        finally:
            stream.halt()
            arrivals.end()
            peer.stop()
    found = Latency.of(arrivals.between(first, last))
    share = used / (last - first)
    say(
        f"{rate.name}, {peer.name}: p50 {found.p50_ms:.0f} ms, p99 {found.p99_ms:.0f} ms,"
        f" at most {found.max_ms:.0f} ms, {share:.0%} of a core"
    )
    return found.as_json() | {"cpu_share": share}
