"""Exactly-once jobs whose driver, Spark, executors or Python workers are killed again and again: as in peace.

Spark runs with executors of their own (`local-cluster`), so that each kind of process can be killed alone.
Records come in portions, so that all jobs have work under way at each kill; which process dies, and when, is
thrown by dice. In the end the copies, the sums and the rows of the lake are
compared, one by one, with what plain Python makes of the same records: that is what a run in peace gives.
The long run has a million records and twenty kills; the short one shows whether the long one is worth it.
"""

from __future__ import annotations

import json
import random
import struct
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.cluster import jobs
from tests.cluster.conftest import Bus, MakeBus
from twinlog.streams.places import background

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
pipeline:
  memory: 700MiB
  master: "local-cluster[2,1,1024]"
  settings: {spark.driver.extraJavaOptions: JVM, spark.executor.extraJavaOptions: JVM}
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
    every: 500ms
    most_records: MOST
  totals:
    kind: aggregate
    read: *readings
    window: {size: 1h}
    sql: SELECT key, period.start AS begin, count(*) AS c, sum(n) AS s FROM r GROUP BY period, key
    write: {topic: totals}
    dead_letters: dead
    every: 500ms
    most_records: MOST
  days:
    kind: lake
    read: *readings
    dead_letters: dead
    every: 500ms
    most_records: MOST
"""
JOBS = ("copies", "totals", "days")
WITH_WORKERS = ("copies", "totals")  # Delta needs no Python
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # processes that soon die are not worth compiling much
BATCHES_OF_A_PORTION = 2
DEADLINE_S = 1800.0
LOOK_AGAIN_S = 0.2
LATER_S = 2.0  # a kill comes up to so long behind the point that it waits for, anywhere in a batch
END_TIMEOUT_S = 60.0
LAST = 10**9  # its time lets all windows end
KEYS = 16
EXECUTOR = "CoarseGrainedExecutorBackend"
KINDS = ("runner", "spark", "executor", "worker")
Places = dict[int, tuple[int, int]]


def time_of(number: int) -> str:
    """The time of a record, a second for each."""
    if number == LAST:
        return "2026-03-01T00:00:00Z"
    day, second = divmod(number, 86_400)
    return f"2026-01-{1 + day:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


def record(number: int) -> tuple[bytes, bytes]:
    return struct.pack(">i", number % KEYS), json.dumps({"n": number, "at": time_of(number)}).encode()


def send(bus: Bus, *numbers: int) -> None:
    jobs.send(bus, "shop", "a", "readings", map(record, numbers))


def kill_one(bus: Bus, what: str, dice: random.Random) -> None:
    """Kill the runner, Spark's driver, one of its executors or Python workers; have the jobs run again."""
    chosen: list[psutil.Process] = []

    def is_there() -> bool:
        chosen[:] = found(bus)[what]
        return bool(chosen)

    jobs.until(bus, f"a {what} to be killed", is_there, DEADLINE_S, LOOK_AGAIN_S)
    doomed = dice.choice(chosen)
    doomed.kill()
    psutil.wait_procs([doomed], END_TIMEOUT_S)
    assert not doomed.is_running() or doomed.status() == psutil.STATUS_ZOMBIE
    if what == "runner":
        bus.done("stream", "up")


def found(bus: Bus) -> dict[str, list[psutil.Process]]:
    """The runner and the processes below it, by what they are."""
    every: dict[str, list[psutil.Process]] = {kind: [] for kind in KINDS}
    runner = background(bus.home()).find()
    if runner is None:
        return every
    every["runner"].append(runner)
    try:
        below = runner.children(recursive=True)
    except psutil.NoSuchProcess:
        return every
    for process in below:
        try:
            line = process.cmdline()
        except psutil.Error:  # it has just ended
            continue
        if not line:  # a zombie
            continue
        is_java = "java" in Path(line[0]).name
        what = "worker" if not is_java else "executor" if any(EXECUTOR in word for word in line) else "spark"
        every[what].append(process)
    return every


def begun(bus: Bus, job: str) -> int:
    """How many records the batches have that a job has begun."""
    return _reached(bus, job, "offsets")


def worked_off(bus: Bus) -> int:
    """How many records the slowest of the jobs has done with, by its checkpoint."""
    return min(_reached(bus, job, "commits") for job in JOBS)


def _reached(bus: Bus, job: str, log: str) -> int:
    checkpoint = bus.directory / f".twinlog/streams/{job}/checkpoint"
    last = max((int(file.name) for file in checkpoint.glob(f"{log}/[0-9]*")), default=None)
    if last is None:
        return 0
    (offsets,) = (line for line in (checkpoint / f"offsets/{last}").open() if '"readings"' in line)
    return sum(json.loads(offsets)["readings"].values())


