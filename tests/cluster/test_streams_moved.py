"""Jobs at work when the sites change roles go on at the other site: nothing is lost or repeated."""

from __future__ import annotations

import json
import struct
from collections import Counter

import pytest

from tests.cluster import jobs
from tests.cluster.conftest import Bus, MakeBus

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
  readings: {partitions: 4}
  copies: {partitions: 2}
  dead: {}
users:
  shop: {produce: [readings]}
streams:
  latest:
    kind: table
    read: &readings {r: {topic: readings, key: int, value: {format: json, fields: {n: long}}}}
    dead_letters: dead
    every: 100ms
    most_records: 1000
  copies:
    read: *readings
    sql: SELECT key, n FROM r WHERE n % 3 <> 0
    write: {topic: copies, key: {column: key, format: int}}
    dead_letters: dead
    every: 100ms
    most_records: 1000
"""
BEFORE, RECORDS, KEYS = 30_000, 40_000, 1000
DEADLINE_S = 300.0


def send(bus: Bus, site: str, numbers: range) -> None:
    records = ((struct.pack(">i", number % KEYS), json.dumps({"n": number}).encode()) for number in numbers)
    jobs.send(bus, "shop", site, "readings", records)


def copied(bus: Bus) -> list[int]:
    return [one["n"] for one in jobs.values(bus, "copies")]


def table(bus: Bus) -> dict[str, int]:
    return {key: value["n"] for key, value in jobs.table(bus, "latest").items()}


def test_running_jobs_lose_and_repeat_nothing_when_the_sites_change_roles(make_bus: MakeBus) -> None:
    bus = make_bus(FILE)
    bus.done("link", "up")
    send(bus, "a", range(BEFORE))
    bus.done("stream", "up")
    jobs.until(bus, "work has begun", lambda: len(copied(bus)) > 0, DEADLINE_S)
    bus.done("switchover")
    send(bus, "b", range(BEFORE, RECORDS))
    wanted = [number for number in range(RECORDS) if number % 3 != 0]
    jobs.until(bus, "all copies", lambda: len(copied(bus)) >= len(wanted), DEADLINE_S)
    assert Counter(copied(bus)) == Counter(wanted)
    latest = {str(number % KEYS): number for number in range(RECORDS)}
    jobs.until(bus, "the table", lambda: table(bus) == latest, DEADLINE_S)
    bus.done("stream", "down")
    bus.done("link", "down")
