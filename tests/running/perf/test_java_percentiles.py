"""HdrHistogram's own library on what our histogram counts. One JVM is asked (`Percentiles.java`)."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.running.java import asked
from twinlog.perf.figures import JSON_PERCENTS
from twinlog.perf.histogram import Histogram
from twinlog.perf.plot import TICKS

SOURCE = Path(__file__).with_name("Percentiles.java")
SETS = 1500
# Of nothing at all (0 %) Java names the bucket's lowest value; what we print begins above it.
WANTED = sorted({*JSON_PERCENTS, *TICKS, 0.001, 1.0, 33.3, 75.0, 100.0} - {0.0})
MOST_US = 2**42  # fifty days

# As latencies are, over all sizes of buckets alike, and near the ends of buckets.
DRAWN: tuple[Callable[[random.Random], int], ...] = (
    lambda dice: min(MOST_US, int(dice.lognormvariate(8, 2))),
    lambda dice: dice.randrange(1 << dice.randrange(1, MOST_US.bit_length())),
    lambda dice: max(0, (1 << dice.randrange(MOST_US.bit_length())) + dice.randrange(-2, 3)),
)


def test_percentiles_are_those_of_hdrhistogram_with_three_digits() -> None:
    dice = random.Random()
    sets = [
        [dice.choice(DRAWN)(dice) for _ in range(dice.choice((1, 2, 3, 10, 31, 100, 1000)))]
        for _ in range(SETS)
    ]
    percents = ",".join(map(repr, WANTED))
    answers = asked(SOURCE, [f"{percents} {' '.join(map(str, values_us))}" for values_us in sets])
    assert len(answers) == SETS
    for values_us, answer in zip(sets, answers, strict=True):
        histogram = Histogram()
        # Half a microsecond more, which is cut off: else the last bit of a fraction may take a whole one.
        histogram.add([(value_us + 0.5) / 1e6 for value_us in values_us])
        # Java names the end of a bucket, even one beyond all that was counted; we name no more than that.
        expected_us = [min(int(word), max(values_us) + 0.5) for word in answer.split()]
        found_us = [share.latency_ms * 1000 for share in histogram.percentiles(WANTED)]
        assert found_us == pytest.approx(expected_us, rel=1e-9), values_us
