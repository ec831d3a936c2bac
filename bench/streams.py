"""Jobs on streams: how soon a record is passed on, and what a windowed sum costs beside Kafka Streams.

Run by `make bench-streams`. First 1,000 records a second go through a job that works record by record:
in real-time mode, then the same in micro-batches, one after the other in one run. A record's age is
counted from when it is handed to the producer to when a reader of the output has it. Then come the sums
of `bench/totals.py`. Broker, jobs and load share this machine. The last line on stdout is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import psutil
from confluent_kafka import Consumer, TopicPartition

from bench import totals
from bench.ground import ACTIVE, Ground, ground, interruptible, say, wait_for
from bench.load import Stream
from bench.measuring import Latency
from twinlog.spec.model import KAFKA_VERSION

IN, OUT, DEAD = "clicks", "passed", "dead"
PARTITIONS = 2
MODES = {"real_time": "at-least-once", "micro_batch": "exactly-once"}
USERS = {
    totals.USER: {
        "produce": ["*"],
        "consume": ["*"],
        "create": ["*"],
        "groups": [f"{totals.USER}-*"],
        "transactions": [f"{totals.USER}-*"],
    }
}
START_TIMEOUT_S = 120.0
END_TIMEOUT_S = 30.0  # a reader looks up five times a second
WARM_S = 20


def relay(guarantee: str, topic: str) -> dict[str, Any]:
    """The job: filter and mask."""
    fields = {"id": "long", "card": "string", "sent": "long"}
    return {
        "read": {"c": {"topic": IN, "value": {"format": "json", "fields": fields}}},
        "sql": "SELECT id, concat('…', right(card, 4)) AS card, sent FROM c WHERE id % 10 <> 0",
        "write": {"topic": topic},
        "guarantee": guarantee,
        "dead_letters": DEAD,
        "every": "10ms",
    }


def click(number: int) -> bytes:
    """A record that knows when it was made, in nanoseconds."""
    return json.dumps({"id": number, "card": "4111111111111111", "sent": time.time_ns()}).encode()


class Reader(threading.Thread):
    """Reads what a job writes, and notes how old records are when they arrive."""

    def __init__(self, on: Ground, topic: str) -> None:
        super().__init__(name="reader", daemon=True)
        settings = {
            **on.home.admin_access(ACTIVE).librdkafka(),
            "group.id": "bench-reader",
            "isolation.level": "read_committed",
        }
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        self._over = threading.Event()
        self.ages: list[tuple[int, float]] = []  # when it was sent, and its age in milliseconds

    def run(self) -> None:
        """Read until told to end."""
        while not self._over.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                now, sent = time.time_ns(), json.loads(message.value())["sent"]
                self.ages.append((sent, (now - sent) / 1e6))
        self._consumer.close()

    def end(self) -> None:
        """Read no more."""
        self._over.set()
        self.join(END_TIMEOUT_S)
        if self.is_alive():
            raise TimeoutError(f"the reader of the output has not ended after {END_TIMEOUT_S:g} s")


def latency(on: Ground, mode: str, per_second: int, seconds: int) -> dict[str, Any]:
    """How old records are when they arrive, in one mode."""
    topic = f"{OUT}-{mode.replace('_', '-')}"
    declared = {IN: {"partitions": PARTITIONS}, topic: {"partitions": PARTITIONS}, DEAD: {}}
    job = f"relay-{mode.replace('_', '-')}"
    replace(on, declared={**on.declared, "streams": {job: relay(MODES[mode], topic)}}).write_file(declared)
    on.run("apply", "--yes")
    on.run("stream", "up")
    reader = Reader(on, topic)
    reader.start()
    load = Stream(on, [(IN, number) for number in range(PARTITIONS)], per_second, click, **{"linger.ms": 0})
    load.start()
    try:
        wait_for(f"the first record in {topic}", lambda: bool(reader.ages), START_TIMEOUT_S)
        begun = time.time_ns() + WARM_S * 10**9  # Spark and the brokers warm up
        ended = begun + seconds * 10**9
        wait_for(
            f"a record in {topic} that was sent {WARM_S + seconds} s after the first came",
            lambda: reader.ages[-1][0] > ended,
            seconds + WARM_S + START_TIMEOUT_S,
        )
    finally:
        with ExitStack() as ending:  # each of them, also if one before it fails
            ending.callback(on.run, "stream", "down")
            ending.callback(reader.end)
            ending.callback(load.end)
    found = Latency.of([age for sent, age in reader.ages if begun <= sent < ended]).as_json()
    say(f"{mode}: {found}")
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.streams", description=__doc__)
    parser.add_argument("--per-second", type=int, default=1000, help="records of the latency's load")
    parser.add_argument("--seconds", type=int, default=60, help="for which latency is looked at")
    parser.add_argument("--records", type=int, default=4_000_000, help="of the backlog that is summed up")
    parser.add_argument("--rounds", type=int, default=1, help="how often each side sums it up")
    parser.add_argument("--only", choices=("latency", "aggregate"), help="one part")
    chosen = parser.parse_args()
    began_at = os.getloadavg()[0]
    told: dict[str, Any] = {"bench": "streams", "p50_ms": None, "p99_ms": None, "aggregate_ratio": None}
    with interruptible(), ground("streams", 1, (ACTIVE,), users=USERS) as on:
        if chosen.only != "aggregate":
            for mode in MODES:
                told[mode] = latency(on, mode, chosen.per_second, chosen.seconds)
            told |= {name: round(told["real_time"][name], 2) for name in ("p50_ms", "p99_ms")}
        if chosen.only != "latency":
            told |= aggregate(totals.measure(on, chosen.records, chosen.rounds))
    told |= {
        "per_second": chosen.per_second,
        "records": chosen.records,
        "kafka": KAFKA_VERSION,
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "load_before": round(began_at, 1),
    }
    print(json.dumps(told))


def aggregate(found: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Both sides' rounds, and how much more ours does with a core, by medians."""
    ours, theirs = (
        statistics.median(one["records_per_s_per_core"] for one in found[name])
        for name in (totals.Ours.name, totals.KafkaStreams.name)
    )
    return {**found, "aggregate_ratio": round(ours / theirs, 2)}


if __name__ == "__main__":
    main()
