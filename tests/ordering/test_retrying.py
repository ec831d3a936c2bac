"""Attempts at short intervals, then at long ones, on a clock of the test's own."""

from __future__ import annotations

import pytest

from twinlog.errors import KafkaError, TwinlogError
from twinlog.ordering.localconfig import Retry
from twinlog.ordering.retrying import AskedToEnd, retried

_RETRY = Retry(short_interval_s=1.0, short_total_s=3.0, long_interval_s=10.0, long_total_s=20.0)


class Attempts:
    """Counts attempts, and when they were made; fails so often."""

    def __init__(self, failures: int, end_after: int = 99) -> None:
        self.failures = failures
        self.end_after = end_after
        self.now = 0.0
        self.made_at: list[float] = []
        self.reasons: list[str] = []

    def attempt(self) -> str:
        self.made_at.append(self.now)
        if len(self.made_at) <= self.failures:
            raise KafkaError(f"attempt {len(self.made_at)}")
        return "done"

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return len(self.made_at) >= self.end_after

    def failed(self, error: TwinlogError) -> None:
        self.reasons.append(str(error))

    def run(self) -> str:
        return retried(self.attempt, _RETRY, self.wait, failed=self.failed, clock=lambda: self.now)


def test_first_attempt_works_waits_for_nothing() -> None:
    attempts = Attempts(0)
    assert (attempts.run(), attempts.made_at, attempts.reasons) == ("done", [0.0], [])


def test_short_attempts_fail_goes_on_with_long_ones() -> None:
    attempts = Attempts(5)
    assert attempts.run() == "done"
    assert attempts.made_at == [0.0, 1.0, 2.0, 3.0, 3.0, 13.0]


def test_all_attempts_fail_raises_the_last_reason() -> None:
    attempts = Attempts(99)
    with pytest.raises(KafkaError, match="attempt 7"):
        attempts.run()
    assert attempts.made_at[-1] == 23.0
    assert len(attempts.reasons) == 7


def test_end_is_asked_for_makes_no_more_attempts() -> None:
    attempts = Attempts(99, end_after=2)
    with pytest.raises(AskedToEnd):
        attempts.run()
    assert len(attempts.made_at) == 2


def test_reason_is_final_makes_no_more_attempts() -> None:
    def failed(error: TwinlogError) -> None:
        raise error

    attempts = Attempts(99)
    with pytest.raises(KafkaError, match="attempt 1"):
        retried(attempts.attempt, _RETRY, attempts.wait, failed=failed)
