"""From canaries to what is known about a site."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.traffic.health import EVERY_S, patience
from twinlog.traffic.watching import Health, Outcome, Rules, Watch

RULES = Rules(dead_after_s=5.0)
OK, FAILED, TIMED_OUT = Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT


def watched(*outcomes: Outcome, start_s: float = 0.0) -> Watch:
    """One canary a second."""
    watch = Watch(RULES)
    for number, outcome in enumerate(outcomes):
        watch = watch.after(outcome, start_s + number)
    return watch


@pytest.mark.parametrize(
    ("outcomes", "health"),
    [
        ([], Health.UNKNOWN),
        ([OK], Health.HEALTHY),
        ([FAILED], Health.FAILING),
        ([OK, FAILED], Health.HEALTHY),
        ([OK, FAILED, TIMED_OUT], Health.FAILING),
        ([OK, *[FAILED] * 4], Health.FAILING),
        ([OK, *[FAILED] * 5], Health.DEAD),
        ([OK, *[TIMED_OUT] * 5], Health.DEAD),
        ([OK, *[FAILED] * 5, OK, OK], Health.FAILING),
        ([OK, *[FAILED] * 5, OK, OK, OK], Health.HEALTHY),
        ([OK, *[FAILED] * 5, OK, OK, FAILED, OK], Health.FAILING),
        ([OK, FAILED, OK, FAILED, OK, FAILED], Health.HEALTHY),
    ],
)
def test_series_of_canaries_health(outcomes: list[Outcome], health: Health) -> None:
    watch = watched(*outcomes)
    assert watch.seen(max(0, len(outcomes) - 1)).health is health


def test_failing_since_the_last_good_canary() -> None:
    seen = watched(OK, OK, FAILED, FAILED, FAILED).seen(4.5)
    assert (seen.health, seen.since_s, seen.last_ok_s) == (Health.FAILING, 1.0, 1.0)
    assert seen.why == "no canary was acknowledged for 3.5 s: failed"


def test_dead_between_two_canaries_when_the_time_is_over() -> None:
    watch = watched(OK, FAILED, FAILED, FAILED, FAILED)
    assert (watch.seen(4.9).health, watch.seen(5.0).health) == (Health.FAILING, Health.DEAD)


def test_nobody_looked_for_a_while_unknown_and_begins_anew() -> None:
    watch = watched(OK, OK)
    assert watch.seen(60.0).health is Health.UNKNOWN
    assert watch.seen(60.0).why == "no canary for 59.0 s"
    after = watch.after(FAILED, 60.0).after(FAILED, 61.0).after(FAILED, 62.0)
    seen = after.seen(62.0)
    assert (seen.health, seen.since_s, seen.last_ok_s) == (Health.FAILING, 60.0, 1.0)
    assert after.after(FAILED, 63.0).after(FAILED, 64.0).after(FAILED, 65.0).seen(65.0).health is Health.DEAD


def test_reason_of_a_bad_canary_is_told() -> None:
    watch = Watch(RULES)
    for second in range(3):
        watch = watch.after(FAILED, second, "connection refused")
    assert watch.seen(2).why == "no canary was acknowledged for 2.0 s: connection refused"


@given(outcomes=st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=40))
def test_any_series_dead_means_no_good_canary_for_that_long(outcomes: list[Outcome]) -> None:
    now_s = len(outcomes) - 1
    seen = watched(*outcomes).seen(now_s)
    if seen.health is Health.DEAD:
        assert OK not in outcomes[-5:]
    if seen.health is Health.HEALTHY:
        assert OK in outcomes[-2:]


@pytest.mark.parametrize("failover_after_s", [3.0, 5.0, 10.0, 60.0])
def test_two_canaries_that_hang_are_over_when_a_site_is_to_be_called_dead(failover_after_s: float) -> None:
    longest_s = patience(failover_after_s).total_s
    assert EVERY_S + 2 * longest_s <= failover_after_s
    assert EVERY_S + longest_s < Rules(failover_after_s).stale_after_s
