"""How long copying will take, by what was left at several moments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.ops.pace import WINDOW_S, Pace


def test_one_look_says_what_is_left_and_not_how_long() -> None:
    pace = Pace()
    assert pace.left_s is None
    pace.see(0.0, 5_000_000)
    assert pace.left_s is None
    assert pace.sentence() == "5.0 MB left"


def test_two_looks_give_an_estimate() -> None:
    pace = Pace()
    pace.see(0.0, 100_000_000)
    pace.see(10.0, 80_000_000)
    assert pace.left_s == 40.0
    assert pace.sentence() == "80.0 MB left, about 40 s"


def test_while_nothing_gets_less_nobody_can_say() -> None:
    pace = Pace()
    pace.see(0.0, 100)
    pace.see(10.0, 100)
    assert pace.left_s is None


def test_only_the_last_half_minute_counts() -> None:
    pace = Pace()
    pace.see(0.0, 1_000_000)
    pace.see(10.0, 999_999)  # slow at first
    pace.see(10.0 + WINDOW_S, 499_999)
    assert pace.bytes_per_s == pytest.approx(500_000 / WINDOW_S)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=20))
def test_an_estimate_is_never_negative(left: list[int]) -> None:
    pace = Pace()
    for second, size in enumerate(left):
        pace.see(float(second), size)
    assert pace.left_s is None or pace.left_s >= 0
