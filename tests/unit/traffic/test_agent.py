"""In which term a site should hold the lease, and which one it asks for when it gets none."""

from __future__ import annotations

from dataclasses import replace

from twinlog.traffic.agent import NO_TERM, renewed_term, term_wanted
from twinlog.traffic.moves import STEPS, Kind, Move, Step
from twinlog.traffic.standings import Where
from twinlog.traffic.votes import Answer

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


def test_a_lost_site_that_hears_of_its_successor_wants_nothing() -> None:
    assert term_wanted("a", Where("b", 4), None, 3) == NO_TERM


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
