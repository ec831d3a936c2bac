"""How many partitions a topic needs, from what one partition was measured to take. Pure.

For `twinlog topic advise`. What one partition takes bounds a topic from below: so many partitions as the
peak needs, for writing and for reading, with room to spare, and the same number on every broker. It is
a measurement of minutes on this site and not a promise: the arithmetic is shown so that it can be redone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

HEADROOM = 1.5  # a peak is rarely the highest there will ever be, and partitions cannot be taken away
MOST_PER_BROKER = 4000  # replicas that a broker carries without trouble


@dataclass(frozen=True)
class Measured:
    """What one partition was measured to take and give, in records a second."""

    write_per_s: float
    read_per_s: float


@dataclass(frozen=True)
class Load:
    """What a topic is to carry at its peak."""

    peak_per_s: float
    record_bytes: int
    consumer_per_s: float | None = None  # what one consumer manages, where it is slower than reading


@dataclass(frozen=True)
class Advised:
    """How many partitions, and why."""

    partitions: int
    steps: tuple[str, ...]


def advise(load: Load, measured: Measured, brokers: int, replication: int) -> Advised:
    """The number of partitions for a load, with the arithmetic."""
    read_per_s = min(measured.read_per_s, load.consumer_per_s or math.inf)
    wanted_per_s = load.peak_per_s * HEADROOM
    for_writing = max(1, math.ceil(wanted_per_s / measured.write_per_s))
    for_reading = max(1, math.ceil(wanted_per_s / read_per_s))
    needed = max(for_writing, for_reading)
    even = math.ceil(needed / brokers) * brokers if needed > 1 else 1
    reader = (
        "a consumer of yours"
        if load.consumer_per_s is not None and load.consumer_per_s <= measured.read_per_s
        else "a consumer"
    )
    steps = [
        f"peak {load.peak_per_s:,.0f}/s × {HEADROOM:g} to spare = {wanted_per_s:,.0f} records/s "
        f"of {load.record_bytes:,} bytes",
        f"writing: one partition takes {measured.write_per_s:,.0f}/s; "
        f"{wanted_per_s:,.0f} / {measured.write_per_s:,.0f} → {for_writing}",
        f"reading: {reader} reads {read_per_s:,.0f}/s of one partition; "
        f"{wanted_per_s:,.0f} / {read_per_s:,.0f} → {for_reading}",
        f"the larger of the two: {needed}",
    ]
    if even != needed:
        steps.append(f"the same number on each of {brokers} brokers: {even}")
    per_broker = even * replication / brokers
    if per_broker > MOST_PER_BROKER:
        steps.append(
            f"that is {per_broker:,.0f} replicas a broker, above {MOST_PER_BROKER:,}: add brokers first"
        )
    return Advised(even, tuple(steps))
