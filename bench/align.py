"""How long a new twin takes to reach a log that begins far from zero.

Run by `make bench-align`. The active's log is brought to that offset with batches of a million empty
records, which are then deleted, and a thousand records are written after them. The clock runs from the
start of the mirror until the standby's log ends where the active's does, and the logs are compared.
Progress goes to stderr; the last line on stdout is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

from bench.ground import ACTIVE, STANDBY, Ground, ground, interruptible, say, wait_for
from bench.measuring import Cpu
from bench.peers import Ours
from twinlog.wire import deletion, offsets
from twinlog.wire.appending import Appender
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.recode import MOST_NULLS, null_batch

TOPIC = "far"
AFTERWARDS = 1000
APPEND_TIMEOUT_S = 60.0
ALIGN_TIMEOUT_S = 1800.0


def options() -> argparse.Namespace:
    """How far, and on how many brokers."""
    parser = argparse.ArgumentParser(prog="bench.align", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1, help="of each site")
    parser.add_argument("--offset", type=int, default=1_000_000_000, help="where the active's log begins")
    return parser.parse_args()


def advance(cluster: Cluster, end: int) -> None:
    """Let the active's log begin at `end`, and hold a few records."""
    appender = Appender(cluster.broker(cluster.leader(TOPIC, 0)))
    at, shown = 0, 0
    while at < end:
        count = min(MOST_NULLS, end - at)
        append(appender, null_batch(count, int(time.time() * 1000)))
        at += count
        if at - shown >= end // 10:
            say(f"the active's log has come to {at:,}")
            shown = at
    deletion.delete_records(cluster, {(TOPIC, 0): end})
    for _ in range(AFTERWARDS):
        append(appender, null_batch(1, int(time.time() * 1000)))


def append(appender: Appender, batch: bytearray) -> None:
    """Write a batch and insist on it."""
    appender.send([(TOPIC, 0, memoryview(batch))], Deadline(APPEND_TIMEOUT_S))
    (answer,) = appender.receive(Deadline(APPEND_TIMEOUT_S))
    if answer.code:
        raise RuntimeError(f"the active refused a batch: {answer}")


def align(on: Ground, end: int) -> dict[str, Any]:
    """Start the mirror and wait for the new twin."""
    with on.topics({TOPIC: {"partitions": 1}}) as partitions, on.cluster(ACTIVE) as active:
        advance(active, end)
        ours = Ours(on)
        began = time.monotonic()
        ours.start([TOPIC])
        try:
            with on.cluster(STANDBY) as standby:
                wait_for(
                    "the twin is aligned",
                    lambda: offsets.log_ends(standby, partitions) == offsets.log_ends(active, partitions),
                    ALIGN_TIMEOUT_S,
                )
                seconds = time.monotonic() - began
                cpu_s = Cpu(ours.processes).seconds()
                wait_for(
                    "the log start follows",
                    lambda: (
                        offsets.start_offsets(standby, partitions)
                        == offsets.start_offsets(active, partitions)
                    ),
                    ALIGN_TIMEOUT_S,
                )
            on.run("link", "verify")
        finally:
            ours.kill()
    say(f"aligned with {end:,} within {seconds:.1f} s")
    return {"seconds": round(seconds, 1), "cpu_s": round(cpu_s, 1)}


def main() -> None:
    """Measure and print."""
    chosen = options()
    load_before = os.getloadavg()[0]
    with interruptible(), ground("align", chosen.brokers) as on:
        found = align(on, chosen.offset)
    told = {"bench": "align", "offset": chosen.offset, "brokers_per_site": chosen.brokers}
    print(json.dumps(told | found | {"cores": os.cpu_count(), "load_before": round(load_before, 1)}))


if __name__ == "__main__":
    main()
