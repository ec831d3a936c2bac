"""Partitions from a measurement, and the plot of latencies."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from twinlog.perf.advice import HEADROOM, Load, Measured, advise
from twinlog.perf.histogram import Histogram
from twinlog.perf.plot import drawn

speeds = st.floats(min_value=1, max_value=1e7)


@given(speeds, speeds, speeds, st.none() | speeds, st.integers(min_value=1, max_value=50))
def test_the_advised_partitions_carry_the_peak_and_are_the_same_on_every_broker(
    peak: float, write: float, read: float, consumer: float | None, brokers: int
) -> None:
    advised = advise(Load(peak, 1000, consumer), Measured(write, read), brokers, replication=1)
    slowest = min(write, read, consumer or read)
    assert advised.partitions * slowest >= peak * HEADROOM * 0.999999
    assert advised.partitions == 1 or advised.partitions % brokers == 0
    assert advised.partitions == 1 or (advised.partitions - brokers) * slowest <= peak * HEADROOM * 1.000001


def test_the_arithmetic_says_which_side_is_the_limit() -> None:
    advised = advise(Load(50_000, 1000, consumer_per_s=10_000), Measured(100_000, 200_000), 3, 3)
    assert advised.partitions == 9
    assert advised.steps == (
        "peak 50,000/s × 1.5 to spare = 75,000 records/s of 1,000 bytes",
        "writing: one partition takes 100,000/s; 75,000 / 100,000 → 1",
        "reading: a consumer of yours reads 10,000/s of one partition; 75,000 / 10,000 → 8",
        "the larger of the two: 8",
        "the same number on each of 3 brokers: 9",
    )


def test_too_many_replicas_for_the_brokers_are_told() -> None:
    advised = advise(Load(100_000, 1000), Measured(10, 1000), 3, 3)
    assert advised.steps[-1] == "that is 15,000 replicas a broker, above 4,000: add brokers first"


@given(st.lists(st.floats(min_value=0, max_value=100), max_size=300), st.text(max_size=20))
def test_any_latencies_can_be_drawn(values_s: list[float], title: str) -> None:
    histogram = Histogram()
    histogram.add(values_s)
    text = drawn(histogram, "".join(char for char in title if char.isprintable()))
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "nan" not in text
