"""How fast a backlog is copied, and what that costs.

The backlog is there before the mirror starts. The clock and the CPU count from the moment at which a
tenth has arrived until all has, so that starting and warming up stay apart. The mirrors begin in turns: who
was first in one round is last in the next. A mirror that stands still is stopped and begins anew with
another backlog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench import load
from bench.ground import Ground, say, tried
from bench.limits import NONE, Limits, held
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


@dataclass(frozen=True)
class Kind:
    """What is copied: the codec of its batches, and how many copies each site keeps (None: as usual)."""

    codec: str = "none"
    replication: int | None = None

    def __str__(self) -> str:
        return self.codec if self.replication is None else f"{self.codec}, {self.replication} on each site"


def warm(ground: Ground, peer: Peer, size: Size) -> None:
    """Have brokers copy once without counting: who comes first must not find cold compilers."""
    if not size.total_bytes:
        return
    values = load.random_values()
    say(f"warming up brokers with {size.total_bytes / 1e6:.0f} MB")
    _copy(ground, peer, values, replace(size, rounds=1), Kind(), "warm", NONE)


def measure(
    ground: Ground, both: Sequence[Peer], size: Size, kind: Kind | None = None, limits: Limits = NONE
) -> dict[str, Any]:
    """All rounds of both mirrors, by their names; a round in which one stands still is not among them."""
    kind = kind if kind is not None else Kind()
    values = load.random_values() if kind.codec == "none" else load.json_values()
    runs: dict[str, Any] = {peer.name: [] for peer in both}
    for number in range(1, size.rounds + 1):
        for peer in both if number % 2 else reversed(both):
            name = f"backlog-{kind.codec}-{number}"
            figures = tried(
                f"{kind}, {number} of {size.rounds}, {peer.name}",
                partial(_copy, ground, peer, values, size, kind, name, limits),
            )
            if figures is None:
                continue
            say(
                f"{kind}, {number} of {size.rounds}, {peer.name}: {figures['mb_per_s']:.1f} MB/s,"
                f" {figures['records_per_s']:,.0f} records/s, {figures['cpu_s_per_gb']:.1f} CPU-s per GB,"
                f" first record after {figures['first_after_s']:.1f} s,"
                f" brokers used {figures['brokers_cpu_s'] / figures['seconds']:.2f} cores"
            )
            runs[peer.name].append(figures)
    return runs


def _copy(
    ground: Ground,
    peer: Peer,
    values: Sequence[bytes],
    size: Size,
    kind: Kind,
    name: str,
    limits: Limits,
    attempt: int = 1,
) -> dict[str, Any]:
    topic = f"{name}-{attempt}-{peer.name}"
    declared: dict[str, Any] = {"partitions": PARTITIONS, "mirror": peer.mirrors}
    if kind.replication is not None:
        declared["replication"] = kind.replication
    with ground.topics({topic: declared}) as partitions, held(ground, peer, limits) as limit:
        more = {"compression.type": kind.codec, "batch.size": size.batch_bytes}
        total = load.backlog(ground, topic, values, size.total_bytes, **more)
        start = partial(peer.start, [topic], kind.codec)
        try:
            copied = watch_copying(
                ground, partitions, total, start, Cpu(peer.processes), size.timeout_s, begun=limit.hold
            )
        finally:
            peer.stop()
    return copied.as_json() | {
        "mb_per_s": copied.records_per_s * size.total_bytes / total / 1e6,
        "cpu_s_per_gb": copied.cpu_s_per_million * total / size.total_bytes * 1e3,
        "given": limit.given,
    }
