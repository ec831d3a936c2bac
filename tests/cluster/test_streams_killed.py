"""Exactly-once jobs whose driver, Spark, executors or workers are killed again and again: as in peace.

Spark runs with executors of their own (`local-cluster`), so that each kind of process can be killed alone.
The long run has a million records and twenty kills; the short one shows whether the long one is worth it.
"""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.cluster import jobs
from tests.cluster.conftest import Bus, MakeBus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
pipeline: {memory: 700MiB, master: "local-cluster[2,2,1024]"}
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
  days:
    kind: lake
    read: *readings
    dead_letters: dead
    every: 100ms
    most_records: MOST
"""
JOBS = ("copies", "totals", "days")
BATCHES_FOR_EACH_KILL = 2
DEADLINE_S = 1800.0
LAST = 10**9  # its time lets all windows end
EXECUTOR = "CoarseGrainedExecutorBackend"
KINDS = ("runner", "spark", "executor", "worker")


def record(number: int) -> tuple[bytes, bytes]:
    day, second = divmod(number, 86_400)
    at = f"2026-01-{1 + day:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"
    if number == LAST:
        at = "2026-03-01T00:00:00Z"
    return struct.pack(">i", number % 16), json.dumps({"n": number, "at": at}).encode()


def send(bus: Bus, *numbers: int) -> None:
    jobs.send(bus, "shop", "a", "readings", map(record, numbers))


def kill_one(bus: Bus, what: str, dice: random.Random) -> None:
    """Kill the runner, Spark's driver, one of its executors or Python workers; have the jobs run again."""
    runner = psutil.Process(json.loads(bus.done("stream", "up", "-o", "json"))["pid"])
    chosen = [runner] if what == "runner" else found(runner)[what]
    if chosen:
        dice.choice(chosen).kill()
    if what == "runner":
        runner.wait(60.0)
        bus.done("stream", "up")


def found(runner: psutil.Process) -> dict[str, list[psutil.Process]]:
    """The processes below a runner, by what they are."""
    below: dict[str, list[psutil.Process]] = {"spark": [], "executor": [], "worker": []}
    for process in runner.children(recursive=True):
        try:
            line = process.cmdline()
        except psutil.Error:  # it has just ended
            continue
        is_java = bool(line) and "java" in Path(line[0]).name
        what = "worker" if not is_java else "executor" if any(EXECUTOR in word for word in line) else "spark"
        below[what].append(process)
    return below


def worked_off(bus: Bus) -> int:
    """How many records the slowest of the jobs has done with, by its checkpoint."""
    return min(_worked_off(bus.directory / f".twinlog/streams/{job}/checkpoint") for job in JOBS)


def _worked_off(checkpoint: Path) -> int:
    done = max((int(file.name) for file in checkpoint.glob("commits/[0-9]*")), default=None)
    if done is None:
        return 0
    (offsets,) = (line for line in (checkpoint / f"offsets/{done}").open() if '"readings"' in line)
    return sum(json.loads(offsets)["readings"].values())


@pytest.mark.parametrize(
    ("records", "kills"),
    [(12_000, KINDS), (1_000_000, KINDS * 5)],
    ids=["short", "million"],
)
def test_nothing_is_lost_or_there_twice_when_anything_is_killed(
    make_bus: MakeBus, spark: SparkSession, records: int, kills: tuple[str, ...]
) -> None:
    bus = make_bus(FILE.replace("MOST", str(records // (len(kills) * BATCHES_FOR_EACH_KILL))))
    send(bus, *range(records))
    dice = random.Random(8)
    order = dice.sample(kills, len(kills))
    bus.done("stream", "up")
    for number, what in enumerate(order):
        # Spread over the run: each kill waits until the jobs have come some way.
        reached = number * records // (len(kills) + 1)
        jobs.until(bus, "the next kill", lambda least=reached: worked_off(bus) >= least, DEADLINE_S)  # type: ignore[misc]
        kill_one(bus, what, dice)
    jobs.until(bus, "the end", lambda: worked_off(bus) >= records, DEADLINE_S)
    send(bus, LAST)  # not before: what is read behind it would be too late
    jobs.until(bus, "the last", lambda: worked_off(bus) > records, DEADLINE_S)
    same_copies(bus, [number for number in [*range(records), LAST] if number % 3 != 0])
    same_rows(bus, spark, records)
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for number in range(records):
        group = (number % 16, number // 3600)
        count, total = sums.get(group, (0, 0))
        sums[group] = (count + 1, total + number)
    jobs.until(bus, "all totals", lambda: len(jobs.values(bus, "totals")) >= len(sums), DEADLINE_S)
    assert Counter((one["c"], one["s"]) for one in jobs.values(bus, "totals")) == Counter(sums.values())
    bus.done("stream", "down")


def same_copies(bus: Bus, wanted: list[int]) -> None:
    """The output topic has the copy of each record once, a key's in the order of its records."""
    places: dict[int, list[tuple[int, int]]] = {}
    copied: Counter[int] = Counter()
    for one in jobs.values(bus, "copies"):
        copied[one["n"]] += 1
        places.setdefault(one["key"], []).append((one["part"], one["place"]))
    assert copied == Counter(wanted)
    assert all(own == sorted(own) for own in places.values())


def same_rows(bus: Bus, spark: SparkSession, records: int) -> None:
    """The lake has each record once."""
    rows = jobs.lake(spark, bus.directory / ".twinlog/streams/days/lake")
    assert rows is not None
    assert rows.count() == records + 1
    assert rows.select("_partition", "_offset").distinct().count() == records + 1
    assert rows.where(f"n < {records} AND key = n % 16").select("n").distinct().count() == records
