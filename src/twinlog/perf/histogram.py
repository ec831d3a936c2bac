"""Latencies counted in the buckets of an HdrHistogram with three significant digits. Pure.

For all measurements of `perf`. A value below 2048 µs has a bucket of its own; above, a bucket is as
wide as the value's eleven leading bits leave it, so what is read back is never more than a thousandth
away from what was counted. Buckets and ranks are those of HdrHistogram's own library for Java, and a
test compares the two; the one for Python ranks otherwise and takes several times as long to count, and at
full speed this is done for every record.
Histograms of several runs can be added.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_EXACT_BITS = 11  # 2048 sub-buckets: three decimal digits
_EXACT_US = 1 << _EXACT_BITS
_US_PER_S = 1_000_000


def bucket_us(value_us: int) -> int:
    """The lowest value of the bucket that a value falls into."""
    if value_us < _EXACT_US:
        return max(0, value_us)
    shift = value_us.bit_length() - _EXACT_BITS
    return value_us >> shift << shift


def highest_us(bucket: int) -> int:
    """The highest value of a bucket, which is what percentiles name: rather too much than too little."""
    return bucket if bucket < _EXACT_US else bucket + (1 << (bucket.bit_length() - _EXACT_BITS)) - 1


@dataclass(frozen=True)
class Share:
    """How long the fastest `percent` of all took at most."""

    percent: float
    latency_ms: float


class Sums:
    """How many records there were, how long they took together, and the longest."""

    def __init__(self) -> None:
        self.count = 0
        self.total_s = 0.0
        self.max_s = 0.0

    def add(self, latencies_s: Sequence[float]) -> None:
        """Count latencies."""
        if latencies_s:
            longest_s = max(latencies_s)
            self.count += len(latencies_s)
            self.total_s += sum(latencies_s)
            self.max_s = max(self.max_s, longest_s)

    @property
    def mean_ms(self) -> float | None:
        """The mean; None if nothing was counted."""
        return self.total_s / self.count * 1000 if self.count else None

    @property
    def max_ms(self) -> float | None:
        """The longest; None if nothing was counted."""
        return self.max_s * 1000 if self.count else None


class Histogram(Sums):
    """How many records took how long."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[int] = Counter()

    def add(self, latencies_s: Sequence[float]) -> None:
        """Count latencies."""
        super().add(latencies_s)
        # `bucket_us` written out: a call for each record would double the time.
        self._counts.update(
            us
            if (us := int(each_s * _US_PER_S)) < _EXACT_US
            else us >> (bits := us.bit_length() - 11) << bits
            for each_s in latencies_s
        )

    def merge(self, other: Histogram) -> None:
        """Count all that another one has counted."""
        self._counts.update(other._counts)
        self.count += other.count
        self.total_s += other.total_s
        self.max_s = max(self.max_s, other.max_s)

    def percentiles(self, percents: Iterable[float]) -> list[Share]:
        """Several percentiles, in rising order, in one pass."""
        wanted = sorted(percents)
        found: list[Share] = []
        seen = 0
        for bucket, count in sorted(self._counts.items()):
            seen += count
            while len(found) < len(wanted) and seen >= self._rank(wanted[len(found)]):
                found.append(Share(wanted[len(found)], min(highest_us(bucket) / 1000, self.max_s * 1000)))
        return found

    def _rank(self, percent: float) -> int:
        """How many are within this share: at least one."""
        # Rounded first: 99.9 % of 1000 is 999, whatever binary fractions make of it.
        return max(1, math.ceil(round(percent / 100 * self.count, 6)))
