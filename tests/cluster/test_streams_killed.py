"""Exactly-once jobs whose driver, Spark or workers are killed again and again: the same as in peace."""

from __future__ import annotations

import json
import random
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import NoRoom, Sender

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

FILE = """\
bus: mill
kafka: {offsets.topic.num.partitions: 3, transaction.state.log.num.partitions: 3}
sites:
  a: {brokers: 1}
topics:
  readings: {partitions: 4}
  copies: {partitions: 2}
  totals: {}
  dead: {}
users:
  shop: {produce: [readings]}
pipeline: {memory: 700MiB}
streams:
  copies:
    read: &readings
      r:
        topic: readings
        key: int
        value: {format: json, fields: {n: long, at: timestamp}}
        time: at
        watermark: 1d
    sql: SELECT key, n, _partition AS part, _offset AS place FROM r WHERE n % 3 <> 0
    write: {topic: copies, key: {column: key, format: int}}
    dead_letters: dead
    every: 100ms
    most_records: MOST
  totals:
    kind: aggregate
    read: *readings
    window: {size: 1h}
    sql: SELECT key, period.start AS begin, count(*) AS c, sum(n) AS s FROM r GROUP BY period, key
    write: {topic: totals}
    dead_letters: dead
    every: 100ms
    most_records: MOST
"""
RECORDS = 100_000
KILLS = 6
BATCHES = 24
DEADLINE_S = 1200.0
LAST = RECORDS + 30 * 86_400  # its time lets all windows end


def record(number: int) -> tuple[bytes, bytes]:
    day, second = divmod(number, 86_400)
    at = f"2026-01-{1 + day:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"
    if number == LAST:
        at = "2026-03-01T00:00:00Z"
    return struct.pack(">i", number % 16), json.dumps({"n": number, "at": at}).encode()


def send(bus: Bus, *numbers: int) -> None:
    sender = Sender(bus.home().user_access("shop", "a"), timeout_s=120.0, tuning=Tuning())
    for number in numbers:
        key, value = record(number)
        while True:
            try:
                sender.queue("readings", value, key, (), None, None, None)
                break
            except NoRoom:
                sender.serve(0.1)
    assert sender.flush(120.0) == 0
    sender.close()


def kill_one(bus: Bus, dice: random.Random) -> str:
    """Kill the runner, Spark or one of its Python workers, and have the jobs run again."""
    runner = psutil.Process(json.loads(bus.done("stream", "up", "-o", "json"))["pid"])
    below = runner.children(recursive=True)
    spark = [process for process in below if "java" in process.name()]
    workers = [process for process in below if process not in spark]
    what, chosen = dice.choice([("runner", [runner]), ("spark", spark), ("worker", workers)])
    if chosen:
        dice.choice(chosen).kill()
    if what == "runner":
        runner.wait(60.0)
        bus.done("stream", "up")
    return what


def until(what: str, wanted: Callable[[], bool], deadline: float, bus: Bus) -> None:
    pause = threading.Event()
    while not wanted():
        assert time.monotonic() < deadline, f"{what}: {bus.run('stream', 'status').stdout}"
        pause.wait(1.0)


def worked_off(bus: Bus) -> int:
    """How many records the slower of the jobs has done with, by its checkpoint."""
    return min(
        _worked_off(bus.directory / f".twinlog/streams/{job}/checkpoint") for job in ("copies", "totals")
    )


def _worked_off(checkpoint: Path) -> int:
    done = max((int(file.name) for file in checkpoint.glob("commits/[0-9]*")), default=None)
    if done is None:
        return 0
    (offsets,) = (line for line in (checkpoint / f"offsets/{done}").open() if '"readings"' in line)
    return sum(json.loads(offsets)["readings"].values())


def values(bus: Bus, topic: str) -> list[dict[str, Any]]:
    lines = bus.done("consume", topic, "--json").splitlines()
    return [json.loads(json.loads(line)["value"]) for line in lines]


def test_nothing_is_lost_or_there_twice_when_anything_is_killed(make_bus: MakeBus) -> None:
    bus = make_bus(FILE.replace("MOST", str(RECORDS // BATCHES)))
    send(bus, *range(RECORDS))
    bus.done("stream", "up")
    dice = random.Random(8)
    deadline = time.monotonic() + DEADLINE_S
    killed: Counter[str] = Counter()
    for number in range(KILLS):
        # Spread over the run: each kill waits until the jobs have come some way.
        reached = number * RECORDS // (KILLS + 2)
        until("the next kill", lambda least=reached: worked_off(bus) >= least, deadline, bus)  # type: ignore[misc]
        killed[kill_one(bus, dice)] += 1
    until("the end", lambda: worked_off(bus) >= RECORDS, deadline, bus)
    send(bus, LAST)  # not before: what is read behind it would be too late
    wanted = [number for number in [*range(RECORDS), LAST] if number % 3 != 0]
    until("all copies", lambda: len(values(bus, "copies")) >= len(wanted), deadline, bus)
    copies = values(bus, "copies")
    assert Counter(one["n"] for one in copies) == Counter(wanted), killed
    for key in range(16):  # a key's copies are in the order of its records
        own = [(one["part"], one["place"]) for one in copies if one["key"] == key]
        assert own == sorted(own)
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for number in range(RECORDS):
        group = (number % 16, number // 3600)
        count, total = sums.get(group, (0, 0))
        sums[group] = (count + 1, total + number)
    until("all totals", lambda: len(values(bus, "totals")) >= len(sums), deadline, bus)
    found = values(bus, "totals")
    assert Counter((one["c"], one["s"]) for one in found) == Counter(sums.values()), killed
