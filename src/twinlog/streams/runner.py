"""The jobs of a bus as a program: `python -m twinlog.streams.runner FILE`, started by `twinlog stream up`.

One Spark application for all jobs. It runs until SIGTERM. A query that ends is started again, after a
pause that grows with each failure; what it had not finished it does again, and its sink sees to it that
nothing is there twice. If Spark itself dies, the program begins again from nothing. When another site
becomes active, all queries are started again there: offsets are the same on both sites, so checkpoints
go on fitting, as far as a failover has lost nothing (`retreat`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlog.errors import TwinlogError
from twinlog.mirror.link import need_spark
from twinlog.sites.home import Home
from twinlog.sites.page import served
from twinlog.spec.effective import largest_message_bytes
from twinlog.spec.implied import STREAMS_USER
from twinlog.spec.load import load
from twinlog.spec.streams import Kind
from twinlog.streams import checking
from twinlog.streams.board import Board, News, behind_records, late_records, write_board
from twinlog.streams.metrics import BoardCollector
from twinlog.streams.places import background
from twinlog.streams.planning import Mode, endless_slots, mode_of
from twinlog.streams.progress import end_left_open
from twinlog.wire.clientfiles.tuning import Tuning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from twinlog.streams.queries import Ground

TURN_S = 1.0
AGAIN_S = 5.0  # behind a Spark that died
PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
_NAMED = re.compile(r"[\w.]+(Error|Exception|Failed|Outcome): ")
SPARE_SLOTS = 2  # for batches, beside tasks that never end


@dataclass
class _Run:
    """One query under the runner's care."""

    news: News
    query: StreamingQuery | None = None
    note_ends: Callable[[int], None] | None = None
    is_ending: bool = False  # it was told to stop, and has not yet
    again_at: float = 0.0
    is_real_time: bool = False  # then every batch that Spark tells of was run, an empty one too
    heard_at: str = ""  # the time of the last trigger that Spark told of
    at_end_at: float = 0.0


class SparkDied(Exception):
    """Spark's own process is gone."""


def run(home: Home, stop: threading.Event) -> None:
    """Run all jobs until told to stop; raises SparkDied if Spark does not last so long."""
    need_spark()
    process = background(home)
    with process.alone():
        spark = _spark(home)
        runner = _Runner(home, spark)
        collector = BoardCollector(home.bus.bus, runner.board)
        with served(home.bus.pipeline.metrics, collector, "pipeline"):
            while not stop.is_set():
                if not _is_alive(spark):
                    raise SparkDied
                runner.turn()
                write_board(process.report, runner.board)
                stop.wait(TURN_S)
        runner.end()
        spark.stop()


def _is_alive(spark: SparkSession) -> bool:
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:  # nobody is there to say so
        return False


class _Runner:
    """Keeps every query running at the active site."""

    def __init__(self, home: Home, spark: SparkSession) -> None:
        from twinlog.streams import queries, retreat  # noqa: PLC0415  need pyspark

        self._queries = queries
        self._settle = retreat.settle
        self._home = home
        self._spark = spark
        self._ground: Ground | None = None
        self._term = 0
        self.board = Board(pid=os.getpid())
        self._runs = [
            _Run(News(query, name), is_real_time=query == name and mode_of(job)[0] is Mode.REAL_TIME)
            for name, job in home.bus.streams.items()
            for query in queries.names(name, job)
        ]
        self.board.queries = [one.news for one in self._runs]

    def turn(self) -> None:
        """Look after every query once."""
        state = self._home.state()
        if (state.active, state.term) != (self.board.site, self._term):
            self.end()
            self._ground = self._at(state.active)
            self.board.site, self._term = state.active, state.term
            _log(f"jobs run at site {state.active}")
        now = time.monotonic()
        for one in self._runs:
            if one.query is None and now >= one.again_at:
                self._start(one, now)
            elif one.query is not None and one.is_ending:
                _await_end(one, one.query)
            elif one.query is not None:
                self._look(one, one.query, now)

    def _look(self, one: _Run, query: StreamingQuery, now: float) -> None:
        try:
            if query.isActive:
                _hear(one, query, now)
            else:
                self._failed(one, str(query.exception() or "it ended"), now)
        except Exception as error:  # py4j's, of several kinds: the next turn asks whether Spark is there
            self._failed(one, str(error), now)

    def end(self) -> None:
        """Stop all queries; a batch that is under way is run again the next time."""
        running = [one for one in self._runs if one.query is not None]
        if running:
            with ThreadPoolExecutor(len(running)) as pool:  # each may wait for a site that is gone
                list(pool.map(_stop, running))
        for one in self._runs:
            one.news.state = "waiting"
            one.again_at = 0.0

    def _at(self, site: str) -> Ground:
        tuning = Tuning(message_max_bytes=largest_message_bytes(self._home.bus, site))
        access = self._home.user_access(STREAMS_USER, site)
        try:
            for name in end_left_open(access):
                _log(f"{name} was left open, and is ended")
        except TwinlogError as error:  # then each lane does it when its turn comes
            _log(f"what was left open could not be ended: {error}")
        return self._queries.Ground(self._spark, self._home, access, tuning)

    def _start(self, one: _Run, now: float) -> None:
        assert self._ground is not None
        try:
            done = self._settle(self._spark, self._home, one.news.job, one.news.query)
            if done:
                _log(f"{one.news.query} {done}")
            begun = self._queries.start(self._ground, one.news.job, one.news.query)
            one.query, one.note_ends = begun.query, begun.note_ends
        except Exception as error:  # Spark's, of many kinds: all mean that it does not run
            self._failed(one, str(error), now)
            return
        one.news.state, one.heard_at, one.at_end_at = "running", "", now
        _log(f"{one.news.query} runs")

    def _failed(self, one: _Run, why: str, now: float) -> None:
        one.query = None
        one.news.failures += 1
        pause = PAUSES_S[min(one.news.failures, len(PAUSES_S)) - 1]
        one.again_at = now + pause
        one.news.state, one.news.last_error = "waiting", _gist(why)
        _log(f"{one.news.query} ended, and is started again in {pause:g} s: {why}")


