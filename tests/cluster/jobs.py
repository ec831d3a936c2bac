"""Hands of the tests of jobs: write numbered records, wait, read topics, tables and lakes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tests.cluster.conftest import Bus
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import NoRoom, Sender, Settings
from twinlog.wire.receiver import Received, Receiver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOOK_AGAIN_S = 1.0
SEND_TIMEOUT_S = 120.0


def send(bus: Bus, user: str, site: str, topic: str, records: Iterable[tuple[bytes, bytes]]) -> None:
    """Write records, keys first, and return when all are acknowledged."""
    sender = Sender(bus.home().user_access(user, site), timeout_s=SEND_TIMEOUT_S, tuning=Tuning())
    for key, value in records:
        while True:
            try:
                sender.queue(topic, value, key, (), None, None, None)
                break
            except NoRoom:
                sender.serve(0.1)
    assert sender.flush(SEND_TIMEOUT_S) == 0
    sender.close()


def until(
    bus: Bus, what: str, wanted: Callable[[], bool], timeout_s: float, look_again_s: float = LOOK_AGAIN_S
) -> None:
    """Return when something is so; else say how the jobs are."""
    deadline, pause = time.monotonic() + timeout_s, threading.Event()
    while not wanted():
        assert time.monotonic() < deadline, f"{what}:\n{bus.run('stream', 'status').stdout}\n{log(bus)}"
        pause.wait(look_again_s)


def log(bus: Bus) -> str:
    """The last of what the jobs have told."""
    return (bus.directory / ".twinlog/streams/streams.log").read_text()[-4000:]


def read(bus: Bus, topic: str, *more: str) -> list[dict[str, Any]]:
    """The committed records of a topic."""
    return [json.loads(line) for line in bus.done("consume", topic, "--json", *more).splitlines()]


def values(bus: Bus, topic: str) -> list[dict[str, Any]]:
    """Their values, of objects in JSON."""
    return [json.loads(record["value"]) for record in read(bus, topic)]


def received(bus: Bus, site: str, topic: str, partitions: int) -> Iterator[Received]:
    """The committed records of a topic up to its end, for tests with very many."""
    settings: Settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
    access = bus.home().admin_access(site)
    reader = Receiver(access, group="tests", start="earliest", tuning=Tuning(), settings=settings)
    try:
        reader.assign({(topic, number): 0 for number in range(partitions)})
        while len(reader.ended) < partitions:
            yield from reader.take(10_000, 1.0)
    finally:
        reader.close()


def told(bus: Bus, query: str) -> dict[str, Any]:
    """What the status says of a query."""
    rows = json.loads(bus.run("stream", "status", "-o", "json").stdout)
    found: dict[str, Any] = next(row for row in rows if row["query"] == query)
    return found


def table(bus: Bus, name: str) -> dict[str, Any]:
    """The values of a table by key; nothing if it was never kept."""
    ended = bus.run("table", "scan", name, "-o", "json")
    return {row["key"]: row["value"] for row in json.loads(ended.stdout)} if ended.returncode == 0 else {}


def lake(spark: SparkSession, path: Path) -> DataFrame | None:
    """The rows of a Delta table as any reader of Parquet finds them; None before its first commit."""
    files = [str(path / name) for name in _live_files(path)]
    return spark.read.option("basePath", str(path)).parquet(*files) if files else None


def _live_files(path: Path) -> list[str]:
    """The files that the newest version of a Delta table consists of."""
    files: dict[str, None] = {}
    for version in sorted(path.glob("_delta_log/*.json")):
        for line in version.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files[unquote(action["add"]["path"])] = None
            if "remove" in action:
                files.pop(unquote(action["remove"]["path"]), None)
    return list(files)
