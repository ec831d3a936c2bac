"""Our mirror beside MirrorMaker 2, in one run: throughput, CPU, latency, crashes, offsets of groups.

Run by `make bench-mirror`. Both mirrors copy the same load between the same two sites, over LINK with
certificates, and take turns, because machines are noisy. Progress goes to stderr; the last line on
stdout is JSON. A ratio is ours to MirrorMaker's, of medians; `null` stands for what was not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

from bench import crash, groups, latency, throughput
from bench.ground import Ground, ground, interruptible, say
from bench.peers import MirrorMaker, Ours, Peer
from twinlog.spec.model import KAFKA_VERSION

PARTS = ("throughput", "zstd", "latency", "crash", "groups")


def options() -> argparse.Namespace:
    """What to measure, and how large."""
    parser = argparse.ArgumentParser(prog="bench.mirror", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--brokers", type=int, default=3, help="of each site; replication is 3 at most")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of a backlog")
    parser.add_argument("--batch-bytes", type=int, default=128 << 10, help="size of the batches in a backlog")
    parser.add_argument("--rounds", type=int, default=3, help="how often each mirror copies a backlog")
    parser.add_argument("--seconds", type=int, default=30, help="how long streams last")
    parser.add_argument("--identity", choices=("keep", "link"), default="keep", help="of our mirror")
    found = parser.parse_args()
    wrong = set(found.only.split(",")) - set(PARTS)
    if wrong:
        parser.error(f"parts are {', '.join(PARTS)}; not {', '.join(sorted(wrong))}")
    return found


@contextmanager
def peers(on: Ground) -> Iterator[list[Peer]]:
    """Both mirrors; whatever runs of them at the end is ended."""
    both: list[Peer] = [Ours(on), MirrorMaker(on)]
    try:
        yield both
    finally:
        for peer in both:
            peer.kill()


def measure(on: Ground, both: Sequence[Peer], chosen: argparse.Namespace) -> dict[str, Any]:
    """All parts that were asked for."""
    size = throughput.Size(chosen.megabytes * 1_000_000, chosen.batch_bytes, chosen.rounds)
    work: dict[str, Callable[[], dict[str, Any]]] = {
        "throughput": lambda: throughput.measure(on, both, size, "none"),
        "zstd": lambda: throughput.measure(on, both, size, "zstd"),
        "latency": lambda: latency.measure(on, both, chosen.seconds),
        "crash": lambda: crash.measure(on, both, chosen.seconds),
        "groups": lambda: groups.measure(on, both),
    }
    return {part: work[part]() for part in PARTS if part in chosen.only.split(",")}


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """The figures that the mirrors are judged by."""

    def ratio(part: str, figure: str) -> float | None:
        if part not in found:
            return None
        ours, theirs = (
            statistics.median(run[figure] for run in found[part][name]) for name in ("ours", "mirrormaker")
        )
        return float(ours / theirs)

    def each(part: str, figure: str) -> dict[str, Any] | None:
        return {name: told[figure] for name, told in found[part].items()} if part in found else None

    return {
        "throughput_ratio": ratio("throughput", "records_per_s"),
        "cpu_ratio": ratio("throughput", "cpu_s_per_million"),
        "zstd_throughput_ratio": ratio("zstd", "records_per_s"),
        "zstd_cpu_ratio": ratio("zstd", "cpu_s_per_million"),
        "repeated": each("crash", "repeated"),
        "offset_error": each("groups", "offset_error"),
    }


def main() -> None:
    """Measure and print."""
    chosen = options()
    began_at = os.getloadavg()[0]
    if began_at > (os.cpu_count() or 1):
        say(f"this machine is busy (load {began_at:.1f}): figures will be worse than they could be")
    with interruptible(), ground("bench", chosen.brokers, link={"identity": chosen.identity}) as on:
        with peers(on) as both:
            found = measure(on, both, chosen)
        result = {
            "bench": "mirror",
            **summary(found),
            "kafka": KAFKA_VERSION,
            "brokers_per_site": chosen.brokers,
            "replication": on.replication,
            "megabytes": chosen.megabytes,
            "batch_bytes": chosen.batch_bytes,
            "identity": chosen.identity,
            "cores": os.cpu_count(),
            "memory_gb": round(psutil.virtual_memory().total / 1e9),
            "load_before": round(began_at, 1),
            **found,
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
