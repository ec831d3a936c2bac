"""How fast a backlog is copied, and what that costs.

The backlog is there before the mirror starts. The clock and the CPU count from the moment at which a
tenth has arrived until all has, so that starting and warming up stay apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench import load
from bench.ground import Ground, say
from bench.measuring import Cpu, watch_copying
from bench.peers import Peer

PARTITIONS = 6
START_TIMEOUT_S = 180.0
SLOWEST_BYTES_PER_S = 500_000


@dataclass(frozen=True)
class Size:
    """How much is copied."""

    total_bytes: int
    batch_bytes: int
    rounds: int

    @property
    def timeout_s(self) -> float:
        """When to give up."""
        return START_TIMEOUT_S + self.total_bytes / SLOWEST_BYTES_PER_S


def measure(ground: Ground, both: Sequence[Peer], size: Size, codec: str) -> dict[str, Any]:
    """All rounds of both mirrors, by their names."""
    values = load.random_values() if codec == "none" else load.json_values()
    runs: dict[str, Any] = {peer.name: [] for peer in both}
    for number in range(1, size.rounds + 1):
        for peer in both:
            topic = f"backlog-{codec}-{peer.name}-{number}"
            declared = {topic: {"partitions": PARTITIONS, "mirror": peer.mirrors}}
            with ground.topics(declared) as partitions:
                more = {"compression.type": codec, "batch.size": size.batch_bytes}
                total = load.backlog(ground, topic, values, size.total_bytes, **more)
                start = partial(peer.start, [topic], codec)
                try:
                    copied = watch_copying(
                        ground, partitions, total, start, Cpu(peer.processes), size.timeout_s
                    )
                finally:
                    peer.stop()
            mb_per_s = copied.records_per_s * size.total_bytes / total / 1e6
            cpu_per_gb = copied.cpu_s_per_million * total / size.total_bytes * 1e3
            say(
                f"{codec} {number} of {size.rounds}, {peer.name}: {mb_per_s:.1f} MB/s,"
                f" {copied.records_per_s:,.0f} records/s, {cpu_per_gb:.1f} CPU-s per GB,"
                f" first record after {copied.first_after_s:.1f} s,"
                f" brokers used {copied.brokers_cpu_s / copied.seconds:.2f} cores"
            )
            figures = {"mb_per_s": mb_per_s, "cpu_s_per_gb": cpu_per_gb}
            runs[peer.name].append(copied.as_json() | figures)
    return runs
