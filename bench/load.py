"""What is written at the active for a measurement: backlogs, steady streams, numbered records.

Written as the administrator on LINK with librdkafka, so that the load costs as little as it can.
Values of numbered records begin with their number, eight bytes, counted from 0 in each partition.
"""

from __future__ import annotations

import json
import random
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Producer

from bench.ground import ACTIVE, Ground

VALUE_BYTES = 1024
DISTINCT = 5000  # values; enough that no compressor sees one twice in a batch
NUMBER = struct.Struct(">q")
FLUSH_TIMEOUT_S = 300.0
ROOM_TIMEOUT_S = 60.0  # the queue holds a few seconds' worth
_SEED = 20240229


def random_values() -> list[bytes]:
    """Values of 1 KB that no codec shortens."""
    source = random.Random(_SEED)
    return [source.randbytes(VALUE_BYTES) for _ in range(DISTINCT)]


def json_values() -> list[bytes]:
    """Orders as JSON, of about 1 KB each."""
    source = random.Random(_SEED)
    return [json.dumps(_order(source)).encode() for _ in range(DISTINCT)]


def _order(source: random.Random) -> dict[str, Any]:
    return {
        "order": source.getrandbits(60),
        "customer": {"id": source.getrandbits(40), "name": f"customer {source.randrange(100_000)}"},
        "placed_at": f"2024-02-{source.randrange(1, 30):02}T{source.randrange(24):02}:15:00.000Z",
        "currency": source.choice(("EUR", "CHF", "USD")),
        "lines": [
            {
                "sku": f"{source.getrandbits(32):08x}",
                "title": source.choice(("chair", "table", "lamp", "shelf", "carpet")),
                "quantity": source.randrange(1, 9),
                "price": round(source.uniform(1, 900), 2),
                "discount": round(source.uniform(0, 0.3), 3),
                "warehouse": source.choice(("north", "south", "east", "west")),
            }
            for _ in range(6)
        ],
        "note": "",
    }


def producer(ground: Ground, **more: Any) -> Producer:
    """A producer at the active."""
    settings = {
        **ground.home.admin_access(ACTIVE).librdkafka(),
        "linger.ms": 5,
        "message.max.bytes": 2 << 20,
        "queue.buffering.max.messages": 200_000,
        "queue.buffering.max.kbytes": 128 << 10,
        **more,
    }
    return Producer(settings)


def backlog(ground: Ground, topic: str, values: Sequence[bytes], total_bytes: int, **more: Any) -> int:
    """Write values in turn, to all partitions alike, until that many bytes are there; gives how many."""
    writer = producer(ground, **more)
    count = written = 0
    while written < total_bytes:
        value = values[count % len(values)]
        put(writer, topic, value)
        count += 1
        written += len(value)
        if count % 1000 == 0:
            writer.poll(0)
    flush(writer)
    return count


def put(
    writer: Producer,
    topic: str,
    value: bytes,
    key: bytes | None = None,
    partition: int = -1,
    timestamp_ms: int = 0,
) -> None:
    """Queue a record, and wait for room if there is none."""
    end: float | None = None
    while True:
        try:
            writer.produce(topic, value, key, partition, timestamp=timestamp_ms)
            return
        except BufferError as error:
            end = time.monotonic() + ROOM_TIMEOUT_S if end is None else end
            if time.monotonic() > end:
                raise TimeoutError(
                    f"no room for a record to {topic} within {ROOM_TIMEOUT_S:g} s: does the broker answer?"
                ) from error
            writer.poll(0.05)


class Stream(threading.Thread):
    """Records at a steady rate, spread over partitions in turn, until told to end."""

    def __init__(
        self,
        ground: Ground,
        partitions: Sequence[tuple[str, int]],
        per_second: float,
        value: Callable[[int], bytes],
        **more: Any,
    ) -> None:
        super().__init__(name="stream", daemon=True)
        self.counts = dict.fromkeys(partitions, 0)
        self._writer = producer(ground, **more)
        self._partitions = list(partitions)
        self._per_second = per_second
        self._value = value  # by its number in its partition
        self._over = threading.Event()

    def run(self) -> None:
        """Write what is due, a few milliseconds' worth at a time."""
        began, sent = time.monotonic(), 0
        while not self._over.wait(0.002):
            due = int((time.monotonic() - began) * self._per_second)
            for number in range(sent, due):
                place = self._partitions[number % len(self._partitions)]
                self._writer.produce(place[0], self._value(self.counts[place]), partition=place[1])
                self.counts[place] += 1
            sent = due
            self._writer.poll(0)

    def halt(self) -> None:
        """Write no more, whatever becomes of what was written; harmless if it has ended."""
        self._over.set()

    def end(self) -> int:
        """Write no more; gives how many records there are, all of them acknowledged."""
        self.halt()
        self.join()
        flush(self._writer)
        return sum(self.counts.values())


def numbered(number: int, value_bytes: int = VALUE_BYTES) -> bytes:
    """A value that begins with its number."""
    return NUMBER.pack(number) + bytes(value_bytes - NUMBER.size)


def number_in(value: bytes) -> int:
    """The number that a value begins with."""
    (number,) = NUMBER.unpack_from(value)
    return int(number)


def flush(writer: Producer) -> None:
    """Return when all records are acknowledged."""
    left = writer.flush(FLUSH_TIMEOUT_S)
    if left:
        raise TimeoutError(f"{left} records were not acknowledged within {FLUSH_TIMEOUT_S:g} s")
