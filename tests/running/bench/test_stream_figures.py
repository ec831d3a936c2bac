"""The arithmetic behind the measurement of streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from bench import totals
from bench.measuring import Cpu
from bench.streams import aggregate


def test_sums_of_a_backlog_hold_every_record_once() -> None:
    records = 5 * totals.PER_SECOND * totals.WINDOW_S // 2
    found = totals.expected(records)
    assert sum(count for _, _, _, count in found) == records
    assert sum(kw for _, _, kw, _ in found) == sum(totals.record(number)[1] for number in range(records))
    assert {begin[-7:] for _, begin, _, _ in found} == {"00.000Z"}
    per_turbine = Counter(turbine for turbine, *_ in found)
    assert set(per_turbine.values()) == {3}  # two whole windows and a half


def test_work_is_counted_from_the_first_tenth_to_the_end() -> None:
    told = iter([0, 50, 100, 600, 1000])
    worked = totals.watch(lambda: next(told), Cpu(lambda: []), 1000)
    assert worked.records == 900


def test_backlog_that_was_done_at_once_is_no_measurement() -> None:
    told: Iterator[int] = iter([1000])
    with pytest.raises(ValueError, match="more records"):
        totals.watch(lambda: next(told), Cpu(lambda: []), 1000)


def test_side_that_has_ended_is_not_waited_for() -> None:
    told = iter([0, 50])
    with pytest.raises(RuntimeError, match="50 of 1000"):
        totals.watch(lambda: next(told), Cpu(lambda: []), 1000, iter([True, False]).__next__)


def test_side_that_is_too_slow_is_told_with_what_it_has_done() -> None:
    with pytest.raises(TimeoutError, match="50 of 1000 records were done after 0 s"):
        totals.watch(lambda: 50, Cpu(lambda: []), 1000, timeout_s=0.0)


def test_topic_that_cannot_be_read_is_told_with_the_partitions_that_are_missing() -> None:
    told = totals.unread("ours-0", {0, 2}, "brokers are down")
    assert "partitions 1, 3 were not" in told
    assert told.endswith("brokers are down")


def test_sides_are_compared_by_the_median_of_what_a_core_does() -> None:
    found = {
        "ours": [{"records_per_s_per_core": each} for each in (100.0, 300.0, 200.0)],
        "kafka_streams": [{"records_per_s_per_core": 80.0}],
    }
    assert aggregate(found)["aggregate_ratio"] == 2.5
