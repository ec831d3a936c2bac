"""Our mirror beside MirrorMaker 2, in one run: throughput, CPU, latency, distance, crashes, group offsets.

Run by `make bench-mirror`. Both mirrors copy the same load between the same two sites, over LINK with
certificates, and take turns, because machines are noisy. Brokers and mirrors are held to the CPUs of a
small cluster (`--limits`), mirrors from their first record on. Progress goes to stderr; the last line on
stdout is JSON. A ratio is ours to MirrorMaker's, of medians; `null` stands for what was not measured. With
`--keep FILE` parts that were measured before are taken from there, and the file has all of them in the end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from bench import crash, distance, groups, latency, limits, throughput
from bench.ground import Ground, ground, interruptible, say
from bench.limits import Limits
from bench.peers import MirrorMaker, Ours, Peer
from bench.throughput import Kind, Size
from twinlog.spec.model import KAFKA_VERSION

NEAR = ("throughput", "zstd", "zstd_replicated", "latency", "topics", "crash", "groups")
PARTS = (*NEAR, "distance")
USUAL = tuple(part for part in PARTS if part != "zstd_replicated")
LAST_WORDS = 15
LIMITS = {"seed": limits.SEED, "none": limits.NONE}


def options() -> argparse.Namespace:
    """What to measure, and how large."""
    parser = argparse.ArgumentParser(prog="bench.mirror", description=__doc__)
    parser.add_argument("--only", default=",".join(USUAL), help=f"of {', '.join(PARTS)}; commas between")
    parser.add_argument("--brokers", type=int, default=3, help="of each site; replication is 3 at most")
    parser.add_argument("--megabytes", type=int, default=500, help="size of an uncompressed backlog")
    parser.add_argument("--zstd-megabytes", type=int, default=1000, help="of a compressed one, before zstd")
    parser.add_argument("--far-megabytes", type=int, default=200, help="of a backlog at a distance")
    parser.add_argument("--warm-megabytes", type=int, default=100, help="copied first, not counted; 0: none")
    parser.add_argument("--batch-bytes", type=int, default=128 << 10, help="size of the batches in a backlog")
    parser.add_argument("--rounds", type=int, default=3, help="how often each mirror copies a backlog")
    parser.add_argument("--far-rounds", type=int, default=2, help="the same at a distance")
    parser.add_argument("--seconds", type=int, default=20, help="how long streams last")
    parser.add_argument("--distances", default="40,100", help="round trips in ms, with commas between")
    parser.add_argument("--limits", choices=tuple(LIMITS), default="seed", help="of brokers and mirrors")
    parser.add_argument("--identity", choices=("keep", "link"), default="keep", help="of our mirror")
    parser.add_argument("--keep", type=Path, help="a file of parts that were measured, to be added to")
    found = parser.parse_args()
    wrong = set(found.only.split(",")) - set(PARTS)
    if wrong:
        parser.error(f"parts are {', '.join(PARTS)}; not {', '.join(sorted(wrong))}")
    return found


@contextmanager
def peers(on: Ground) -> Iterator[list[Peer]]:
    """Both mirrors; what runs of them at the end is ended, and after a bad end their last words are told."""
    both: list[Peer] = [Ours(on), MirrorMaker(on)]
    try:
        yield both
    except BaseException:
        for peer in both:
            if peer.log.exists():
                last = peer.log.read_text(errors="replace").splitlines()[-LAST_WORDS:]
                say("\n  ".join((f"the last words of {peer.name}:", *last)))
        raise
    finally:
        for peer in both:
            peer.kill()


def measure(chosen: argparse.Namespace, kept: Callable[[str, Any], None]) -> None:
    """All parts that were asked for, each told as soon as it was measured."""
    wanted, given = chosen.only.split(","), LIMITS[chosen.limits]
    near = [part for part in NEAR if part in wanted]
    if near:
        with (
            ground(
                "bench", chosen.brokers, site_settings=given.of_sites, link={"identity": chosen.identity}
            ) as on,
            peers(on) as both,
        ):
            throughput.warm(on, both[0], _size(chosen, chosen.warm_megabytes))
            work = near_parts(on, both, chosen, given)
            for part in near:
                kept(part, work[part]())
    if "distance" in wanted:
        far: dict[str, Any] = {}
        for name, figures in distance.measure(
            chosen.brokers,
            chosen.identity,
            peers,
            [int(one) for one in chosen.distances.split(",")],
            chosen.seconds,
            (
                _size(chosen, chosen.warm_megabytes),
                replace(_size(chosen, chosen.far_megabytes), rounds=chosen.far_rounds),
            ),
            given,
        ):
            far[name] = figures
            kept("distance", far)


def near_parts(
    on: Ground, both: Sequence[Peer], chosen: argparse.Namespace, given: Limits
) -> dict[str, Callable[[], dict[str, Any]]]:
    """How each part between neighbouring sites is measured."""
    plain, packed = _size(chosen, chosen.megabytes), _size(chosen, chosen.zstd_megabytes)
    return {
        "throughput": lambda: throughput.measure(on, both, plain, Kind(), given),
        "zstd": lambda: throughput.measure(on, both, packed, Kind("zstd", replication=1), given),
        "zstd_replicated": lambda: throughput.measure(on, both, packed, Kind("zstd"), given),
        "latency": lambda: latency.measure(on, both, chosen.seconds, limits=given),
        "topics": lambda: latency.measure(on, both, chosen.seconds, latency.MANY_TOPICS, given),
        "crash": lambda: crash.measure(on, both, chosen.seconds),
        "groups": lambda: groups.measure(on, both),
    }


def _size(chosen: argparse.Namespace, megabytes: int) -> Size:
    return Size(megabytes * 1_000_000, chosen.batch_bytes, chosen.rounds)


def summary(found: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that the mirrors are judged by."""

    def each(part: str, figure: str) -> dict[str, Any] | None:
        return {name: told[figure] for name, told in found[part].items()} if part in found else None

    plain, packed, replicated = (found.get(part) for part in ("throughput", "zstd", "zstd_replicated"))
    rates, topics = found.get("latency"), found.get("topics")
    return {
        "throughput_ratio": ratio(plain, "records_per_s"),
        "cpu_ratio": ratio(plain, "cpu_s_per_million"),
        "zstd_throughput_ratio": ratio(packed, "records_per_s"),
        "zstd_cpu_ratio": ratio(packed, "cpu_s_per_million"),
        "zstd_replicated_throughput_ratio": ratio(replicated, "records_per_s"),
        "zstd_replicated_cpu_ratio": ratio(replicated, "cpu_s_per_million"),
        "latency_ms": brief(rates),
        "largest_lag_ms": largest_lag_ms(rates),
        "many_topics_latency_ms": brief(topics),
        "many_topics_largest_lag_ms": largest_lag_ms(topics),
        "far": {
            distance_ms: {
                "round_trip_ms": told["round_trip_ms"],
                "throughput_ratio": ratio(told["throughput"], "records_per_s"),
                "latency_ms": brief(told["latency"]),
                "largest_lag_ms": largest_lag_ms(told["latency"]),
            }
            for distance_ms, told in found["distance"].items()
            if distance_ms.isdigit()
        }
        if "distance" in found
        else None,
        "repeated": each("crash", "repeated"),
        "offset_error": each("groups", "offset_error"),
    }