@pytest.mark.parametrize(
    ("records", "kills"),
    [(12_000, KINDS), (1_000_000, KINDS * 5)],
    ids=["short", "million"],
)
def test_nothing_is_lost_or_there_twice_when_anything_is_killed(
    make_bus: MakeBus, request: pytest.FixtureRequest, records: int, kills: tuple[str, ...]
) -> None:
    portion = records // len(kills)
    bus = make_bus(FILE.replace("JVM", JVM).replace("MOST", str(portion // BATCHES_OF_A_PORTION)))
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    dice, pause = random.Random(seed), threading.Event()
    bus.done("stream", "up")
    for number, what in enumerate(dice.sample(kills, len(kills))):
        # All jobs have the same to do when a portion comes, so none of them idles at the kill.
        least = number * portion
        wait(bus, f"{least} records", lambda least=least: worked_off(bus) >= least)  # type: ignore[misc]
        send(bus, *range(least, least + portion))
        job = dice.choice(WITH_WORKERS if what == "worker" else JOBS)
        point = least + dice.randrange(portion)
        wait(bus, f"{job} at {point}", lambda job=job, point=point: begun(bus, job) > point)  # type: ignore[misc]
        pause.wait(dice.uniform(0.0, LATER_S))  # not for anything to happen: the moment is to be any
        under_way = [job for job in JOBS if begun(bus, job) > _reached(bus, job, "commits")]
        kill_one(bus, what, dice)
        print(f"kill {number + 1}: {what}, {worked_off(bus)} records done, amid {under_way}", flush=True)
    wait(bus, "the end", lambda: worked_off(bus) >= records)
    send(bus, LAST)  # not before: what is read behind it would be too late
    wait(bus, "the last", lambda: worked_off(bus) > records)
    places: Places = {
        json.loads(one.value or b"")["n"]: (one.partition, one.offset)
        for one in jobs.received(bus, "a", "readings", 4)
    }
    assert places.keys() == {*range(records), LAST}
    same_copies(bus, places)
    same_totals(bus, records)
    bus.done("stream", "down")
    same_rows(bus, request.getfixturevalue("spark"), places)
    assert not list(jobs.received(bus, "a", "dead", 1))


def wait(bus: Bus, what: str, condition: Callable[[], bool]) -> None:
    jobs.until(bus, what, condition, DEADLINE_S, LOOK_AGAIN_S)


def same_copies(bus: Bus, places: Places) -> None:
    """The output topic has the copy of each record once, a key's in the order of its records."""
    wanted = {number: place for number, place in places.items() if number % 3 != 0}
    last: dict[bytes, int] = {}
    count = 0
    for one in jobs.received(bus, "a", "copies", 2):
        told = json.loads(one.value or b"")
        number = told["n"]
        assert told == {
            "key": number % KEYS,
            "n": number,
            "part": wanted[number][0],
            "place": wanted[number][1],
        }
        assert one.key == struct.pack(">i", number % KEYS)
        assert told["place"] > last.get(one.key, -1), f"{told} is there again, or behind a later one"
        last[one.key] = told["place"]
        count += 1
    assert count == len(wanted)


def same_totals(bus: Bus, records: int) -> None:
    """The output topic has each sum once, and no other."""
    sums: dict[tuple[int, str], tuple[int, int]] = {}
    for number in range(records):
        group = number % KEYS, time_of(number // 3600 * 3600).replace("Z", ".000Z")
        count, total = sums.get(group, (0, 0))
        sums[group] = (count + 1, total + number)
    wanted = Counter((*group, *told) for group, told in sums.items())

    def totals() -> Counter[tuple[int, str, int, int]]:
        told = (json.loads(one.value or b"") for one in jobs.received(bus, "a", "totals", 1))
        return Counter((one["key"], one["begin"], one["c"], one["s"]) for one in told)

    # Windows end in a batch of their own behind the last record.
    wait(bus, "all totals", lambda: totals().total() >= len(wanted))
    assert totals() == wanted


def same_rows(bus: Bus, spark: SparkSession, places: Places) -> None:
    """The lake has each record once, as it was."""
    rows = jobs.lake(spark, bus.directory / ".twinlog/streams/days/lake")
    assert rows is not None
    shown = rows.selectExpr(
        "key", "n", "date_format(at, \"yyyy-MM-dd'T'HH:mm:ss'Z'\")", "string(_date)", "_partition", "_offset"
    )
    left = dict(places)
    for key, number, at, day, *place in shown.toLocalIterator():
        assert left.pop(number) == tuple(place), f"{number} is there again, or of another place"
        assert (key, at, day) == (number % KEYS, time_of(number), time_of(number)[:10])
    assert not left
