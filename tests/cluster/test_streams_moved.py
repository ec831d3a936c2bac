"""Jobs at work when the sites change roles go on at the other site: nothing is lost or repeated."""

from __future__ import annotations

import json
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import NoRoom, Sender

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


def copied(bus: Bus) -> list[int]:
    lines = bus.done("consume", "copies", "--json").splitlines()
    return [json.loads(json.loads(line)["value"])["n"] for line in lines]


def table(bus: Bus) -> dict[str, Any]:
    return {row["key"]: row["value"]["n"] for row in bus.json("table", "scan", "latest")}


def test_running_jobs_lose_and_repeat_nothing_when_the_sites_change_roles(make_bus: MakeBus) -> None:
    bus = make_bus(FILE)
    bus.done("link", "up")
    send(bus, "a", range(BEFORE))
    bus.done("stream", "up")
    until("work has begun", lambda: len(copied(bus)) > 0, bus)
    bus.done("switchover")
    send(bus, "b", range(BEFORE, RECORDS))
    wanted = [number for number in range(RECORDS) if number % 3 != 0]
    until("all copies", lambda: len(copied(bus)) >= len(wanted), bus)
    assert Counter(copied(bus)) == Counter(wanted)
    latest = {str(number % KEYS): number for number in range(RECORDS)}
    until("the table", lambda: table(bus) == latest, bus)
    bus.done("stream", "down")
    bus.done("link", "down")
