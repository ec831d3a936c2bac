"""Who is active, by what sites and disks say when the bus has forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from twinlog.errors import SiteError
from twinlog.spec.model import Role
from twinlog.traffic.moves import STEPS, Kind, Move, Step
from twinlog.traffic.recovery import Reign, Told, Voice, forgotten, reign
from twinlog.wire.roles import Standing

BEFORE = Reign("a", 1)
SILENT = Told(Voice.NOBODY, trouble="nothing listens there")


def told(site: str, role: Role, term: int, move: Move | None = None, by: Voice = Voice.SITE) -> Told:
    return Told(by, Standing("bus", site, role, term), move)


def move(kind: Kind, step: Step, term: int = 2) -> Move:
    return replace(Move.begin(kind, "bus", ("a", "b"), term), step=step)


def test_roles_are_those_of_the_highest_term() -> None:
    said = {"a": told("a", Role.ACTIVE, 1, by=Voice.DISKS), "b": told("b", Role.ACTIVE, 2)}
    assert reign(said, None, BEFORE) == Reign("b", 2)


def test_a_bus_whose_sites_were_never_told_is_as_declared() -> None:
    assert reign({"a": Told(Voice.SITE), "b": Told(Voice.DISKS)}, None, BEFORE) == BEFORE


def test_the_standby_of_a_term_names_the_active_beside_it() -> None:
    assert reign({"a": told("a", Role.STANDBY, 3), "b": SILENT}, None, BEFORE) == Reign("b", 3)


def test_an_active_beside_a_site_that_nobody_can_ask_is_doubted() -> None:
    said = {"a": told("a", Role.ACTIVE, 1), "b": SILENT}
    with pytest.raises(SiteError, match="whether site b was promoted") as caught:
        reign(said, None, BEFORE)
    assert caught.value.hint.endswith("twinlog recover --active a")
    assert reign(said, None, BEFORE, "a") == Reign("a", 1)


def test_a_failover_that_this_machine_wrote_down_is_believed() -> None:
    said = {"a": told("a", Role.ACTIVE, 1), "b": SILENT}
    assert reign(said, move(Kind.FAILOVER, Step.DONE), BEFORE) == Reign("b", 2, ("a",))


@pytest.mark.parametrize("step", STEPS[Kind.SWITCHOVER])
def test_a_switchover_counts_once_it_has_opened_the_other_site(step: Step) -> None:
    begun = move(Kind.SWITCHOVER, step)
    has_opened = begun.progress > STEPS[Kind.SWITCHOVER].index(Step.OPEN)
    said = {"a": told("a", Role.ACTIVE, 1), "b": told("b", Role.STANDBY, 1, begun)}
    assert reign(said, None, BEFORE) == (Reign("b", 2) if has_opened else Reign("a", 1))
    off = replace(begun, step=Step.DONE, called_off="no")
    assert reign({**said, "b": told("b", Role.STANDBY, 1, off)}, begun, BEFORE).lost == ()


@pytest.mark.parametrize("step", STEPS[Kind.FAILOVER])
def test_a_site_is_lost_from_the_first_step_of_a_failover_on(step: Step) -> None:
    said = {"a": Told(Voice.DISKS), "b": told("b", Role.ACTIVE, 2, move(Kind.FAILOVER, step))}
    assert reign(said, None, BEFORE) == Reign("b", 2, ("a",))


def test_a_site_that_a_switchover_had_to_leave_behind_is_lost() -> None:
    left = replace(move(Kind.SWITCHOVER, Step.DONE), lost="its disks are gone")
    said = {"a": told("a", Role.ACTIVE, 1, by=Voice.DISKS), "b": told("b", Role.ACTIVE, 2, left)}
    assert reign(said, None, BEFORE) == Reign("b", 2, ("a",))


@pytest.mark.parametrize("step", STEPS[Kind.RETURN])
def test_a_site_is_lost_until_its_logs_were_cut(step: Step) -> None:
    returning = replace(move(Kind.RETURN, step), begun_at=2.0)
    said = {"a": told("a", Role.ACTIVE, 1), "b": told("b", Role.ACTIVE, 2, returning)}
    was_cut = returning.progress > STEPS[Kind.RETURN].index(Step.CUT)
    assert reign(said, move(Kind.FAILOVER, Step.DONE), BEFORE).lost == (() if was_cut else ("a",))


def test_nobody_guesses_when_no_site_is_active_in_the_last_term() -> None:
    said = {"a": told("a", Role.STANDBY, 3), "b": told("b", Role.ACTIVE, 2)}
    with pytest.raises(SiteError, match="0 sites are said to be active in term 3"):
        reign(said, None, BEFORE)
    assert reign(said, None, BEFORE, "b") == Reign("b", 3)


def test_points_of_a_failover_that_nobody_here_remembers_are_found_again() -> None:
    failover = replace(move(Kind.FAILOVER, Step.DONE), points={"orders": {0: 7}})
    assert forgotten(failover, []) == failover
    assert forgotten(failover, [failover.term]) is None
    assert forgotten(move(Kind.SWITCHOVER, Step.DONE), []) is None
    assert forgotten(None, []) is None
