"""Latencies in buckets: what is read back is near what was counted."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from twinlog.perf.figures import latencies_json
from twinlog.perf.histogram import Histogram, bucket_us, highest_us

latencies = st.lists(st.floats(min_value=0, max_value=3600), min_size=1, max_size=200)


@given(st.integers(min_value=0, max_value=2**45))
def test_a_value_lies_in_its_bucket_and_within_a_thousandth_of_its_ends(value_us: int) -> None:
    low = bucket_us(value_us)
    high = highest_us(low)
    assert low <= value_us <= high
    assert high - low <= max(0, value_us / 1000)
    assert bucket_us(high) == low and bucket_us(high + 1) == high + 1


@given(latencies, st.sampled_from([1.0, 50.0, 95.0, 99.0, 99.9, 100.0]))
def test_a_percentile_is_that_of_the_sorted_values_within_a_thousandth(
    values_s: list[float], percent: float
) -> None:
    histogram = Histogram()
    histogram.add(values_s)
    rank = max(1, math.ceil(round(percent / 100 * len(values_s), 6)))
    exact_ms = sorted(values_s)[rank - 1] * 1000
    (share,) = histogram.percentiles([percent])
    assert exact_ms * 0.999 - 0.001 <= share.latency_ms <= exact_ms * 1.001 + 0.001


@given(latencies, latencies)
def test_added_histograms_equal_one_of_all_values(first_s: list[float], second_s: list[float]) -> None:
    together, parts = Histogram(), Histogram()
    together.add([*first_s, *second_s])
    parts.add(first_s)
    other = Histogram()
    other.add(second_s)
    parts.merge(other)
    percents = [0.0, 10.0, 50.0, 99.9, 100.0]
    assert parts.percentiles(percents) == together.percentiles(percents)
    assert (parts.count, parts.max_ms) == (together.count, together.max_ms)


def test_nothing_counted_has_no_latencies() -> None:
    empty = Histogram()
    empty.add([])
    assert (empty.mean_ms, empty.max_ms, empty.percentiles([50.0])) == (None, None, [])


def test_json_has_mean_and_maximum_and_percentiles_that_lines_leave_out() -> None:
    histogram = Histogram()
    histogram.add([0.001] * 85 + [0.002] * 14 + [0.005])
    assert latencies_json(histogram) == {
        "mean": 1.18,
        "max": 5.0,
        "p50": 1.0,
        "p90": 2.0,
        "p95": 2.0,
        "p99": 2.0,
        "p99.9": 5.0,
        "p99.99": 5.0,
    }
