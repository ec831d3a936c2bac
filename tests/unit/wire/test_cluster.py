"""Trying again: which errors, how often, how long. Time is the test's own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import KafkaError, SiteError, TwinlogError, UnknownOutcome
from twinlog.wire.access import Access, Protocol
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.failures import ConnectionFailed

RETRIABLE = KafkaError("not yet", code="NOT_CONTROLLER", retriable=True)
PERMANENT = KafkaError("never", code="INVALID_CONFIG")
LOST = ConnectionFailed("gone", retriable=True)
UNKNOWN = UnknownOutcome("sent and not answered")


class Time:
    """A clock that moves only when somebody waits."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now_s

    def wait(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        self.now_s += pause_s


def cluster_in(time: Time, patience: Patience | None = None) -> Cluster:
    access = Access(("127.0.0.1:1",), Protocol.PLAINTEXT)
    return Cluster(access, patience=patience, clock=time.clock, wait=time.wait)


def failing(*errors: TwinlogError) -> Callable[[], str]:
    """An attempt that raises these errors one after the other and then succeeds."""
    left = list(errors)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return attempt


def test_an_attempt_is_repeated_after_errors_that_may_pass() -> None:
    time = Time()
    assert cluster_in(time).retry(failing(RETRIABLE, LOST, RETRIABLE)) == "done"
    assert time.pauses == [0.05, 0.1, 0.2]


@pytest.mark.parametrize("error", [PERMANENT, ConnectionFailed("wrong CA", retriable=False), SiteError("no")])
def test_an_error_that_stays_is_not_repeated(error: TwinlogError) -> None:
    time = Time()
    with pytest.raises(type(error)):
        cluster_in(time).retry(failing(error))
    assert time.pauses == []


def test_a_write_with_unknown_outcome_is_not_repeated() -> None:
    with pytest.raises(UnknownOutcome):
        cluster_in(Time()).retry(failing(UNKNOWN))


def test_a_write_that_may_be_repeated_is() -> None:
    assert cluster_in(Time()).retry(failing(UNKNOWN), repeatable=True) == "done"


@given(st.floats(0.1, 120), st.lists(st.floats(0.1, 5), min_size=1, max_size=6))
def test_repeating_ends_with_the_last_error_before_the_deadline(total_s: float, pauses: list[float]) -> None:
    time = Time()
    patience = Patience(total_s=total_s, pauses_s=tuple(pauses))
    with pytest.raises(KafkaError, match="not yet"):
        cluster_in(time, patience).retry(failing(*[RETRIABLE] * 2_000))
    assert time.now_s <= 1000.0 + total_s
    assert time.pauses[: len(pauses)] == pauses[: len(time.pauses)]
    assert all(pause == pauses[-1] for pause in time.pauses[len(pauses) :])


def test_work_inside_work_shares_one_deadline() -> None:
    time = Time()
    cluster = cluster_in(time, Patience(total_s=10.0, pauses_s=(1.0,)))
    with pytest.raises(KafkaError):
        cluster.retry(lambda: cluster.retry(failing(*[RETRIABLE] * 1000)))
    assert time.now_s <= 1010.0


def test_an_attempt_that_was_cut_short_does_not_hide_the_error_before_it() -> None:
    time = Time()

    def attempt() -> str:
        if not time.pauses:
            raise RETRIABLE
        time.now_s += 100.0
        raise LOST

    with pytest.raises(KafkaError, match="not yet"):
        cluster_in(time).retry(attempt)


def test_waiting_ends_when_nothing_is_missing() -> None:
    time = Time()
    answers = iter(["broker 2 lacks it", "broker 2 lacks it", ""])
    cluster_in(time).wait_until(lambda: next(answers), "waiting")
    assert len(time.pauses) == 2


def test_waiting_in_vain_says_what_is_missing() -> None:
    with pytest.raises(SiteError, match="took more than 30 s: broker 2 lacks it"):
        cluster_in(Time()).wait_until(lambda: "broker 2 lacks it", "waiting")


def test_pauses_never_end_and_never_shrink() -> None:
    patience = Patience()
    pauses = [pause for pause, _ in zip(patience.pauses(), range(100), strict=False)]
    assert len(pauses) == 100
    assert all(earlier <= later for earlier, later in pairwise(pauses))


def test_leaders_that_somebody_has_asked_for_are_believed_until_all_is_forgotten() -> None:
    cluster = cluster_in(Time())
    cluster.believe({("orders", 0): 3})
    assert cluster.leader("orders", 0) == 3
    cluster.forget()
    with pytest.raises(ConnectionFailed):
        cluster.leader("orders", 0)
