"""One voter: what it grants, what it refuses and why, and what it does after a start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.traffic.timing import Timing, wait_after
from twinlog.traffic.votes import WITNESS, Answer, Memory, Request, Voter, Wish

TIMING = Timing(4.0)
NOW_S = 100.0
HELD = Memory(5, "a", 4.0)


def grant(site: str, term: int) -> Request:
    return Request(Wish.GRANT, site, term)


def voter(memory: Memory | None = HELD, free_at_s: float = NOW_S) -> Voter:
    return Voter(WITNESS, TIMING, memory, free_at_s)


def test_lease_granted_the_other_site_waits_for_lease_and_margin() -> None:
    after, answer = voter().consider(grant("b", 6), NOW_S)
    assert answer.granted and answer.lease_s == 4.0
    assert after.memory == Memory(6, "b", 4.0)
    late_s = NOW_S + TIMING.wait_s
    _, early = after.consider(grant("a", 7), late_s - 0.1)
    _, then = after.consider(grant("a", 7), late_s)
    assert (early.granted, then.granted) == (False, True)
    assert early.why == "witness knows term 6 of site b, for 0.1 s yet"


def test_renewal_at_any_time_is_granted_and_memory_stays() -> None:
    before = voter(free_at_s=NOW_S + 3)
    after, answer = before.consider(grant("a", 5), NOW_S)
    assert answer.granted and after.memory == before.memory
    assert after.free_at_s == NOW_S + TIMING.wait_s


@pytest.mark.parametrize(("site", "term"), [("b", 5), ("b", 4), ("a", 4)])
def test_term_that_is_taken_or_past_is_refused_even_when_the_lease_is_over(site: str, term: int) -> None:
    before = voter()
    after, answer = before.consider(grant(site, term), NOW_S + 1000)
    assert (after, answer.granted) == (before, False)
    assert answer.why == "witness knows term 5 of site a"


def test_holder_asks_for_a_higher_term_it_gets_it_at_once() -> None:
    after, answer = voter(free_at_s=NOW_S + 3).consider(grant("a", 8), NOW_S)
    assert answer.granted and after.memory == Memory(8, "a", 4.0)


def test_release_frees_the_voter_and_ends_the_term_for_good() -> None:
    held = voter(free_at_s=NOW_S + 3)
    after, noted = held.consider(Request(Wish.RELEASE, "a", 7), NOW_S)
    assert noted.granted and after.memory == Memory(7, "a", 4.0, released=True)
    _, renewal = after.consider(grant("a", 7), NOW_S)
    _, other = after.consider(grant("b", 8), NOW_S)
    assert (renewal.granted, other.granted) == (False, True)
    assert renewal.why == "term 7 was given back"


@pytest.mark.parametrize("request_", [Request(Wish.RELEASE, "b", 9), Request(Wish.RELEASE, "a", 4)])
def test_release_by_another_site_or_of_a_past_term_changes_nothing(request_: Request) -> None:
    held = voter(free_at_s=NOW_S + 3)
    assert held.consider(request_, NOW_S)[0] == held


def test_start_with_memory_only_the_holder_is_served_at_first() -> None:
    started = Voter.started(WITNESS, TIMING, HELD, NOW_S)
    _, other = started.consider(grant("b", 6), NOW_S)
    _, same = started.consider(grant("a", 5), NOW_S)
    assert (other.granted, same.granted) == (False, True)
    assert other.wait_s == pytest.approx(TIMING.wait_s)


def test_start_after_a_longer_lease_was_granted_waits_for_that() -> None:
    started = Voter.started(WITNESS, TIMING, Memory(5, "a", 30.0), NOW_S)
    assert started.free_at_s == NOW_S + wait_after(30.0)


def test_start_after_a_release_waits_for_nothing() -> None:
    assert Voter.started(WITNESS, TIMING, Memory(5, "a", 4.0, released=True), NOW_S).free_at_s == NOW_S


def told(name: str, memory: Memory | None) -> Answer:
    return Voter(name, TIMING, memory, NOW_S).consider(Request(Wish.TELL), NOW_S)[1]


def test_no_memory_refuses_everything_until_both_otherstold() -> None:
    blank = Voter.started(WITNESS, TIMING, None, NOW_S)
    _, refused = blank.consider(grant("a", 9), NOW_S + 100)
    assert refused.blank and refused.why == "witness has no memory and must first hear both others"
    later_s = NOW_S + TIMING.wait_s
    both = {"site-a": told("site-a", Memory(4, "a", 4.0)), "site-b": told("site-b", Memory(6, "b", 4.0))}
    assert not blank.wants_to_learn(later_s - 0.1) and blank.wants_to_learn(later_s)
    assert blank.learned(both, later_s).memory == Memory(6, "b", 4.0)


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"site-a": told("site-a", HELD)},
        {"site-a": told("site-a", HELD), "site-b": told("site-b", None)},
        {"site-a": told("site-a", HELD), "witness": told("witness", HELD)},
    ],
)
def test_no_memory_and_one_other_that_knows_learns_nothing(others: dict[str, Answer]) -> None:
    blank = Voter.started(WITNESS, TIMING, None, NOW_S)
    assert blank.learned(others, NOW_S + 100) == blank


def test_memory_written_and_read_is_the_same() -> None:
    memory = Memory(7, "b", 4.5, released=True)
    assert Memory.from_json(memory.to_json()) == memory


@pytest.mark.parametrize("term", [5, 6, 7])
@pytest.mark.parametrize("site", ["a", "b"])
@pytest.mark.parametrize("wait_s", [0.0, 2.0])
def test_what_a_voter_tells_says_whether_it_would_grant(term: int, site: str, wait_s: float) -> None:
    held = voter(free_at_s=NOW_S + wait_s)
    _, tells = held.consider(Request(Wish.TELL), NOW_S)
    _, tried = held.consider(Request(Wish.TRY, site, term), NOW_S)
    assert tells.would_grant(site, term) == (tried.granted and term > 5)


requests = st.builds(
    Request, st.sampled_from(list(Wish)), st.sampled_from(["a", "b"]), st.integers(min_value=0, max_value=9)
)


@given(asked=st.lists(st.tuples(requests, st.floats(min_value=0, max_value=6)), max_size=30))
def test_any_questions_terms_never_go_back_and_the_holder_is_never_overtaken(
    asked: list[tuple[Request, float]],
) -> None:
    now_s, one = NOW_S, voter(Memory(), NOW_S)
    until_s, holder = 0.0, ""
    for request, pause_s in asked:
        now_s += pause_s
        before = one.memory
        one, answer = one.consider(request, now_s)
        assert before is not None and one.memory is not None and one.memory.term >= before.term
        if request.wish is Wish.RELEASE and answer.granted:
            until_s = now_s
        if request.wish is Wish.GRANT and answer.granted:
            assert request.site == holder or now_s >= until_s
            holder, until_s = request.site, now_s + TIMING.wait_s


@pytest.mark.parametrize(
    ("failover_after_s", "free_after_s"), [(2.75, 2.75), (5.0, 4.6), (10.0, 8.7), (60.0, 50)]
)
def test_failover_after_a_lease_fits_into_it(failover_after_s: float, free_after_s: float) -> None:
    assert Timing.for_failover(failover_after_s).wait_s <= free_after_s


def test_short_failover_after_the_lease_is_the_longer_one() -> None:
    timing = Timing.for_failover(0.5)
    assert timing.lease_s == 2.0
    assert timing.wait_s == pytest.approx(2.55, abs=0.01)
