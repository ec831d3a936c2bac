"""One measurement of reading, as kafka-consumer-perf-test makes it.

For `twinlog perf consume` and `twinlog topic advise`. Records are counted and thrown away. It ends when
enough have come, or when none has come for a while; the caller sees from the numbers which it was.
Where nobody answers, before or then, or a partition has no leader that answers, it fails: that no record
came would be no measurement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from twinlog.perf.figures import Interval, Read
from twinlog.wire.bulk import BulkReader
from twinlog.wire.driver import Settings

PIECE_RECORDS = 2000
TURN_S = 0.1
CHECK_S = 10.0

Told = Callable[[int, Interval, float, Interval], None]


@dataclass(frozen=True)
class ReadOptions:
    """What is to be read."""

    topics: tuple[str, ...]  # a name that begins with ^ is a regular expression
    records: int
    silence_s: float = 10.0  # it ends when nothing has come for so long
    interval_s: float = 5.0
    with_statistics: bool = False


def read(settings: Settings, options: ReadOptions, told: Told | None = None) -> Read:
    """Read until enough has come; `told` hears every interval: its end, itself, joining in it, all so far."""
    reader = BulkReader(settings, with_statistics=options.with_statistics)
    try:
        reader.check(options.topics, CHECK_S)
        found = _Run(reader, options, told).run()
        if found.total.records < options.records:
            reader.check_leaders(options.topics, CHECK_S)
        return found
    finally:
        reader.close()


class _Run:
    """The state of one measurement."""

    def __init__(self, reader: BulkReader, options: ReadOptions, told: Told | None) -> None:
        self._reader = reader
        self._options = options
        self._told = told
        self._began_s = time.monotonic()
        self._began_ms = time.time_ns() // 1_000_000
        self._left_s: float | None = self._began_s  # since when it has no partitions
        self._joining_s = 0.0
        self._windows: list[tuple[int, Interval, float]] = []

    def run(self) -> Read:
        """All of it."""
        self._reader.subscribe(self._options.topics, self._came, self._went)
        records, size_bytes = 0, 0
        last_s = window_s = self._began_s
        window_records, window_bytes, window_joining_s = 0, 0, 0.0
        while records < self._options.records:
            more, more_bytes = self._reader.take(min(PIECE_RECORDS, self._options.records - records), TURN_S)
            now_s = time.monotonic()
            if more:
                last_s = now_s
                records += more
                size_bytes += more_bytes
            elif now_s - last_s > self._options.silence_s:
                break
            if more and now_s - window_s >= self._options.interval_s:
                interval = Interval(records - window_records, size_bytes - window_bytes, now_s - window_s)
                self._tell(interval, self._joining_s - window_joining_s, Interval(records, size_bytes, now_s))
                window_s, window_records, window_bytes = now_s, records, size_bytes
                window_joining_s = self._joining_s
        return Read(
            total=Interval(records, size_bytes, time.monotonic() - self._began_s),
            began_ms=self._began_ms,
            ended_ms=time.time_ns() // 1_000_000,
            joining_s=self._joining_s,
            windows=tuple(self._windows),
            wanted=self._options.records,
            statistics=dict(self._reader.statistics),
        )

    def _tell(self, interval: Interval, joining_s: float, so_far: Interval) -> None:
        ended_ms = time.time_ns() // 1_000_000
        self._windows.append((ended_ms, interval, joining_s))
        if self._told is not None:
            self._told(ended_ms, interval, joining_s, so_far)

    def _came(self) -> None:
        if self._left_s is not None:
            self._joining_s += time.monotonic() - self._left_s
        self._left_s = None

    def _went(self) -> None:
        self._left_s = time.monotonic()
