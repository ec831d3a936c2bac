"""How old records are when a reader of the standby gets them, at steady rates.

A record's time is when its producer took it. The reader is the same for both mirrors, so its own part
is in both figures. The largest age is the largest lag that anybody could have seen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from bench import load
from bench.ground import Ground, say, wait_for
from bench.measuring import Arrivals, Cpu, Latency
from bench.peers import Peer

# Topics, and bytes per second of each.
RATES = ((100, 10 << 10), (10, 100 << 10), (1, 1_000_000))
START_TIMEOUT_S = 180.0
WARM_S = 10.0  # from the first record on
TAIL_TIMEOUT_S = 60.0


def measure(ground: Ground, both: Sequence[Peer], seconds: int) -> dict[str, Any]:
    """Every rate for both mirrors: rate, name of the mirror, figures."""
    return {
        f"{count} x {rate} B/s": {peer.name: _one(ground, peer, count, rate, seconds) for peer in both}
        for count, rate in RATES
    }


def _one(ground: Ground, peer: Peer, count: int, rate: int, seconds: int) -> dict[str, Any]:
    names = [f"rate-{peer.name}-{count}-{number}" for number in range(count)]
    with ground.topics({name: {"partitions": 1, "mirror": peer.mirrors} for name in names}) as partitions:
        peer.start(names)
        arrivals = Arrivals(ground, partitions)
        stream = load.Stream(ground, partitions, count * rate / load.VALUE_BYTES, load.numbered)
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
            arrivals.end()
            peer.stop()
    found = Latency.of(arrivals.between(first, last))
    share = used / (last - first)
    say(
        f"{count} x {rate / 1024:g} KiB/s, {peer.name}: p50 {found.p50_ms:.0f} ms, p99 {found.p99_ms:.0f} ms,"
        f" at most {found.max_ms:.0f} ms, {share:.0%} of a core"
    )
    return found.as_json() | {"cpu_share": share}
