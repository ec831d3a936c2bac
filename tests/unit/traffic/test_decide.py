"""What the manager does next, and the sentence that says why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.spec.model import Promote as Mode
from twinlog.spec.model import Role
from twinlog.traffic.decide import (
    Bus,
    Link,
    Nothing,
    Observation,
    Promote,
    ReadyToPromote,
    Resume,
    Return,
    Site,
    Tell,
    Wait,
    decide,
)
from twinlog.traffic.votes import VOTERS, Answer
from twinlog.traffic.watching import Health, Seen

NOW_S = 1000.0
HEALTHY = Seen(Health.HEALTHY, 0.0, NOW_S, "canaries are acknowledged")
FAILING = Seen(Health.FAILING, NOW_S - 2, NOW_S - 2, "no canary was acknowledged for 2.0 s: failed")
DEAD = Seen(Health.DEAD, NOW_S - 6, NOW_S - 6, "no canary was acknowledged for 6.0 s: failed")
UNKNOWN = Seen(Health.UNKNOWN, None, None, "no canary yet")
ACTIVE = Site(HEALTHY, Role.ACTIVE, 5, quorum_led=True, under_min_isr=0, agent_answers=True, holds_lease=True)
LOST = replace(
    ACTIVE, canary=DEAD, quorum_led=None, under_min_isr=None, agent_answers=False, holds_lease=False
)
STANDBY = Site(HEALTHY, Role.STANDBY, 5, quorum_led=True, under_min_isr=0, agent_answers=True)
BUS = Bus("a", 5, Mode.AUTOMATIC, failover_after_s=5.0)
FREE = {name: Answer(name, False, "", 5, "a") for name in ("site-b", "witness")}
HELD = {name: replace(answer, wait_s=3.0) for name, answer in FREE.items()}
LINK = Link(lag_records=12, lag_s=0.4)
WELL = Observation(BUS, {"a": ACTIVE, "b": STANDBY}, LINK, HELD)
A_LOST = replace(WELL, sites={"a": LOST, "b": STANDBY}, votes=FREE)
DIED = "site a is dead: no canary was acknowledged for 6.0 s: failed"
LACKED = "the standby lacked 12 records (0.4 s) when last seen"


def with_bus(seen: Observation, **changes: object) -> Observation:
    return replace(seen, bus=replace(seen.bus, **changes))  # type: ignore[arg-type]


def with_standby(seen: Observation, **changes: object) -> Observation:
    return replace(seen, sites={**seen.sites, "b": replace(STANDBY, **changes)})  # type: ignore[arg-type]


def test_all_is_well_nothing_and_how_far_the_standby_is() -> None:
    why = "site a is active and healthy; site b is ready; " + LACKED
    assert decide(WELL, NOW_S) == Nothing(why)


@pytest.mark.parametrize(
    ("votes", "says"),
    [
        ({}, "site-b and witness told nothing"),
        ({"site-b": HELD["site-b"]}, "witness told nothing"),
        ({**HELD, "witness": replace(HELD["witness"], blank=True)}, "witness without memory"),
        ({"witness": replace(HELD["witness"], blank=True)}, "site-b told nothing; witness without memory"),
    ],
)
def test_all_is_well_but_a_vote_says_that_a_person_is_needed(votes: dict[str, Answer], says: str) -> None:
    well = "site a is active and healthy; site b is ready, but needs a person to be promoted: "
    assert decide(replace(WELL, votes=votes), NOW_S) == Nothing(well + says)
    asked = decide(with_bus(replace(WELL, votes=votes), promote=Mode.ASK), NOW_S)
    assert asked == Nothing("site a is active and healthy; site b is ready; " + LACKED)


def test_active_failing_waits_until_it_would_be_dead() -> None:
    seen = replace(WELL, sites={"a": replace(ACTIVE, canary=FAILING), "b": STANDBY})
    step = decide(seen, NOW_S)
    why = "site a is failing: no canary was acknowledged for 2.0 s: failed"
    assert step == Wait(why, until_s=NOW_S + 3)


def test_active_dead_and_two_voters_free_promotes_and_says_what_is_lost() -> None:
    assert decide(A_LOST, NOW_S) == Promote("b", 6, f"{DIED}; {LACKED}")


def test_active_dead_and_promote_ask_is_ready_and_waits_for_a_person() -> None:
    step = decide(with_bus(A_LOST, promote=Mode.ASK), NOW_S)
    assert step == ReadyToPromote("b", 6, f"{DIED}; {LACKED}")


def test_promotion_takes_a_term_that_no_voter_has_heard_of() -> None:
    votes = {**FREE, "witness": Answer("witness", False, "", 9, "b")}
    assert decide(replace(A_LOST, votes=votes), NOW_S) == Promote("b", 10, f"{DIED}; {LACKED}")


@pytest.mark.parametrize(
    ("link", "says"),
    [
        (Link(), "how much the standby lacks is unknown"),
        (Link(0, 0.0), "the standby lacked nothing when last seen"),
        (Link(1, None), "the standby lacked 1 record when last seen"),
        (Link(900, 61.2), "the standby lacked 900 records (61.2 s) when last seen, which is far behind"),
    ],
)
@pytest.mark.parametrize("mode", list(Mode))
def test_promotion_in_either_mode_says_what_would_be_lost(link: Link, says: str, mode: Mode) -> None:
    step = decide(with_bus(replace(A_LOST, link=link), promote=mode), NOW_S)
    assert isinstance(step, Promote | ReadyToPromote) and says in step.why


@pytest.mark.parametrize(
    ("refusing", "says"),
    [
        (3, "; 3 partitions of site b would refuse writes"),
        (None, "; whether all partitions of site b take writes is unknown"),
    ],
)
def test_standby_with_partitions_short_of_copies_is_promoted_and_it_is_said(
    refusing: int | None, says: str
) -> None:
    step = decide(with_standby(A_LOST, under_min_isr=refusing), NOW_S)
    assert isinstance(step, Promote) and step.why.endswith(says)


def test_voters_keep_it_for_the_lost_site_waits() -> None:
    step = decide(replace(A_LOST, votes=HELD), NOW_S)
    assert step == Wait(f"{DIED}; {LACKED}; voters keep it for site a for 3.0 s yet", NOW_S + 1)


def test_voters_keep_it_and_its_agent_answers_is_left_to_that() -> None:
    """It ends brokers that take no writes by itself; one that finds them well is not overruled from afar."""
    hung = replace(LOST, agent_answers=True, holds_lease=True)
    step = decide(replace(A_LOST, sites={"a": hung, "b": STANDBY}, votes=HELD), NOW_S)
    says = "its agent answers, and gives the lease back when it finds that no broker takes writes"
    assert step == Wait(f"{DIED}; {LACKED}; {says}", NOW_S + 1)


@pytest.mark.parametrize("known", [0, 1])
def test_automatic_with_too_few_voters_asks_a_person(known: int) -> None:
    votes = dict(list(FREE.items())[:known]) | {"site-a": Answer("site-a", False, "", blank=True)}
    step = decide(replace(A_LOST, votes=votes), NOW_S)
    few = f"{known} of {VOTERS} voters can answer, so a person must say that it is"
    assert step == ReadyToPromote("b", 6, f"{DIED}; {LACKED}; {few}")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"canary": DEAD}, "site b is dead (no canary was acknowledged for 6.0 s: failed)"),
        ({"canary": UNKNOWN}, "site b is unknown (no canary yet)"),
        ({"canary": FAILING}, "site b is failing (no canary was acknowledged for 2.0 s: failed)"),
        ({"quorum_led": False}, "the quorum of site b has no leader"),
        ({"quorum_led": None}, "the quorum of site b is unknown"),
        ({"role": None}, "the role of site b is unknown, not standby of term 5"),
        ({"role": Role.ACTIVE, "term": 3}, "the role of site b is active of term 3, not standby of term 5"),
    ],
)
@pytest.mark.parametrize("mode", list(Mode))
def test_standby_unfit_is_never_promoted(changes: dict[str, object], why: str, mode: Mode) -> None:
    step = decide(with_bus(with_standby(A_LOST, **changes), promote=mode), NOW_S)
    assert step == Nothing(f"{DIED}; no failover is possible: {why}")


def test_manager_sees_nothing_at_all_decides_nothing() -> None:
    blind = Site(UNKNOWN, Role.STANDBY, 5)
    seen = replace(A_LOST, sites={"a": blind, "b": blind})
    assert decide(seen, NOW_S) == Nothing("nothing is seen of any site; is this machine cut off?")


def test_active_unknown_nothing_follows() -> None:
    seen = replace(A_LOST, sites={"a": replace(LOST, canary=UNKNOWN), "b": STANDBY})
    assert decide(seen, NOW_S) == Nothing("site a is unknown (no canary yet); nothing follows from that")


def test_move_in_progress_is_resumed_before_anything_else() -> None:
    step = decide(with_bus(A_LOST, move="failover from a to b: open the new site"), NOW_S)
    assert step == Resume("not finished: failover from a to b: open the new site")


AMID = "switchover from a to b: let the standby catch up"


def test_switchover_whose_source_is_dead_gives_way_to_a_promotion_in_a_later_term() -> None:
    seen = with_bus(A_LOST, move=AMID, move_term=6, gives_way=True)
    assert decide(seen, NOW_S) == Promote("b", 7, f"{DIED}; not finished: {AMID}; {LACKED}")
    asked = decide(with_bus(seen, promote=Mode.ASK), NOW_S)
    assert asked == ReadyToPromote("b", 7, f"{DIED}; not finished: {AMID}; {LACKED}")


def test_switchover_whose_source_is_failing_waits_until_it_would_be_dead() -> None:
    seen = replace(WELL, sites={"a": replace(ACTIVE, canary=FAILING), "b": STANDBY})
    step = decide(with_bus(seen, move=AMID, move_term=6, gives_way=True), NOW_S)
    assert isinstance(step, Wait) and step.until_s == NOW_S + 3


@pytest.mark.parametrize("canary", [HEALTHY, UNKNOWN])
def test_switchover_whose_source_is_not_dead_goes_on(canary: Seen) -> None:
    seen = replace(WELL, sites={"a": replace(ACTIVE, canary=canary), "b": STANDBY})
    step = decide(with_bus(seen, move=AMID, move_term=6, gives_way=True), NOW_S)
    assert step == Resume(f"not finished: {AMID}")


def test_switchover_whose_other_site_may_be_open_goes_on_whoever_is_dead() -> None:
    assert isinstance(decide(with_bus(A_LOST, move=AMID, move_term=6), NOW_S), Resume)


def test_site_that_was_away_is_told_of_the_calling_off_while_all_is_well() -> None:
    why = "site a is active and healthy; site b has not heard that a switchover was called off"
    assert decide(with_bus(WELL, untold="b"), NOW_S) == Tell("b", why)
    assert isinstance(decide(with_bus(A_LOST, untold="b"), NOW_S), Promote)


def test_paused_does_nothing_and_says_what_is_not_finished() -> None:
    step = decide(with_bus(A_LOST, paused="maintenance", move="return of b"), NOW_S)
    assert step == Nothing("paused: maintenance; not finished: return of b")


@pytest.mark.parametrize(
    "changes",
    [
        {"role": Role.ACTIVE, "term": 4},  # runs again, with the records that only it has
        {"role": Role.ACTIVE, "term": 4, "canary": DEAD},  # its agent answers, and waits to be told
        {"role": Role.STANDBY, "term": 4},
    ],
)
def test_lost_site_answers_again_is_taken_back(changes: dict[str, object]) -> None:
    step = decide(with_standby(WELL, **changes), NOW_S)
    assert isinstance(step, Return) and step.site == "b"
    assert step.why.endswith(f"was {changes['role']} of term 4: it must be taken back")


def test_lost_site_that_nobody_can_talk_to_is_not_taken_back() -> None:
    step = decide(with_standby(WELL, role=Role.ACTIVE, term=4, canary=DEAD, agent_answers=False), NOW_S)
    assert isinstance(step, Nothing) and "no failover is possible: site b is dead" in step.why


def test_two_voters_know_a_later_term_of_the_standby_this_manager_is_behind() -> None:
    votes = {name: replace(answer, term=6, holder="b") for name, answer in FREE.items()}
    step = decide(replace(A_LOST, votes=votes), NOW_S)
    assert step == Nothing("two voters know a later term of site b; the record here is old")


def test_site_stands_still_for_want_of_a_term_and_the_other_is_gone_asks_a_person() -> None:
    still = replace(LOST, agent_answers=True)
    votes = {"site-a": Answer("site-a", False, "", 5, "a"), "witness": Answer("witness", False, "", 6, "b")}
    gone = replace(STANDBY, canary=DEAD, agent_answers=False)
    step = decide(replace(A_LOST, sites={"a": still, "b": gone}, votes=votes), NOW_S)
    assert isinstance(step, ReadyToPromote) and (step.site, step.term) == ("a", 7)
    assert step.why.endswith("was site b never active in it? Then site a can go on")


@pytest.mark.parametrize("canary", [HEALTHY, DEAD])
def test_bus_of_one_site_has_nowhere_to_go(canary: Seen) -> None:
    step = decide(replace(WELL, sites={"a": replace(ACTIVE, canary=canary)}), NOW_S)
    assert isinstance(step, Nothing) and step.why.endswith("there is no other site")


maybe = st.sampled_from([True, False, None])
sites = st.builds(
    Site,
    canary=st.sampled_from([HEALTHY, FAILING, DEAD, UNKNOWN]),
    role=st.sampled_from([Role.ACTIVE, Role.STANDBY, None]),
    term=st.integers(4, 6),
    quorum_led=maybe,
    under_min_isr=st.sampled_from([0, 3, None]),
    agent_answers=st.booleans(),
    holds_lease=st.booleans(),
)
answers = st.builds(
    Answer,
    voter=st.just("one"),
    granted=st.just(False),
    why=st.just(""),
    term=st.integers(4, 7),
    holder=st.sampled_from(["a", "b"]),
    wait_s=st.sampled_from([0.0, 2.0]),
    blank=st.booleans(),
)
observations = st.builds(
    Observation,
    bus=st.builds(
        Bus,
        active=st.just("a"),
        term=st.just(5),
        promote=st.sampled_from(list(Mode)),
        failover_after_s=st.just(5.0),
        move=st.sampled_from(["", "failover"]),
        move_term=st.integers(4, 7),
        gives_way=st.booleans(),
        untold=st.sampled_from(["", "b"]),
        paused=st.sampled_from(["", "maintenance"]),
    ),
    sites=st.fixed_dictionaries({"a": sites, "b": sites}),
    link=st.builds(Link, st.sampled_from([0, 7, None]), st.sampled_from([0.0, 9.0, None])),
    votes=st.dictionaries(st.sampled_from(["site-a", "site-b", "witness"]), answers),
)


@given(seen=observations)
def test_any_observation_promotion_has_all_its_conditions(seen: Observation) -> None:
    step = decide(seen, NOW_S)
    assert step.why
    if isinstance(step, Wait):
        assert step.until_s >= NOW_S
    if not isinstance(step, Promote):
        return
    standby = seen.sites["b"]
    assert (step.site, seen.bus.promote, seen.bus.paused) == ("b", Mode.AUTOMATIC, "")
    assert not seen.bus.move or seen.bus.gives_way
    assert step.term > max(seen.bus.term, seen.bus.move_term)
    assert seen.sites["a"].canary.health is Health.DEAD
    assert (standby.canary.health, standby.role, standby.term) == (Health.HEALTHY, Role.STANDBY, 5)
    assert sum(answer.would_grant("b", step.term) for answer in seen.votes.values()) >= 2
    assert seen.link.loss() in step.why
