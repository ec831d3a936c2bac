"""When records are due, whatever happened to those before them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.perf.schedule import Schedule

rates = st.floats(min_value=0.1, max_value=1e6)


@given(rates, st.floats(min_value=0, max_value=1000), st.integers(min_value=0, max_value=10**6))
def test_what_is_due_is_never_ahead_of_the_rate_and_never_behind_it(
    rate: float, passed_s: float, sent: int
) -> None:
    schedule = Schedule(rate, 50.0)
    count = schedule.due(sent, 50.0 + passed_s, 10**9)
    # Record n is due at n / rate: all until now, and not one more.
    assert count == 0 or (sent + count - 1) / rate <= passed_s + 1e-6
    assert (sent + count) / rate >= passed_s - 1e-6


@given(rates, st.floats(min_value=0, max_value=1000), st.integers(min_value=0, max_value=10**6))
def test_a_late_record_has_waited_since_its_own_turn(rate: float, passed_s: float, sent: int) -> None:
    schedule = Schedule(rate, 50.0)
    late_s = schedule.late_s(sent, 50.0 + passed_s)
    assert late_s == 0 or abs(late_s - (passed_s - sent / rate)) < 1e-6
    if schedule.due(sent, 50.0 + passed_s, 1):
        assert late_s >= passed_s - sent / rate - 1e-6


def test_after_a_pause_all_that_was_missed_is_due_at_once_and_counts_as_late() -> None:
    schedule = Schedule(100.0, 0.0)
    assert schedule.due(10, 1.0, 1000) == 91
    assert abs(schedule.late_s(10, 1.0) - 0.9) < 1e-9


def test_without_a_rate_everything_is_due_and_nothing_late() -> None:
    schedule = Schedule(None, 0.0)
    assert (schedule.due(7, 100.0, 500), schedule.late_s(7, 100.0), schedule.wait_s(7, 100.0)) == (
        500,
        0.0,
        0.0,
    )
