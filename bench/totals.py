"""A windowed sum over a backlog: our job and Kafka Streams with the same topology, in turns.

Both take a number out of JSON, sum by key and by minute of the records' times, write each sum once when
its window is over, promise exactly once and keep their state in RocksDB, at the same site over the same
listener. Neither looks for dead letters, which with us would be a second reading. What counts is records
for each second of processor time of all of their processes (ours: driver, Spark's JVM, Python workers),
from the first tenth of the backlog to its end. Afterwards all sums are compared with Python's.
"""

from __future__ import annotations

import json
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import psutil
from confluent_kafka import Consumer, KafkaError, TopicPartition

from bench import load
from bench.ground import ACTIVE, Ground, records_at, say, wait_for
from bench.measuring import WARM_SHARE, Cpu
from bench.programs import Program, family, locked_jars
from twinlog.sites.java import find_java
from twinlog.streams.places import background, directory

HERE = Path(__file__).parent
LOCK, SOURCE = HERE / "kafka-streams-jars.lock", HERE / "Totals.java"
USER = "peer"
TOPIC = "readings"
PARTITIONS = 4
TURBINES = 1000
PER_SECOND = 2000  # records for each second of the event time
WINDOW_S, LATE_S = 60, 120
BEGIN = int(time.time()) // 3600 * 3600 - 3 * 3600  # not long ago, or the broker would remove what is written
TIMEOUT_S = 600.0
COMPARE_TIMEOUT_S = 180.0  # a start and one batch
READ_TIMEOUT_S = 60.0  # all sums that are there, once
COMPILE_TIMEOUT_S = 120.0
HEAP = "1g"

Sums = Counter[tuple[int, str, int, int]]  # turbine, begin, kilowatts, records


@dataclass(frozen=True)
class Worked:
    """How fast and at what cost a backlog was summed up, from the first tenth to the end."""

    records: int
    seconds: float
    cpu_s: float

    def as_json(self) -> dict[str, float]:
        """For the last line."""
        return {
            "records_per_s": round(self.records / self.seconds),
            "records_per_s_per_core": round(self.records / self.cpu_s),
            "cores": round(self.cpu_s / self.seconds, 2),
        }


class Side(Protocol):
    """One of the two that are compared."""

    name: str

    def topics(self, number: int) -> dict[str, Any]:
        """What it writes in a round."""

    def start(self, number: int) -> None:
        """Begin with nothing done, or go on with what it has done in this round."""

    def done(self, number: int) -> int:
        """How many records it is done with for good."""

    def stop(self) -> None:
        """End in order; harmless if it does not run."""

    def processes(self) -> list[psutil.Process]:
        """All of its processes."""


class Ours:
    """The job of the file."""

    name = "ours"

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def topics(self, number: int) -> dict[str, Any]:
        """What it writes in a round."""
        return {f"{self.name}-{number}": {"partitions": PARTITIONS}}

    def start(self, number: int) -> None:
        """Begin with nothing done, or go on with what it has done in this round."""
        jobs = {f"totals-{number}": job(f"{self.name}-{number}")}
        declared = {**self._ground.declared, "streams": jobs, "pipeline": {"memory": HEAP.upper() + "iB"}}
        replace(self._ground, declared=declared).write_file(
            json.loads(self._ground.file.read_text())["topics"]
        )
        self._ground.run("apply", "--yes")
        self._ground.run("stream", "up")

    def done(self, number: int) -> int:
        """How many records it is done with for good."""
        checkpoint = directory(self._ground.home) / f"totals-{number}" / "checkpoint"
        done = max((int(file.name) for file in checkpoint.glob("commits/[0-9]*")), default=None)
        if done is None:
            return 0
        lines = (checkpoint / f"offsets/{done}").read_text().splitlines()
        return sum(sum(json.loads(line)[TOPIC].values()) for line in lines if f'"{TOPIC}":' in line)

    def stop(self) -> None:
        """End in order; harmless if it does not run."""
        self._ground.run("stream", "down")

    def processes(self) -> list[psutil.Process]:
        """All of its processes."""
        return family(background(self._ground.home).find())


