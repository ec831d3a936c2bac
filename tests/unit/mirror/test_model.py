"""The twin against a simulated standby and everything that goes wrong: the logs stay the same.

Two worlds. In the first the wait after a broken connection is long enough for everything that was
on it, records may be so old that brokers forget their producers, and the active's cleaner and
retention work meanwhile. In the second, batches arrive even after that wait, however late; then the
chain of sequences alone has to see to it that nothing is taken twice, which it does while brokers
remember the producers. In both, each rule that is left out is missed.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mirror.active_log import made_up
from tests.unit.mirror.choices import Choices
from tests.unit.mirror.crossing import Crossing, Diverged, Rules
from twinlog.mirror.steps import Chain
from twinlog.mirror.twin import Twin

logs = st.binary(max_size=200)
events = st.binary(max_size=300)
# The rarest of these accidents comes once in two thousand crossings; the search begins shortly before one.
SURELY_FOUND_IN = 10_000
MOST_BATCHES = 20


def cross_with_old_records(rules: Rules, log: bytes, happens: bytes) -> Crossing:
    active = made_up(Choices(log), batches=MOST_BATCHES, old=True, cleaned=True)
    crossing = Crossing(active, Choices(happens), rules, cleans=True)
    crossing.run()
    return crossing


def cross_with_late_arrivals(rules: Rules, log: bytes, happens: bytes) -> Crossing:
    active = made_up(Choices(log), batches=MOST_BATCHES, old=False, cleaned=True)
    crossing = Crossing(active, Choices(happens), replace(rules, settle_all=False))
    crossing.run()
    return crossing


@pytest.mark.parametrize("keep_identity", [True, False])
@settings(max_examples=60)
@given(log=logs, happens=events)
def test_faults_with_old_records_logs_stay_the_same(keep_identity: bool, log: bytes, happens: bytes) -> None:
    cross_with_old_records(Rules(keep_identity=keep_identity), log, happens)


@pytest.mark.parametrize("keep_identity", [True, False])
@settings(max_examples=60)
@given(log=logs, happens=events)
def test_faults_with_late_arrivals_logs_stay_the_same(
    keep_identity: bool, log: bytes, happens: bytes
) -> None:
    cross_with_late_arrivals(Rules(keep_identity=keep_identity), log, happens)


def test_many_crossings_meet_everything_that_can_happen() -> None:
    stories = "\n".join("\n".join(seeded(Rules(), seed).story) for seed in range(60))
    for happening in (
        "HOLE",
        "RENEW",
        "STOP",
        "late: (0",
        "late: (45",
        "break with 2",
        "orderly: True",
        "fill",
    ):
        assert happening in stories


# Rules left out


class AnythingFollows(Twin):
    """Does not heed the order rule."""

    def _is_guarded(self, chain: Chain, sequence: int, now_ms: int) -> bool:
        return True


class ChainsAlone(Twin):
    """Heeds the chain of what follows, neither its sequence nor its age."""

    def _is_guarded(self, chain: Chain, sequence: int, now_ms: int) -> bool:
        before = self._expected if self._in_flight else self._answered
        return before is not None and before.chain == chain


def seeded(rules: Rules, seed: int, *, late: bool = False) -> Crossing:
    supply = random.Random(seed)
    log, happens = supply.randbytes(200), supply.randbytes(supply.randrange(300))
    return (cross_with_late_arrivals if late else cross_with_old_records)(rules, log, happens)


@pytest.mark.parametrize(
    ("rules", "late", "first_seed"),
    [
        pytest.param(Rules(twin=AnythingFollows), False, 0, id="any batch follows an unanswered one"),
        pytest.param(Rules(twin=ChainsAlone), False, 250, id="forgotten or repeated sequences are followed"),
        pytest.param(Rules(replicated_first=False), False, 0, id="the log end may not be replicated"),
        pytest.param(Rules(settle=False), False, 80, id="no wait after a broken connection"),
        pytest.param(Rules(settle=False), True, 50, id="no wait for markers"),
        pytest.param(Rules(drain=False), False, 1520, id="begun again with requests in flight"),
        pytest.param(Rules(chain_first=False), True, 170, id="the log end is read before the chain"),
        pytest.param(Rules(several_without_end=True), False, 0, id="the log end behind markers is not read"),
        pytest.param(Rules(remember=False), True, 2800, id="the epoch that was used last is forgotten"),
    ],
)
def test_rule_left_out_logs_differ(rules: Rules, late: bool, first_seed: int) -> None:
    with pytest.raises(Diverged):
        for seed in range(first_seed, first_seed + SURELY_FOUND_IN):
            seeded(rules, seed, late=late)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("keep_identity", [True, False])
def test_twenty_thousand_crossings_logs_stay_the_same(keep_identity: bool, late: bool) -> None:
    for seed in range(20_000):
        seeded(Rules(keep_identity=keep_identity), seed, late=late)