def ratio(runs: Mapping[str, Any] | None, figure: str) -> float | None:
    """Ours to MirrorMaker's, of medians of all rounds."""
    if runs is None or not all(runs.values()):
        return None
    ours, theirs = (statistics.median(run[figure] for run in runs[name]) for name in ("ours", "mirrormaker"))
    return float(ours / theirs)


def brief(rates: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Latencies by rate and mirror: the middle, the slowest hundredth, the slowest."""
    if rates is None:
        return None
    return {
        rate: {
            name: {figure: round(told[f"{figure}_ms"], 1) for figure in ("p50", "p99", "max")}
            for name, told in by_peer.items()
        }
        for rate, by_peer in rates.items()
    }


def largest_lag_ms(rates: Mapping[str, Any] | None) -> float | None:
    """The oldest that a record of ours was when it arrived, at any rate."""
    return None if rates is None else max(float(by_peer["ours"]["max_ms"]) for by_peer in rates.values())


def read_kept(path: Path | None) -> dict[str, Any]:
    """The parts that were measured before."""
    if path is None or not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def main() -> None:
    """Measure and print."""
    chosen = options()
    began_at = os.getloadavg()[0]
    if began_at > (os.cpu_count() or 1):
        say(f"this machine is busy (load {began_at:.1f}): figures will be worse than they could be")
    about = {
        "kafka": KAFKA_VERSION,
        "brokers_per_site": chosen.brokers,
        "replication": min(3, chosen.brokers),
        "megabytes": chosen.megabytes,
        "zstd_megabytes": chosen.zstd_megabytes,
        "far_megabytes": chosen.far_megabytes,
        "batch_bytes": chosen.batch_bytes,
        "identity": chosen.identity,
        "limits": LIMITS[chosen.limits].as_json(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
    }
    found = read_kept(chosen.keep)

    def keep(part: str, figures: Any) -> None:
        # Distances can be measured one by one too.
        found[part] = {**found.get(part, {}), **figures} if part == "distance" else figures
        if chosen.keep is not None:
            chosen.keep.parent.mkdir(parents=True, exist_ok=True)
            chosen.keep.write_text(json.dumps(found, indent=1) + "\n")

    with interruptible():
        measure(chosen, keep)
    loads = {"load_before": round(began_at, 1), "load_after": round(os.getloadavg()[0], 1)}
    print(json.dumps({"bench": "mirror", **summary(found), **about, **loads, **found}))


if __name__ == "__main__":
    main()
