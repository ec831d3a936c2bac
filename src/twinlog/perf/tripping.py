"""One measurement of the way through the log and back, as EndToEndLatency makes it.

For `twinlog perf latency`. One record at a time: written, acknowledged, read; the next one only then.
The topic must be nobody else's meanwhile: a record that was not sent here ends the measurement.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from twinlog.errors import KafkaError, SiteError
from twinlog.perf.histogram import Histogram
from twinlog.wire.bulk import BulkReader, BulkSender
from twinlog.wire.driver import Settings

TRIP_TIMEOUT_S = 60.0
ASK_S = 10.0
_SEED = 0

Told = Callable[[int, float], None]


@dataclass(frozen=True)
class TripOptions:
    """What goes through the log."""

    topic: str
    records: int
    record_bytes: int


def trips(
    producer: Settings, consumer: Settings, options: TripOptions, told: Told | None = None
) -> Histogram:
    """Send records one after the other and read each back; `told` hears every one, in milliseconds."""
    sender = BulkSender(producer)
    try:
        partitions = sender.check(options.topic, ASK_S, all_led=True)
        reader = BulkReader(consumer)
        try:
            reader.assign_ends(options.topic, partitions, ASK_S)
            return _run(sender, reader, options, told)
        finally:
            reader.close()
    finally:
        sender.close()


def _run(sender: BulkSender, reader: BulkReader, options: TripOptions, told: Told | None) -> Histogram:
    chance, taken = random.Random(_SEED), Histogram()
    for number in range(options.records):
        value = bytes([ord("A") + chance.randrange(26)]) * options.record_bytes
        began_s = time.perf_counter()
        sender.queue(options.topic, [{"value": value}], 0.0)
        left = sender.settle(TRIP_TIMEOUT_S)
        if sender.failed or left:
            reason = sender.reason or f"no answer after {TRIP_TIMEOUT_S:g} s"
            raise KafkaError(
                f"record {number}: {reason}", hint=sender.hint or "is the site up? twinlog status"
            )
        came = reader.next_value(TRIP_TIMEOUT_S)
        took_s = time.perf_counter() - began_s
        if came is None:
            raise SiteError(
                f"record {number} was acknowledged and did not come back within {TRIP_TIMEOUT_S:g} s",
                where=f"topic {options.topic}",
                hint="are all brokers up? twinlog status",
            )
        if came != value:
            raise SiteError(
                f"record {number} came back as another one",
                where=f"topic {options.topic}",
                hint="does somebody else write to this topic?",
            )
        taken.add([took_s])
        if told is not None:
            told(number, took_s * 1000)
    return taken
