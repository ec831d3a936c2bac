"""Which site clients go to, by what the sites say of themselves."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from twinlog.spec.model import Role
from twinlog.traffic.moves import Kind, Move, Step
from twinlog.traffic.standings import Told, where_to
from twinlog.wire.roles import Standing


def told(site: str, role: Role, term: int, move: Move | None = None, trouble: str = "") -> Told:
    return Told(Standing("bus", site, role, term), move, 1.0, trouble)


def test_the_active_site_is_where_clients_go() -> None:
    found = where_to({"a": told("a", Role.ACTIVE, 1), "b": told("b", Role.STANDBY, 1)})
    assert (found.active, found.term) == ("a", 1)


def test_a_lost_site_that_still_calls_itself_active_is_not_believed() -> None:
    found = where_to({"a": told("a", Role.ACTIVE, 1), "b": told("b", Role.ACTIVE, 2)})
    assert (found.active, found.term) == ("b", 2)


def test_a_site_that_does_not_answer_stays_active_by_what_it_said_last() -> None:
    silent = told("a", Role.ACTIVE, 1, trouble="nothing listens there")
    assert where_to({"a": silent, "b": told("b", Role.STANDBY, 1)}).active == "a"


def test_a_site_that_never_answered_is_named_when_the_other_is_a_standby() -> None:
    found = where_to({"a": Told(trouble="nothing listens there"), "b": told("b", Role.STANDBY, 1)})
    assert found.active is None
    assert "site a" in found.reason
    assert "nothing listens there" in found.reason


def test_a_standby_of_a_later_term_means_that_the_old_active_is_active_no_more() -> None:
    found = where_to({"a": told("a", Role.ACTIVE, 1), "b": told("b", Role.STANDBY, 2)})
    assert found.active is None


def test_nobody_goes_anywhere_while_a_move_is_under_way() -> None:
    move = Move.begin(Kind.SWITCHOVER, "bus", ("a", "b"), 2)
    found = where_to({"a": told("a", Role.ACTIVE, 1), "b": told("b", Role.STANDBY, 1, move)})
    assert found.active is None
    assert str(move) in found.reason


def test_a_move_that_is_over_or_of_an_earlier_term_closes_nothing() -> None:
    begun = Move.begin(Kind.SWITCHOVER, "bus", ("a", "b"), 2)
    for move, term in ((replace(begun, step=Step.DONE, called_off="no"), 1), (begun, 3)):
        found = where_to({"a": told("a", Role.ACTIVE, term, move), "b": told("b", Role.STANDBY, term)})
        assert found.active == "a"


standings = st.builds(told, st.just("x"), st.sampled_from(Role), st.integers(1, 4))


@given(standings, standings)
def test_clients_never_go_to_a_site_of_an_earlier_term(one: Told, other: Told) -> None:
    assert one.standing is not None
    assert other.standing is not None
    told_by = {
        "a": replace(one, standing=replace(one.standing, site="a")),
        "b": replace(other, standing=replace(other.standing, site="b")),
    }
    found = where_to(told_by)
    if found.active is not None:
        chosen = told_by[found.active].standing
        assert chosen is not None
        assert chosen.role is Role.ACTIVE
        assert chosen.term == max(one.standing.term, other.standing.term)
