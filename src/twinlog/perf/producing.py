"""One measurement of writing, as kafka-producer-perf-test makes it.

For `twinlog perf produce` and `twinlog topic advise`. Everything is made before the clock starts. A record's
latency is counted from when it was due, at a target rate, and from when it was first offered to the
driver otherwise; of a piece that is late all records count from the first one's turn, a millisecond
too much at most. Records that the cluster refuses are counted and do not end the measurement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from twinlog.perf.figures import Interval, Meter, Written
from twinlog.perf.schedule import Schedule
from twinlog.wire.bulk import BulkSender, Piece
from twinlog.wire.driver import Settings

ROOM_S = 0.01  # how long it waits for room before it looks again
FLUSH_TURN_S = 0.2
CHECK_S = 10.0
TRANSACTION_S = 60.0
SERVE_EVERY_S = 0.005

Told = Callable[[Interval], None]


@dataclass(frozen=True)
class WriteOptions:
    """What is to be written, and how."""

    topic: str
    records: int
    pieces: Iterator[Piece] = field(repr=False)
    record_bytes: int | None = None  # None if their sizes differ
    rate_per_s: float | None = None
    warmup_records: int = 0
    interval_s: float = 5.0
    longest_s: float | None = None  # end then, whether all were sent or not
    transaction_s: float | None = None
    with_statistics: bool = False


def write(settings: Settings, options: WriteOptions, told: Told | None = None) -> Written:
    """Write the records, wait for their answers, and say what it came to; `told` hears every interval."""
    sender = BulkSender(
        settings, with_statistics=options.with_statistics, with_sizes=options.record_bytes is None
    )
    try:
        sender.check(options.topic, CHECK_S)
        if options.transaction_s is not None:
            sender.begin_transactions(TRANSACTION_S)
        return _Run(sender, options, told).run()
    finally:
        sender.close()


class _Run:
    """The state of one measurement."""

    def __init__(self, sender: BulkSender, options: WriteOptions, told: Told | None) -> None:
        self._sender = sender
        self._options = options
        self._told = told
        self._windows: list[Interval] = []
        self._sent = 0
        self._piece: Piece = []  # what is left of the current one
        self._sized_bytes = 0
        now_s = time.monotonic()
        self._meter = Meter(now_s, options.warmup_records)
        self._schedule = Schedule(options.rate_per_s, now_s)

    def run(self) -> Written:
        """All of it."""
        while self._sent < self._options.records and not self._is_over(time.monotonic()):
            if self._options.transaction_s is None:
                self._send_until(None)
            else:
                self._sender.begin()
                self._send_until(time.monotonic() + self._options.transaction_s)
                self._sender.commit(TRANSACTION_S)
            self._count()
        while self._sender.flush(FLUSH_TURN_S):
            self._count()
        self._count()
        return self._ended()

    def _send_until(self, end_s: float | None) -> None:
        """Send what is due until all is sent, or until a moment."""
        served_s = time.monotonic()
        while self._sent < self._options.records:
            now_s = time.monotonic()
            if self._is_over(now_s) or (end_s is not None and now_s >= end_s):
                return
            if not self._piece:
                self._piece = next(self._options.pieces)
            most = min(len(self._piece), self._options.records - self._sent)
            count = self._schedule.due(self._sent, now_s, most)
            if count:
                self._send(self._piece[:count] if count < len(self._piece) else self._piece)
                self._piece = self._piece[count:]
                if now_s - served_s < SERVE_EVERY_S:
                    continue
            self._sender.serve(0 if count else self._schedule.wait_s(self._sent, now_s))
            served_s = now_s
            self._count()

    def _send(self, piece: Piece) -> None:
        began_s = time.monotonic()
        late_s = self._schedule.late_s(self._sent, began_s)
        self._sent += len(piece)
        left = self._sender.queue(self._options.topic, piece, late_s)
        while left:
            self._sender.serve(ROOM_S)
            self._count()
            left = self._sender.queue(self._options.topic, left, late_s + time.monotonic() - began_s)

    def _count(self) -> None:
        latencies_s, now_s = self._sender.taken(), time.monotonic()
        if latencies_s:
            self._meter.count(latencies_s, self._size_of(len(latencies_s)), now_s)
        window = self._meter.window(now_s, self._options.interval_s)
        if window is not None:
            self._windows.append(window)
            if self._told is not None:
                self._told(window)

    def _size_of(self, records: int) -> int:
        if self._options.record_bytes is not None:
            return records * self._options.record_bytes
        fresh = self._sender.size_bytes - self._sized_bytes
        self._sized_bytes = self._sender.size_bytes
        return fresh

    def _is_over(self, now_s: float) -> bool:
        longest_s = self._options.longest_s
        return longest_s is not None and now_s - self._meter.began_s >= longest_s

    def _ended(self) -> Written:
        now_s, steady = time.monotonic(), self._meter.steady
        return Written(
            total=self._meter.total(now_s),
            histogram=self._meter.histogram,
            windows=tuple(self._windows),
            failed=self._sender.failed,
            reason=self._sender.reason,
            hint=self._sender.hint,
            target_per_s=self._options.rate_per_s,
            steady=None if steady is None else (steady.total(now_s), steady.histogram),
            statistics=self._sender.counted(),
        )
