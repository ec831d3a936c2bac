"""How fast the client library is beside bare confluent-kafka, on records of 1 KB, in one run.

Run by `make bench-client`. Each way of ours has its bare counterpart, with the same settings, and the same
knowledge in the end: what became of every record, or what is in it. The two take turns in many short
slices, who begins changes each time, and each pair of neighbours gives one ratio of rates (bare to ours
in seconds) and one of CPU time of this process (ours to bare): what else the machine does falls on both.
The first pairs warm up. Garbage is collected before each slice, so that nobody pays for the other's.

- Writing: bare is `produce` with a callback that notes partition and offset or the error, and `poll(0)`
  after each record, as its documentation shows it; then `flush`. Ours keeps every `Sent`, or the outcomes.
  Records are bare values, or have a key and a header of their own too (`send_keyed`). First of all bare
  is compared with a second one of its kind (`bare_beside_bare`): a ratio of ours means no more than that.
- Reading: every slice reads the same records of the same partition, which the broker has in its cache,
  and begins when the first has come. Who does not read is paused, or it would read ahead meanwhile. Both
  look at the value only; or both have a tuple of all seven fields of each record (`..._whole`): topic,
  partition, offset, key, value, headers, time; or both read these one after the other (`..._each`). Each
  has a consumer of ours to itself: what a program looks at decides how records are made.

Progress goes to stderr; the last line on stdout is JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import confluent_kafka
import psutil

from bench.ground import ACTIVE, Ground, ground, interruptible, say
from twinlog import Consumer, Done, Outgoing, Producer
from twinlog.client.balance import BALANCES
from twinlog.spec.model import KAFKA_VERSION
from twinlog.wire.clientfiles.tuning import Role, Tuning
from twinlog.wire.driver import usual

TOPIC, PARTITION, USER = "records", 0, "client"
VALUE_FIELD: Final = 4  # of a whole record
WARM_UP = 3  # slices of each that do not count
VALUE = b"v" * 1024
HEADER = "trace"
TIMEOUT_S = 120.0
LIMIT = 0.95  # of the bare rate
NOISE = "bare_beside_bare"  # what the same work differs by on this machine


class Slice(NamedTuple):
    """What one slice took."""

    seconds: float
    cpu_s: float


def nothing() -> None:
    """What a slice needs before and after, if it needs nothing."""


@dataclass(frozen=True)
class Way:
    """What one slice does; before and after are not counted."""

    work: Callable[[], None]
    before: Callable[[], None] = nothing
    after: Callable[[], None] = nothing


@dataclass(frozen=True)
class Pair:
    """One way of ours, and the same without us."""

    name: str
    bare: Way
    ours: Way


def compared(bare: Sequence[Slice], ours: Sequence[Slice], records: int) -> dict[str, Any]:
    """Rates, and the ratios of neighbours: their median, and where the middle half of them lies."""
    ratio = [one.seconds / other.seconds for one, other in zip(bare, ours, strict=True)]
    cpu = [other.cpu_s / one.cpu_s for one, other in zip(bare, ours, strict=True)]
    return {
        "bare_per_s": round(records / statistics.median(one.seconds for one in bare)),
        "ours_per_s": round(records / statistics.median(one.seconds for one in ours)),
        "ratio": round(statistics.median(ratio), 3),
        "ratio_middle_half": middle_half(ratio),
        "cpu_ratio": round(statistics.median(cpu), 3),
        "cpu_ratio_middle_half": middle_half(cpu),
        "bare_cpu_us": round(1e6 * statistics.median(one.cpu_s for one in bare) / records, 2),
        "ours_cpu_us": round(1e6 * statistics.median(one.cpu_s for one in ours) / records, 2),
        "slices": len(ratio),
    }


def middle_half(values: Sequence[float]) -> list[float]:
    """The first and the third quartile."""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [round(low, 3), round(high, 3)]


def timed(way: Way) -> Slice:
    """How long a slice takes, and what it costs this process."""
    way.before()
    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    way.work()
    took = Slice(time.perf_counter() - began, time.process_time() - cpu)
    way.after()
    return took


def measure(pair: Pair, slices: int, records: int) -> dict[str, Any]:
    """Both ways of a pair in turns."""
    bare: list[Slice] = []
    ours: list[Slice] = []
    for number in range(WARM_UP + slices):
        for kind in ("bare", "ours") if number % 2 else ("ours", "bare"):
            (bare if kind == "bare" else ours).append(timed(pair.bare if kind == "bare" else pair.ours))
    found = compared(bare[WARM_UP:], ours[WARM_UP:], records)
    say(
        f"{pair.name}: {found['ours_per_s']:,} records/s beside {found['bare_per_s']:,},"
        f" ratio {found['ratio']:.3f}, middle half {found['ratio_middle_half']},"
        f" CPU {found['cpu_ratio']:.3f}, middle half {found['cpu_ratio_middle_half']}"
    )
    return found


def settings(on: Ground, role: Role) -> dict[str, Any]:
    """What our own clients set, for the bare ones."""
    return usual(on.home.user_access(USER, ACTIVE), Tuning(), role)


def write_pairs(on: Ground, producer: Producer, records: int) -> list[Pair]:
    """Ways to write."""
    used = {**settings(on, Role.PRODUCER), "acks": "all", "partitioner": "murmur2_random"}
    bare, other = confluent_kafka.Producer(used), confluent_kafka.Producer(used)
    keys = [b"customer %d" % number for number in range(records)]

    def listening() -> tuple[Callable[[Any, Any], None], list[tuple[int, int]], list[Any]]:
        """Who is told, and what he notes: places, and errors."""
        done: list[tuple[int, int]] = []
        refused: list[Any] = []

        def told(error: Any, message: Any) -> None:
            if error is None:
                done.append((message.partition(), message.offset()))
            else:
                refused.append(error)

        return told, done, refused

    def bare_write(bare: confluent_kafka.Producer) -> None:
        told, done, refused = listening()
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

    def bare_write_keyed() -> None:
        told, done, refused = listening()
        for key in keys:
            while True:
                try:
                    bare.produce(TOPIC, VALUE, key, headers=[(HEADER, key)], on_delivery=told)
                    break
                except BufferError:
                    bare.poll(0.1)
            bare.poll(0)
        bare.flush(TIMEOUT_S)
        assert len(done) == records and not refused

    def send() -> None:
        sent = [producer.send(TOPIC, VALUE) for _ in range(records)]
        producer.flush()
        assert all(one.offset >= 0 for one in sent)

    def send_keyed() -> None:
        sent = [producer.send(TOPIC, VALUE, key, [(HEADER, key)]) for key in keys]
        producer.flush()
        assert all(one.offset >= 0 for one in sent)

    def send_many() -> None:
        outcomes = producer.send_many([Outgoing(TOPIC, VALUE)] * records)
        assert all(type(one) is Done for one in outcomes)

    # The first that are written have no keys: those are the records that are read.
    written = Way(partial(bare_write, bare))
    return [
        Pair(NOISE, written, Way(partial(bare_write, other))),
        Pair("send", written, Way(send)),
        Pair("send_keyed", Way(bare_write_keyed), Way(send_keyed)),
        Pair("send_many", written, Way(send_many)),
    ]


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


def read_pairs(bare: confluent_kafka.Consumer, consumer: Consumer, records: int) -> dict[str, Pair]:
    """Ways to read, by their names; those of one consumer look at the value, or at all."""
    place = (TOPIC, PARTITION)

    def bare_begins() -> None:
        bare.resume([confluent_kafka.TopicPartition(*place)])
        while (first := bare.poll(TIMEOUT_S)) is None or first.error() is not None:
            pass

    def bare_ends() -> None:
        bare.pause([confluent_kafka.TopicPartition(*place)])
        bare.seek(confluent_kafka.TopicPartition(*place, 0))

    def ours_begins() -> None:
        consumer.resume([place])
        assert consumer.poll(TIMEOUT_S) is not None

    def ours_ends() -> None:
        consumer.pause({place: 0})

    def bare_poll() -> None:
        count = size = 0
        while count < records:
            message = bare.poll(1.0)
            if message is not None and message.error() is None:
                count += 1
                size += len(message.value())
        assert size == count * len(VALUE)

    def bare_consume() -> None:
        count = size = 0
        while count < records:
            for message in bare.consume(500, 1.0):
                if message.error() is None:
                    count += 1
                    size += len(message.value())
        assert size == count * len(VALUE)

    def bare_poll_whole() -> None:
        count = size = 0
        while count < records:
            message = bare.poll(1.0)
            if message is not None and message.error() is None:
                count += 1
                size += len(whole(message)[VALUE_FIELD])
        assert size == count * len(VALUE)

    def bare_consume_whole() -> None:
        count = size = 0
        while count < records:
            for message in bare.consume(500, 1.0):
                if message.error() is None:
                    count += 1
                    size += len(whole(message)[VALUE_FIELD])
        assert size == count * len(VALUE)

    def iterate() -> None:
        count = size = 0
        for record in consumer:
            count += 1
            size += len(record.value or b"")
            if count == records:
                break
        assert size == count * len(VALUE)

    def poll_many() -> None:
        count = size = 0
        while count < records:
            for record in consumer.poll_many(1.0):
                count += 1
                size += len(record.value or b"")
        assert size == count * len(VALUE)

    def iterate_whole() -> None:
        count = size = 0
        for record in consumer:
            count += 1
            size += len(record[VALUE_FIELD] or b"")
            if count == records:
                break
        assert size == count * len(VALUE)

    def poll_many_whole() -> None:
        count = size = 0
        while count < records:
            for record in consumer.poll_many(1.0):
                count += 1
                size += len(record[VALUE_FIELD] or b"")
        assert size == count * len(VALUE)

    def bare_consume_each() -> None:
        count = size = 0
        while count < records:
            for message in bare.consume(500, 1.0):
                if message.error() is None:
                    count += 1
                    topic, partition, offset = message.topic(), message.partition(), message.offset()
                    key, value, headers = message.key(), message.value(), message.headers()
                    time_ms = message.timestamp()[1]
                    size += len(value)
        assert size == count * len(VALUE)
        assert (topic, partition, key, headers) == (*place, None, None) and offset and time_ms

    def poll_many_each() -> None:
        count = size = 0
        while count < records:
            for record in consumer.poll_many(1.0):
                count += 1
                topic, partition, offset = record.topic, record.partition, record.offset
                key, value, headers = record.key, record.value, record.headers
                time_ms = record.timestamp_ms
                size += len(value or b"")
        assert size == count * len(VALUE)
        assert (topic, partition, key, headers) == (*place, None, ()) and offset and time_ms

    bare_ends()
    ours_ends()
    works = {
        "iterate": (bare_poll, iterate),
        "iterate_whole": (bare_poll_whole, iterate_whole),
        "poll_many": (bare_consume, poll_many),
        "poll_many_whole": (bare_consume_whole, poll_many_whole),
        "poll_many_each": (bare_consume_each, poll_many_each),
    }
    return {
        name: Pair(name, Way(theirs, bare_begins, bare_ends), Way(ours, ours_begins, ours_ends))
        for name, (theirs, ours) in works.items()
    }


def whole(message: Any) -> tuple[Any, ...]:
    """All that a record of ours has."""
    return (
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        message.headers(),
        message.timestamp()[1],
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.client", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1, help="of each site; the standby is idle")
    parser.add_argument("--records", type=int, default=60_000, help="of one slice")
    parser.add_argument("--slices", type=int, default=60, help="of each way")
    chosen = parser.parse_args()
    users = {USER: {"produce": ["*"], "consume": ["*"], "groups": ["*"]}}
    found: dict[str, Any] = {}
    with (
        interruptible(),
        ground("bench", chosen.brokers, users=users) as on,
        on.topics({TOPIC: {"partitions": 1, "mirror": False}}),
    ):
        with Producer.of_bus(on.file, USER, timeout_s=TIMEOUT_S) as producer:
            for pair in write_pairs(on, producer, chosen.records):
                found[pair.name] = measure(pair, chosen.slices, chosen.records)
        values, wholes = ("iterate", "poll_many"), ("iterate_whole", "poll_many_whole", "poll_many_each")
        for names in (values, wholes):
            with Consumer.of_bus(on.file, USER, "ours", [TOPIC]) as consumer, bare_consumer(on) as bare:
                consumer.assigned()
                pairs = read_pairs(bare, consumer, chosen.records)
                for name in names:
                    found[name] = measure(pairs[name], chosen.slices, chosen.records)
    ratio = min(one["ratio"] for name, one in found.items() if name != NOISE)
    cpu_ratio = max(one["cpu_ratio"] for name, one in found.items() if name != NOISE)
    result = {
        "bench": "client",
        "kafka": KAFKA_VERSION,
        "cpus": os.cpu_count(),
        "load": psutil.getloadavg()[0],
        **vars(chosen),
        **found,
        "ratio": ratio,
        "cpu_ratio": cpu_ratio,
        "limit": LIMIT,
        "within": ratio >= LIMIT,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
