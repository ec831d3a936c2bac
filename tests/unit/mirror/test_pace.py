"""A limit on bytes per second, by a clock of the test."""

from __future__ import annotations

import pytest

from twinlog.mirror.pace import BURST_S, Pace


class Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, time_s: float) -> None:
        self.now_s += time_s


def test_no_rate_nobody_waits() -> None:
    clock = Clock()
    Pace(None, clock=clock, wait=clock.wait).spend(10**12)
    assert clock.now_s == 100.0


def test_steady_spending_takes_the_time_of_the_rate() -> None:
    clock = Clock()
    pace = Pace(1000.0, clock=clock, wait=clock.wait)
    for _ in range(100):
        pace.spend(50)
    assert clock.now_s - 100.0 == pytest.approx(5.0, abs=BURST_S)


def test_one_large_piece_is_waited_for_afterwards() -> None:
    clock = Clock()
    Pace(1000.0, clock=clock, wait=clock.wait).spend(4000)
    assert clock.now_s - 100.0 == pytest.approx(4.0, abs=BURST_S)


def test_after_a_rest_no_more_than_a_burst_is_free() -> None:
    clock = Clock()
    pace = Pace(1000.0, clock=clock, wait=clock.wait)
    clock.wait(3600.0)
    before_s = clock.now_s
    pace.spend(1000)
    assert clock.now_s - before_s == pytest.approx(1.0 - BURST_S)


def test_a_wait_that_is_cut_short_is_owed() -> None:
    clock = Clock()
    pace = Pace(1000.0, clock=clock, wait=lambda time_s: None)
    pace.spend(2000)
    waits: list[float] = []
    pace._wait = waits.append
    pace.spend(1000)
    assert waits == [pytest.approx(3.0, abs=BURST_S)]
