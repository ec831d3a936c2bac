"""What a measurement comes to: counts, rates and latencies, of all of it and of each interval. Pure.

`Meter` is told what happened and when; the runs of `perf` hand it on, `lines` prints it as Kafka's tools do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twinlog.perf.histogram import Histogram, Sums

MEBIBYTE = 1024 * 1024
PERCENTS = (50.0, 95.0, 99.0, 99.9)  # in the lines, as Kafka's tools have them
JSON_PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)


@dataclass(frozen=True)
class Interval:
    """What was measured between two moments. Latencies are None where nothing was answered."""

    records: int
    size_bytes: int
    seconds: float
    mean_ms: float | None = None
    max_ms: float | None = None

    @property
    def records_per_s(self) -> float:
        """How many a second."""
        return self.records / self.seconds if self.seconds > 0 else 0.0

    @property
    def mib_per_s(self) -> float:
        """How much a second; Kafka's tools call it MB."""
        return self.size_bytes / MEBIBYTE / self.seconds if self.seconds > 0 else 0.0

    def as_json(self, *, with_latency: bool = True) -> dict[str, Any]:
        """For -o json; what is read has no latency."""
        told = {
            "records": self.records,
            "bytes": self.size_bytes,
            "seconds": round(self.seconds, 3),
            "records_per_s": round(self.records_per_s, 1),
            "mib_per_s": round(self.mib_per_s, 4),
        }
        latency = {"mean_ms": _rounded(self.mean_ms), "max_ms": _rounded(self.max_ms)}
        return told | (latency if with_latency else {})


@dataclass
class Meter:
    """Counts what is answered, in all and in the current interval."""

    began_s: float
    warmup_records: int = 0  # so many are left out of `steady`
    histogram: Histogram = field(default_factory=Histogram)
    size_bytes: int = 0
    steady: Meter | None = None
    _window: Sums = field(default_factory=Sums)
    _window_bytes: int = 0
    _window_began_s: float = field(init=False)
    _counted_s: float = field(init=False)  # when it was told the last time

    def __post_init__(self) -> None:
        self._window_began_s = self._counted_s = self.began_s

    def count(self, latencies_s: Sequence[float], size_bytes: int, now_s: float) -> None:
        """So many records were answered until now."""
        warming = max(0, self.warmup_records - self.histogram.count)
        if self.warmup_records and warming < len(latencies_s):
            if self.steady is None:
                self.steady = Meter(self._counted_s)
            share = 1 - warming / len(latencies_s)
            self.steady.count(latencies_s[warming:], round(size_bytes * share), now_s)
        self._counted_s = now_s
        self.histogram.add(latencies_s)
        self._window.add(latencies_s)
        self.size_bytes += size_bytes
        self._window_bytes += size_bytes

    def window(self, now_s: float, every_s: float) -> Interval | None:
        """The interval that has just ended; None while it has not, or if nothing came in it."""
        if now_s - self._window_began_s < every_s or not self._window.count:
            return None
        ended = _interval(self._window, self._window_bytes, now_s - self._window_began_s)
        self._window, self._window_bytes, self._window_began_s = Sums(), 0, now_s
        return ended

    def total(self, now_s: float) -> Interval:
        """All until now."""
        return _interval(self.histogram, self.size_bytes, now_s - self.began_s)


@dataclass(frozen=True)
class Written:
    """A measurement of writing, at its end."""

    total: Interval
    histogram: Histogram
    windows: tuple[Interval, ...]
    failed: int
    reason: str  # of the first failure
    hint: str
    target_per_s: float | None
    steady: tuple[Interval, Histogram] | None = None
    statistics: dict[str, Any] = field(default_factory=dict)  # what the driver counted, where asked for

    def as_json(self) -> dict[str, Any]:
        """For -o json."""
        told = {
            **self.total.as_json(),
            "target_per_s": self.target_per_s,
            "failed": self.failed,
            "latency_ms": latencies_json(self.histogram),
            "intervals": [window.as_json() for window in self.windows],
        }
        if self.steady is not None:
            interval, histogram = self.steady
            told["steady_state"] = {**interval.as_json(), "latency_ms": latencies_json(histogram)}
        if self.statistics:
            told["metrics"] = self.statistics
        return told


@dataclass(frozen=True)
class Read:
    """A measurement of reading, at its end."""

    total: Interval
    began_ms: int
    ended_ms: int
    joining_s: float  # until partitions were assigned, over all rebalances
    windows: tuple[tuple[int, Interval, float], ...]  # when it ended, what it was, joining within it
    wanted: int
    statistics: dict[str, Any] = field(default_factory=dict)

    @property
    def fetching(self) -> Interval:
        """The same records in the time that was not spent joining."""
        return Interval(self.total.records, self.total.size_bytes, self.total.seconds - self.joining_s)

    def as_json(self) -> dict[str, Any]:
        """For -o json."""
        fetching = self.fetching
        told = {
            **self.total.as_json(with_latency=False),
            "wanted": self.wanted,
            "began_ms": self.began_ms,
            "ended_ms": self.ended_ms,
            "rebalance_ms": round(self.joining_s * 1000),
            "fetch_ms": round(fetching.seconds * 1000),
            "fetch_mib_per_s": round(fetching.mib_per_s, 4),
            "fetch_records_per_s": round(fetching.records_per_s, 1),
            "intervals": [window.as_json(with_latency=False) for _, window, _ in self.windows],
        }
        return told | ({"metrics": self.statistics} if self.statistics else {})


def latencies_json(histogram: Histogram) -> dict[str, float | None]:
    """Mean, maximum and the usual percentiles of a histogram, in milliseconds."""
    shares = {share.percent: share.latency_ms for share in histogram.percentiles(JSON_PERCENTS)}
    return {
        "mean": _rounded(histogram.mean_ms),
        "max": _rounded(histogram.max_ms),
        **{f"p{percent:g}": _rounded(shares.get(percent)) for percent in JSON_PERCENTS},
    }


def _interval(sums: Sums, size_bytes: int, seconds: float) -> Interval:
    return Interval(sums.count, size_bytes, seconds, sums.mean_ms, sums.max_ms)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
