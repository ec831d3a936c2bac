"""How fast the client library is beside bare confluent-kafka, on records of 1 KB, in one run.

Run by `make bench-client`. Each way of ours has its bare counterpart, with the same settings and the same
knowledge in the end: what became of every record, or what is in it. The two take turns slice by slice,
who begins changes each time, and each pair of neighbours gives one ratio of rates (ours to bare): what
else the machine does falls on both. The first pair warms up. Beside the rates: CPU seconds of this
process, which depend less on what else runs. Progress goes to stderr; the last line on stdout is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import confluent_kafka
import psutil

from bench.ground import ACTIVE, Ground, ground, interruptible, say
from twinlog import Consumer, Done, Outgoing, Producer
from twinlog.client.balance import BALANCES
from twinlog.spec.model import KAFKA_VERSION
from twinlog.wire.clientfiles.tuning import Role, Tuning
from twinlog.wire.driver import usual

TOPIC, USER = "records", "client"
VALUE = b"v" * 1024
TIMEOUT_S = 120.0
LIMIT = 0.95  # of the bare rate


class Slice(NamedTuple):
    """What one slice took."""

    seconds: float
    cpu_s: float


@dataclass(frozen=True)
class Pair:
    """One way of ours, and the same without us."""

    name: str
    bare: Callable[[], None]
    ours: Callable[[], None]


def compared(bare: Sequence[Slice], ours: Sequence[Slice], records: int) -> dict[str, Any]:
    """Rates, and the ratios of neighbours: their median, and where the middle half of them lies."""
    ratios = sorted(one.seconds / other.seconds for one, other in zip(bare, ours, strict=True))
    cpu = sorted(other.cpu_s / one.cpu_s for one, other in zip(bare, ours, strict=True))
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {
        "bare_per_s": round(records / statistics.median(one.seconds for one in bare)),
        "ours_per_s": round(records / statistics.median(one.seconds for one in ours)),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_middle_half": [round(low, 3), round(high, 3)],
        "cpu_ratio": round(statistics.median(cpu), 3),
        "slices": len(ratios),
    }


def timed(work: Callable[[], None]) -> Slice:
    """How long a slice takes, and what it costs this process."""
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return Slice(time.perf_counter() - began, time.process_time() - cpu)


def measure(pair: Pair, slices: int, records: int) -> dict[str, Any]:
    """Both ways of a pair in turns."""
    bare: list[Slice] = []
    ours: list[Slice] = []
    for number in range(slices + 1):
        for kind in ("bare", "ours") if number % 2 else ("ours", "bare"):
            (bare if kind == "bare" else ours).append(timed(pair.bare if kind == "bare" else pair.ours))
    found = compared(bare[1:], ours[1:], records)
    say(
        f"{pair.name}: {found['ours_per_s']:,} records/s beside {found['bare_per_s']:,},"
        f" ratio {found['ratio']:.3f}, middle half {found['ratio_middle_half']}, CPU {found['cpu_ratio']:.2f}"
    )
    return found


def settings(on: Ground, role: Role) -> dict[str, Any]:
    """What our own clients set, for the bare ones."""
    return usual(on.home.user_access(USER, ACTIVE), Tuning(), role)


def write_pairs(on: Ground, producer: Producer, records: int) -> list[Pair]:
    """Ways to write."""
    bare = confluent_kafka.Producer(
        {**settings(on, Role.PRODUCER), "acks": "all", "partitioner": "murmur2_random"}
    )

    def bare_write() -> None:
        refused: list[Any] = []
        done: list[tuple[int, int]] = []

        def told(error: Any, message: Any) -> None:
            if error is None:
                done.append((message.partition(), message.offset()))
            else:
                refused.append(error)

        for _ in range(records):
            while True:
                try:
                    bare.produce(TOPIC, VALUE, on_delivery=told)
                    break
                except BufferError:
                    bare.poll(0.1)
            bare.poll(0)
        bare.flush(TIMEOUT_S)
        assert len(done) == records and not refused

    def send() -> None:
        sent = [producer.send(TOPIC, VALUE) for _ in range(records)]
        producer.flush()
        assert all(one.done() and one.failed is None for one in sent)

    def send_many() -> None:
        outcomes = producer.send_many([Outgoing(TOPIC, VALUE)] * records)
        assert all(type(one) is Done for one in outcomes)

    return [Pair("send", bare_write, send), Pair("send_many", bare_write, send_many)]


@contextmanager
def bare_consumer(on: Ground) -> Iterator[confluent_kafka.Consumer]:
    """A member of a group; left before its brokers go, or librdkafka never comes to an end of it."""
    bare = confluent_kafka.Consumer(
        {
            **settings(on, Role.CONSUMER),
            **BALANCES["cooperative"],
            "group.id": "bare",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
        }
    )
    try:
        bare.subscribe([TOPIC])
        while bare.poll(0.1) is None:  # it is given its partitions while it is polled
            pass
        yield bare
    finally:
        bare.close()


def read_pairs(
    bare: confluent_kafka.Consumer, consumer: Consumer, partitions: int, records: int
) -> list[Pair]:
    """Ways to read; each slice begins at the first record."""
    places = [(TOPIC, number) for number in range(partitions)]

    def rewind_bare() -> None:
        for place in places:
            bare.seek(confluent_kafka.TopicPartition(*place, 0))

    def bare_poll() -> None:
        rewind_bare()
        count = size = 0
        while count < records:
            message = bare.poll(1.0)
            if message is not None and message.error() is None:
                count += 1
                size += len(message.value())
        assert size == count * len(VALUE)

    def bare_consume() -> None:
        rewind_bare()
        count = size = 0
        while count < records:
            for message in bare.consume(500, 1.0):
                if message.error() is None:
                    count += 1
                    size += len(message.value())
        assert size == count * len(VALUE)

    def iterate() -> None:
        consumer.seek(dict.fromkeys(places, 0))
        count = size = 0
        for record in consumer:
            count += 1
            size += len(record.value or b"")
            if count == records:
                break
        assert size == count * len(VALUE)

    def poll_many() -> None:
        consumer.seek(dict.fromkeys(places, 0))
        count = size = 0
        while count < records:
            for record in consumer.poll_many(1.0):
                count += 1
                size += len(record.value or b"")
        assert size == count * len(VALUE)

    return [Pair("iterate", bare_poll, iterate), Pair("poll_many", bare_consume, poll_many)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.client", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1, help="of each site; the standby is idle")
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--records", type=int, default=100_000, help="of one slice")
    parser.add_argument("--slices", type=int, default=12, help="of each way")
    chosen = parser.parse_args()
    users = {USER: {"produce": ["*"], "consume": ["*"], "groups": ["*"]}}
    found: dict[str, Any] = {}
    with (
        interruptible(),
        ground("bench", chosen.brokers, users=users) as on,
        on.topics({TOPIC: {"partitions": chosen.partitions, "mirror": False}}),
    ):
        with Producer.of_bus(on.file, USER, timeout_s=TIMEOUT_S) as producer:
            for pair in write_pairs(on, producer, chosen.records):
                found[pair.name] = measure(pair, chosen.slices, chosen.records)
        with Consumer.of_bus(on.file, USER, "ours", [TOPIC]) as consumer, bare_consumer(on) as bare:
            consumer.assigned()
            for pair in read_pairs(bare, consumer, chosen.partitions, chosen.records):
                found[pair.name] = measure(pair, chosen.slices, chosen.records)
    ratio = min(one["ratio"] for one in found.values())
    result = {
        "bench": "client",
        "kafka": KAFKA_VERSION,
        "cpus": os.cpu_count(),
        "load": psutil.getloadavg()[0],
        **vars(chosen),
        **found,
        "ratio": ratio,
        "limit": LIMIT,
        "within": ratio >= LIMIT,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