def job(topic: str) -> dict[str, Any]:
    """The sum as the file declares it."""
    turbine = "CAST(conv(hex(key), 16, 10) AS INT) AS turbine"
    kw = "sum(from_json(CAST(value AS STRING), 'kw DOUBLE').kw) AS kw"
    return {
        "kind": "aggregate",
        "read": {"r": {"topic": TOPIC, "watermark": f"{LATE_S}s"}},
        "window": {"size": f"{WINDOW_S}s"},
        "sql": f"SELECT {turbine}, period.start AS begin, {kw}, count(*) AS n FROM r GROUP BY period, key",
        "write": {"topic": topic, "key": {"column": "turbine", "format": "int"}},
    }


class KafkaStreams(Program):
    """The same in Java, as a process of its own."""

    name = "kafka_streams"

    def __init__(self, ground: Ground) -> None:
        jars = locked_jars(LOCK)
        super().__init__(ground.directory / self.name, jars, [f"-Xmx{HEAP}", "-XX:+UseG1GC"])
        self._ground = ground
        compiler = find_java().binary.resolve().parent / "javac"
        classes = ["-d", str(self.directory), "-cp", ":".join(map(str, jars))]
        subprocess.run([str(compiler), *classes, str(SOURCE)], check=True, timeout=COMPILE_TIMEOUT_S)

    def topics(self, number: int) -> dict[str, Any]:
        """What it writes in a round."""
        return {f"{self.name}-{number}": {"partitions": PARTITIONS}}

    def start(self, number: int) -> None:
        """Begin with nothing done, or go on with what it has done in this round."""
        self.run(
            self._ground.run("client", USER, "--site", ACTIVE, "--format", "java"),
            SOURCE.stem,
            _application(number),
            str(self.directory / "state"),
            TOPIC,
            f"{self.name}-{number}",
            str(WINDOW_S),
            str(LATE_S),
        )

    def done(self, number: int) -> int:
        """How many records it is done with for good."""
        asking = Consumer(
            {**self._ground.home.admin_access(ACTIVE).librdkafka(), "group.id": _application(number)}
        )
        try:
            places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
            return sum(max(0, place.offset) for place in asking.committed(places, timeout=10.0))
        finally:
            asking.close()


def _application(number: int) -> str:
    return f"{USER}-totals-{number}"


