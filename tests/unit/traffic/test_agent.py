"""In which term a site should hold the lease, and which one it asks for when it gets none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.spec.model import Role
from twinlog.traffic.agent import NO_TERM, Agent, is_deposed, renewed_term, term_wanted
from twinlog.traffic.lease import State
from twinlog.traffic.moves import STEPS, Kind, Move, Step
from twinlog.traffic.poll import Papers
from twinlog.traffic.standings import Told, Where
from twinlog.traffic.tenure import Tenure
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import Answer
from twinlog.wire.roles import Standing

ACTIVE_A = Where("a", 3)
NOBODY = Where(None, 3, "moving")


def move(kind: Kind, step: Step) -> Move:
    return replace(Move.begin(kind, "bus", ("a", "b"), 4), step=step)


def test_the_active_site_holds_the_lease_of_its_term_and_the_standby_none() -> None:
    assert term_wanted("a", ACTIVE_A, None, NO_TERM) == 3
    assert term_wanted("b", ACTIVE_A, None, NO_TERM) == NO_TERM


def test_a_lease_that_ran_ahead_of_the_role_is_kept() -> None:
    assert term_wanted("a", ACTIVE_A, None, 5) == 5


def test_an_agent_that_begins_while_no_broker_answers_wants_what_it_had() -> None:
    assert term_wanted("a", Where(None, 0, "nobody answers"), None, 3) == 3


def test_the_old_site_keeps_its_lease_until_the_voters_are_asked_for_the_other() -> None:
    steps = STEPS[Kind.SWITCHOVER]
    for step in steps[: steps.index(Step.LEASE)]:
        assert term_wanted("a", NOBODY, move(Kind.SWITCHOVER, step), 3) == 3
        assert term_wanted("b", NOBODY, move(Kind.SWITCHOVER, step), NO_TERM) == NO_TERM


def test_from_then_on_only_the_other_site_wants_one() -> None:
    for kind in (Kind.SWITCHOVER, Kind.FAILOVER):
        for step in (Step.LEASE, Step.OPEN):
            assert term_wanted("a", NOBODY, move(kind, step), 3) == NO_TERM
            assert term_wanted("b", NOBODY, move(kind, step), NO_TERM) == 4


def test_a_failover_is_never_called_off_and_wants_the_lease_from_its_first_step_on() -> None:
    assert term_wanted("a", NOBODY, move(Kind.FAILOVER, Step.FENCE), 3) == NO_TERM
    assert term_wanted("b", NOBODY, move(Kind.FAILOVER, Step.FENCE), NO_TERM) == 4


def test_a_lost_site_that_hears_of_its_successor_wants_nothing() -> None:
    assert term_wanted("a", Where("b", 4), None, 3) == NO_TERM


def says(role: Role, term: int, trouble: str = "") -> Told:
    return Told(Standing("bus", "a", role, term), trouble=trouble)


def test_a_site_that_wakes_up_as_active_behind_a_failover_is_deposed() -> None:
    for step in (Step.FENCE, Step.LEASE, Step.OPEN, Step.DONE):
        assert is_deposed("a", says(Role.ACTIVE, 3), move(Kind.FAILOVER, step))
    assert not is_deposed("b", says(Role.ACTIVE, 4), move(Kind.FAILOVER, Step.DONE))


def test_a_site_that_nobody_may_have_followed_yet_is_not_deposed() -> None:
    assert not is_deposed("a", says(Role.ACTIVE, 3), None)
    assert not is_deposed("a", says(Role.ACTIVE, 4), move(Kind.FAILOVER, Step.DONE))


def test_a_site_that_switches_over_or_returns_keeps_its_brokers() -> None:
    assert not is_deposed("a", says(Role.ACTIVE, 3), move(Kind.SWITCHOVER, Step.OPEN))
    assert not is_deposed("a", says(Role.ACTIVE, 3), move(Kind.RETURN, Step.SALVAGE))


def test_what_a_silent_site_said_last_does_not_end_brokers_that_are_being_started() -> None:
    assert not is_deposed("a", says(Role.ACTIVE, 3, "refused"), move(Kind.FAILOVER, Step.DONE))
    assert not is_deposed("a", says(Role.STANDBY, 4), move(Kind.FAILOVER, Step.DONE))


def told(holder: str, term: int, *, wait_s: float = 0.0, blank: bool = False) -> Answer:
    return Answer("x", False, "", term, holder, wait_s=wait_s, blank=blank)


def test_a_site_that_was_the_last_holder_asks_for_the_next_term() -> None:
    assert renewed_term("b", 4, {"a": told("b", 4), "b": told("b", 4)}) == 5


def test_a_site_that_another_has_followed_waits() -> None:
    assert renewed_term("a", 3, {"a": told("b", 4), "w": told("b", 4)}) == 3
    assert renewed_term("a", 3, {"a": told("a", 3), "w": told("b", 4)}) == 3


def test_a_site_that_is_promoted_follows_whoever_has_no_lease_any_more() -> None:
    free, held = told("a", 6), told("a", 6, wait_s=1.0)
    assert renewed_term("b", 6, {"a": free, "w": free}, is_promoted=True) == 7
    assert renewed_term("b", 6, {"a": free, "w": held}, is_promoted=True) == 6


def test_one_voter_or_one_without_memory_is_not_enough() -> None:
    assert renewed_term("b", 4, {"b": told("b", 4)}) == 4
    assert renewed_term("b", 4, {"b": told("b", 4), "w": told("b", 4, blank=True)}) == 4


def test_a_lease_that_is_out_is_not_asked_for_again() -> None:
    assert renewed_term("b", 4, {"a": told("b", 4, wait_s=2.0), "b": told("b", 4)}) == 4


class Orders(Tenure):
    """A tenure that asks nobody and remembers what it was told to take."""

    def __init__(self) -> None:
        super().__init__("a", Timing(4.0), {}, Papers("orders", Path(), Path()))
        self.taken: list[int] = []
        self.valid = False

    def take(self, term: int, *, within_s: float = math.inf) -> None:
        self.taken.append(term)

    def state(self) -> State:
        return State(self.valid, 0, 0.0, "as the test says")

    def give_back(self, timeout_s: float) -> int:
        self.valid = False
        return 2


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    file = tmp_path / "twinlog.yaml"
    file.write_text(
        "bus: orders\nsites:\n  a: {brokers: 1}\n  b: {brokers: 1}\n"
        "gate: {promote: automatic, witness: 127.0.0.1:1}\n"
    )
    home = Home(load(file, {}).bus, file)
    home.allocate()
    (home.directory / "traffic").mkdir()
    return Agent(home, "a", lambda text: None)


def act(agent: Agent, orders: Orders, wanted: int, *, ill: bool = False) -> None:
    agent._act(orders, wanted, ill=ill, is_active=True, is_promoted=False)


def test_a_lease_that_was_given_back_is_ordered_again_whatever_was_ordered_before(agent: Agent) -> None:
    orders = Orders()
    act(agent, orders, 2)
    agent._ordered = 3  # it was about to ask for the next term when the old one came back
    orders.valid = True
    act(agent, orders, 2, ill=True)
    assert not orders.valid
    agent._rests_until_s = 0.0
    act(agent, orders, 2)
    assert orders.taken == [2, 2]


def test_brokers_that_were_ended_are_not_ill_when_their_lease_is_back(agent: Agent) -> None:
    agent._was_healthy = True
    agent._begun_s = -math.inf
    act(agent, Orders(), 2)
    assert not agent._was_healthy


def test_a_site_that_wants_no_lease_any_more_stops_asking_for_it(agent: Agent) -> None:
    orders = Orders()
    act(agent, orders, 2)
    act(agent, orders, NO_TERM)
    act(agent, orders, 2)
    assert orders.taken == [2, 2]
