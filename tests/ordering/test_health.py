"""When a channel counts as errored, on a clock of the test's own."""

from __future__ import annotations

from twinlog.ordering.health import Health, Step


def _health() -> Health:
    return Health(grace_s=10.0, again_s=2.0)


def test_error_passes_within_the_grace_is_no_outage() -> None:
    health = _health()
    health.troubled(0.0, is_final=False)
    health.heard()
    assert health.step(11.0, is_connecting=False) is Step.NOTHING
    assert not health.is_errored


def test_grace_ends_asks_the_leader_once() -> None:
    health = _health()
    health.troubled(0.0, is_final=False)
    health.troubled(5.0, is_final=False)  # does not begin the grace anew
    assert health.step(9.9, is_connecting=False) is Step.NOTHING
    assert health.step(10.0, is_connecting=False) is Step.PROBE
    health.probed(10.0, has_answered=True)
    assert health.step(10.0, is_connecting=False) is Step.NOTHING
    assert not health.is_errored


def test_leader_does_not_answer_is_errored_until_a_record_comes() -> None:
    health = _health()
    health.troubled(0.0, is_final=False)
    health.probed(10.0, has_answered=False)
    assert health.is_errored
    health.heard()
    assert not health.is_errored
    assert health.step(10.0, is_connecting=False) is Step.NOTHING


def test_channel_is_errored_connects_again_and_again_one_at_a_time() -> None:
    health = _health()
    health.troubled(0.0, is_final=True)
    assert health.is_errored
    assert health.step(0.0, is_connecting=False) is Step.CONNECT
    assert health.step(1.0, is_connecting=False) is Step.NOTHING
    assert health.step(9.0, is_connecting=True) is Step.NOTHING
    health.troubled(9.0, is_final=True)
    assert health.step(9.0, is_connecting=False) is Step.CONNECT