def _stop(one: _Run) -> None:
    assert one.query is not None
    one.is_ending = True
    with suppress(Exception):  # a query that failed meanwhile is ended as well
        one.query.stop()
    _await_end(one, one.query)


def _await_end(one: _Run, query: StreamingQuery) -> None:
    """Let a query go that has stopped; until then another must not use its checkpoint."""
    try:
        ended = not query.isActive
    except Exception:  # py4j's: Spark is gone, and the query with it
        ended = True
    if ended:
        one.query, one.is_ending = None, False


def _hear(one: _Run, query: StreamingQuery, now: float) -> None:
    """Take what Spark says of a query into the news."""
    news = one.news
    for progress in _told(query, one.heard_at):
        one.heard_at, news.batch = progress["timestamp"], progress["batchId"]
        rows = progress.get("numInputRows") or 0
        news.records += rows
        if one.note_ends is not None and (rows or one.is_real_time):
            one.note_ends(news.batch)
        news.late_records += late_records(progress)
        news.failures, news.last_error = 0, ""
        news.records_per_s = progress.get("processedRowsPerSecond")
        news.behind_records = behind_records(progress)
    if news.behind_records == 0:
        one.at_end_at = now
    news.behind_s = None if news.behind_records is None else round(now - one.at_end_at, 3)


def _told(query: StreamingQuery, since: str) -> list[dict[str, Any]]:
    """What Spark has told of a query since a trigger, the oldest first.

    Told apart by times and not by numbers: while nothing comes, Spark tells of the next batch as if it were
    an empty one. Asked from the newest on: pyspark's `recentProgress` fetches the last hundred, with all
    their figures, each time.
    """
    every, found = query._jsq.recentProgress(), []
    for number in range(len(every) - 1, -1, -1):
        if every[number].timestamp() <= since:
            break
        found.append(json.loads(every[number].json()))
    return found[::-1]


def _gist(text: str) -> str:
    """The line of an error that says most: in Python's traces the last that names one, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if _NAMED.match(line)]
    return (named[-1:] or lines[:1] or [""])[0]


def _spark(home: Home) -> SparkSession:
    from twinlog.streams import session  # noqa: PLC0415  only the runner itself needs Spark

    with_lake = any(job.kind is Kind.LAKE for job in home.bus.streams.values())
    needed = endless_slots(home.bus) + SPARE_SLOTS
    return session.start(home.bus.pipeline, home.bus.bus, needed, with_lake=with_lake)


def _log(text: str) -> None:
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z {text}", flush=True)


def main(file: str) -> int:
    """Run the jobs of the bus that this file declares."""
    path = Path(file)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        loaded = load(path, os.environ)
        checking.check(loaded)
        run(Home(loaded.bus, path), stop)
    except SparkDied:
        _log(f"Spark died, and is started again in {AGAIN_S:g} s")
        stop.wait(AGAIN_S)
        if not stop.is_set():
            # pyspark keeps what it knows of the dead one in many places; a new program knows nothing.
            os.execv(sys.executable, [sys.executable, "-m", "twinlog.streams.runner", file])
    except TwinlogError as error:
        _log(f"error: {error}" + (f" (hint: {error.hint})" if error.hint else ""))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
