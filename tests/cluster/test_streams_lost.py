"""The site at which jobs run is lost, with records and results that the other one never got: jobs go back."""

from __future__ import annotations

import json
import struct
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.cluster import jobs
from tests.cluster.conftest import Bus, MakeBus
from tests.cluster.moving import kill_site
from tests.cluster.test_moves import link_state

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
    records = ((struct.pack(">i", number % KEYS), json.dumps({"n": number}).encode()) for number in numbers)
    jobs.send(bus, "shop", site, "readings", records)


def table(bus: Bus) -> dict[int, int]:
    return {int(key): value["n"] for key, value in jobs.table(bus, "latest").items()}


def sums(bus: Bus) -> dict[int, tuple[int, int]]:
    """The last word on each key."""
    return {row["key"]: (row["c"], row["s"]) for row in jobs.values(bus, "sums")}


def lake(bus: Bus, spark: SparkSession) -> Counter[tuple[int, int, int]]:
    found = jobs.lake(spark, bus.directory / ".twinlog/streams/days/lake")
    rows = found.collect() if found is not None else []
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
    jobs.until(bus, "the table", lambda: len(table(bus)) == KEYS, DEADLINE_S)
    jobs.until(bus, "all copies", lambda: len(jobs.values(bus, "copies")) >= len(BOTH), DEADLINE_S)
    jobs.until(bus, "all sums", lambda: sums(bus) == expected_sums([*BOTH]), DEADLINE_S)
    jobs.until(
        bus,
        "the standby",
        lambda: all(not row["lag_records"] for row in bus.json("link", "status")["topics"]),
        DEADLINE_S,
    )
    bus.done("link", "pause")
    jobs.until(bus, "the link is paused", lambda: link_state(bus) == "paused", DEADLINE_S)
    send(bus, "a", LOST)
    known = [*BOTH, *LOST]
    jobs.until(bus, "the lost ones are summed up", lambda: sums(bus) == expected_sums(known), DEADLINE_S)
    jobs.until(
        bus, "the lost ones are in the table", lambda: max(table(bus).values()) == LOST[-1], DEADLINE_S
    )
    jobs.until(
        bus, "the lost ones are copied", lambda: len(jobs.values(bus, "copies")) >= len(known), DEADLINE_S
    )
    jobs.until(
        bus, "the lost ones are in the lake", lambda: lake(bus, spark).total() == len(known), DEADLINE_S
    )
    kill_site(bus, "a")
    bus.done("link", "resume")
    bus.done("promote")
    send(bus, "b", NEW)
    kept = [*BOTH, *NEW]
    jobs.until(
        bus, "the table at b", lambda: table(bus) == {number % KEYS: number for number in kept}, DEADLINE_S
    )
    jobs.until(bus, "the sums at b", lambda: sums(bus) == expected_sums(kept), DEADLINE_S)
    jobs.until(bus, "the lake at b", lambda: lake(bus, spark).total() >= len(kept), DEADLINE_S)
    jobs.until(bus, "the copies at b", lambda: len(jobs.values(bus, "copies")) >= len(kept), DEADLINE_S)
    there = Counter(
        (record["partition"], record["offset"], json.loads(record["value"])["n"])
        for record in jobs.read(bus, "readings")
    )
    assert lake(bus, spark) == there
    copies = jobs.values(bus, "copies")
    assert {(one["part"], one["place"], one["n"]) for one in copies} == set(there)
    log = (bus.directory / ".twinlog/streams/streams.log").read_text()
    assert "rows of records that the failover lost" in log
    assert "latest goes back from batch" in log
    bus.done("stream", "down")
    bus.done("link", "down")