def second(number: int) -> str:
    """A time of the events, as both sides write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(BEGIN + number))


def record(number: int) -> tuple[int, int]:
    """Turbine and kilowatts of one reading; whole numbers, so that sums do not depend on the order."""
    return number * 7919 % TURBINES, number % 4096


def expected(records: int) -> Sums:
    """What comes out, by plain Python."""
    kilowatts: Counter[tuple[int, str]] = Counter()
    counts: Counter[tuple[int, str]] = Counter()
    for number in range(records):
        turbine, kw = record(number)
        group = turbine, second(number // PER_SECOND // WINDOW_S * WINDOW_S)
        kilowatts[group] += kw
        counts[group] += 1
    return Counter({(*group, kilowatts[group], counts[group]): 1 for group in counts})


def value_of(kw: int) -> bytes:
    """A reading as it is written."""
    return f'{{"sensor": "s-{kw:04}", "unit": "kW", "kw": {kw}}}'.encode()


def write_backlog(ground: Ground, records: int) -> None:
    """All readings, each turbine's in one partition."""
    writer = load.producer(ground)
    for number in range(records):
        turbine, kw = record(number)
        at_ms = (BEGIN + number // PER_SECOND) * 1000
        load.put(writer, TOPIC, value_of(kw), struct.pack(">i", turbine), turbine % PARTITIONS, at_ms)
    load.flush(writer)
    with ground.cluster(ACTIVE) as active:
        there = records_at(active, [(TOPIC, partition) for partition in range(PARTITIONS)])
    if there != records:  # else both sides would be waited for in vain
        raise ValueError(f"{TOPIC} has {there} records, and {records} were written")


def close_windows(ground: Ground, records: int) -> None:
    """One record in each partition, so late that all windows before it are over."""
    writer = load.producer(ground)
    at_ms = (BEGIN + records // PER_SECOND + 2 * (WINDOW_S + LATE_S)) * 1000
    for partition in range(PARTITIONS):
        load.put(writer, TOPIC, value_of(0), struct.pack(">i", partition), partition, at_ms)
    load.flush(writer)


def watch(
    done: Callable[[], int],
    cpu: Cpu,
    records: int,
    runs: Callable[[], bool] = lambda: True,
    timeout_s: float = TIMEOUT_S,
) -> Worked:
    """Watch a side until it is done with all records; one that has ended, or is too slow, is the end."""
    warm: list[tuple[float, int, float]] = []
    last: list[tuple[float, int, float]] = []
    count = 0

    def is_over() -> bool:
        nonlocal count
        count, now, used = done(), time.monotonic(), cpu.seconds()
        if count >= records * WARM_SHARE and not warm:
            warm.append((now, count, used))
        if count >= records:
            last.append((now, count, used))
        elif not runs():
            raise RuntimeError(f"it has ended with {count} of {records} records done")
        return bool(last)

    try:
        wait_for("all records", is_over, timeout_s)
    except TimeoutError as error:
        raise TimeoutError(f"{count} of {records} records were done after {timeout_s:g} s") from error
    (first_at, first, first_used), (at, count, used) = warm[0], last[0]
    if count == first:
        raise ValueError("all was done at once: more records are needed")
    return Worked(count - first, at - first_at, used - first_used)


def sums(ground: Ground, topic: str) -> Sums:
    """What a side has written until now, for readers of committed records; raises if it cannot be read."""
    settings: Mapping[str, Any] = {
        **ground.home.admin_access(ACTIVE).librdkafka(),
        "group.id": "bench-reader",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    reader = Consumer(dict(settings))
    found: Sums = Counter()
    ended: set[int] = set()
    trouble = "none was told of"
    give_up_at = time.monotonic() + READ_TIMEOUT_S
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    try:
        while len(ended) < PARTITIONS:
            if time.monotonic() > give_up_at:
                raise TimeoutError(unread(topic, ended, trouble))
            for message in reader.consume(10_000, 1.0):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                elif error is not None:  # librdkafka goes on by itself, or does not
                    trouble = error.str()
                else:
                    told = json.loads(message.value())
                    begin = told["begin"].replace(".000Z", "Z").replace("Z", ".000Z")
                    found[told["turbine"], begin, int(told["kw"]), told["n"]] += 1
    finally:
        reader.close()
    return found


def unread(topic: str, ended: set[int], trouble: str) -> str:
    """What is missing when a topic could not be read to its end in time."""
    left = ", ".join(str(partition) for partition in range(PARTITIONS) if partition not in ended)
    return (
        f"{topic}: the ends of partitions {left} were not reached within {READ_TIMEOUT_S:g} s;"
        f" the reader's last trouble: {trouble}"
    )


def measure(ground: Ground, records: int, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Both sides in turns; gives their rounds."""
    sides: list[Side] = [Ours(ground), KafkaStreams(ground)]
    declared: dict[str, Any] = {TOPIC: {"partitions": PARTITIONS}}
    for side in sides:
        for number in range(rounds):
            declared |= side.topics(number)
    ground.write_file(declared)
    ground.run("apply", "--yes")
    say(f"writing {records} readings")
    write_backlog(ground, records)
    wanted = expected(records)
    found: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides}
    for number in range(rounds):
        for side in sides:
            with _running(side, number):
                runs = partial(_runs, side)
                worked = watch(partial(side.done, number), Cpu(side.processes), records, runs)
            found[side.name].append(worked.as_json())
            say(f"{side.name}, round {number}: {found[side.name][-1]}")
    # Not before: who has not read all else yet would find it too late.
    close_windows(ground, records)
    for side in sides:
        with _running(side, rounds - 1):
            say(f"{side.name}: comparing {len(wanted)} sums")
            compare(ground, f"{side.name}-{rounds - 1}", wanted, partial(_runs, side))
    return found


def _runs(side: Side) -> bool:
    return bool(side.processes())


def compare(ground: Ground, topic: str, wanted: Sums, runs: Callable[[], bool]) -> None:
    """Return when a topic has all sums once; others in it, or none that come, are the end."""
    found: Sums = Counter()

    def are_all_there() -> bool:
        nonlocal found
        found = sums(ground, topic)
        if found - wanted:
            raise ValueError(
                f"{topic} has sums that it should not have: {list((found - wanted).items())[:3]}"
            )
        if found != wanted and not runs():
            raise TimeoutError("who should write them has ended")
        return found == wanted

    try:
        wait_for("all sums", are_all_there, COMPARE_TIMEOUT_S)
    except TimeoutError as error:
        missing = list(wanted - found)
        raise ValueError(
            f"{topic} lacks {len(missing)} of {len(wanted)} sums ({error}): {missing[:3]}"
        ) from error


@contextmanager
def _running(side: Side, number: int) -> Iterator[None]:
    try:
        side.start(number)
        yield
    finally:
        side.stop()
