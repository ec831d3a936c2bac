"""The site at which jobs run is lost, with records and results that the other one never got: jobs go back."""

from __future__ import annotations

import json
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.test_moves import kill_site
from tests.cluster.test_streams import live_files
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import NoRoom, Sender

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

FILE = """\
bus: mill
kafka:
  offsets.topic.num.partitions: 3
  transaction.state.log.num.partitions: 3
sites:
  a: {brokers: 1}
  b: {brokers: 1}
topics:
  readings: {partitions: 2}
  copies: {partitions: 2}
  sums: {}
  dead: {}
users:
  shop: {produce: [readings]}
pipeline: {memory: 700MiB}
streams:
  latest:
    kind: table
    read: &readings {r: {topic: readings, key: int, value: {format: json, fields: {n: long}}}}
    dead_letters: dead
    every: 200ms
  copies:
    read: *readings
    sql: SELECT key, n, _partition AS part, _offset AS place FROM r
    write: {topic: copies, key: {column: key, format: int}}
    dead_letters: dead
    every: 200ms
  sums:
    kind: aggregate
    read: *readings
    sql: SELECT key, count(*) AS c, sum(n) AS s FROM r GROUP BY key
    write: {topic: sums}
    dead_letters: dead
    every: 200ms
  days:
    kind: lake
    read: *readings
    dead_letters: dead
    every: 200ms
"""
BOTH, LOST, NEW = range(2000), range(2000, 2600), range(10_000, 11_000)
KEYS = 100
DEADLINE_S = 240.0


def send(bus: Bus, site: str, numbers: range) -> None:
    sender = Sender(bus.home().user_access("shop", site), timeout_s=120.0, tuning=Tuning())
    for number in numbers:
        while True:
            try:
                key = struct.pack(">i", number % KEYS)
                sender.queue("readings", json.dumps({"n": number}).encode(), key, (), None, None, None)
                break
            except NoRoom:
                sender.serve(0.1)
    assert sender.flush(120.0) == 0
    sender.close()


def until(what: str, wanted: Callable[[], bool], bus: Bus) -> None:
    pause, deadline = threading.Event(), time.monotonic() + DEADLINE_S
    while not wanted():
        log = (bus.directory / ".twinlog/streams/streams.log").read_text()[-3000:]
        assert time.monotonic() < deadline, f"{what}: {bus.run('stream', 'status').stdout}\n{log}"
        pause.wait(1.0)


def values(bus: Bus, topic: str) -> list[dict[str, Any]]:
    lines = bus.done("consume", topic, "--json").splitlines()
    return [json.loads(json.loads(line)["value"]) for line in lines]


def table(bus: Bus) -> dict[int, int]:
    found = bus.run("table", "scan", "latest", "-o", "json")
    rows = json.loads(found.stdout) if found.returncode == 0 else []
    return {int(row["key"]): row["value"]["n"] for row in rows}


def sums(bus: Bus) -> dict[int, tuple[int, int]]:
    """The last word on each key."""
    return {row["key"]: (row["c"], row["s"]) for row in values(bus, "sums")}


def lake(bus: Bus, spark: SparkSession) -> Counter[tuple[int, int, int]]:
    path = Path(bus.directory / ".twinlog/streams/days/lake")
    files = [str(path / name) for name in live_files(path)]
    rows = spark.read.option("basePath", str(path)).parquet(*files).collect() if files else []
    return Counter((row["_partition"], row["_offset"], row["n"]) for row in rows)


def expected_sums(numbers: list[int]) -> dict[int, tuple[int, int]]:
    return {
        key: (len(own), sum(own))
        for key in range(KEYS)
        if (own := [number for number in numbers if number % KEYS == key])
    }


def test_jobs_go_back_to_what_the_promoted_site_has(make_bus: MakeBus, spark: SparkSession) -> None:
    bus = make_bus(FILE)
    bus.done("link", "up")
    bus.done("stream", "up")
    send(bus, "a", BOTH)
    until("the table", lambda: len(table(bus)) == KEYS, bus)
    until("all copies", lambda: len(values(bus, "copies")) >= len(BOTH), bus)
    until("all sums", lambda: sums(bus) == expected_sums([*BOTH]), bus)
    until(
        "the standby",
        lambda: all(not row["lag_records"] for row in bus.json("link", "status")["topics"]),
        bus,
    )
    bus.done("link", "pause")
    send(bus, "a", LOST)
    known = [*BOTH, *LOST]
    until("the lost ones are summed up", lambda: sums(bus) == expected_sums(known), bus)
    until("the lost ones are in the table", lambda: max(table(bus).values()) == LOST[-1], bus)
    until("the lost ones are copied", lambda: len(values(bus, "copies")) >= len(known), bus)
    until("the lost ones are in the lake", lambda: lake(bus, spark).total() == len(known), bus)
    kill_site(bus, "a")
    bus.done("link", "resume")
    bus.done("promote")
    send(bus, "b", NEW)
    kept = [*BOTH, *NEW]
    until("the table at b", lambda: table(bus) == {number % KEYS: number for number in kept}, bus)
    until("the sums at b", lambda: sums(bus) == expected_sums(kept), bus)
    until("the lake at b", lambda: lake(bus, spark).total() >= len(kept), bus)
    until("the copies at b", lambda: len(values(bus, "copies")) >= len(kept), bus)
    there = Counter(
        (record["partition"], record["offset"], json.loads(record["value"])["n"])
        for record in map(json.loads, bus.done("consume", "readings", "--json").splitlines())
    )
    assert lake(bus, spark) == there
    copies = values(bus, "copies")
    assert {(one["part"], one["place"], one["n"]) for one in copies} == set(there)
    log = (bus.directory / ".twinlog/streams/streams.log").read_text()
    assert "rows of records that the failover lost" in log
    assert "latest goes back from batch" in log
    bus.done("stream", "down")
    bus.done("link", "down")
