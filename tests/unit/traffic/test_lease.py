"""The holder's side: when a site may be active, and what it asks for next."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from twinlog.traffic.lease import Lease
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import Answer, Request, Wish

TIMING = Timing(4.0)
NOW_S = 100.0
GRANT = Request(Wish.GRANT, "a", 5)
TRY = Request(Wish.TRY, "a", 5)
A, B, W = "site-a", "site-b", "witness"


def lease(try_until_s: float = math.inf) -> Lease:
    return Lease("a", 5, TIMING, NOW_S, try_until_s)


def yes(voter: str, lease_s: float = 4.0) -> Answer:
    return Answer(voter, True, "", 5, "a", lease_s=lease_s)


def no(voter: str, term: int = 5, holder: str = "a", wait_s: float = 0.0) -> Answer:
    return Answer(voter, False, f"{voter} knows term {term} of site {holder}", term, holder, wait_s=wait_s)


def held(now_s: float = NOW_S) -> Lease:
    return lease().heard(GRANT, yes(A), now_s, now_s).heard(GRANT, yes(W), now_s, now_s)


def test_two_grants_valid_from_before_the_request_was_sent() -> None:
    one = lease().heard(GRANT, yes(A), NOW_S, NOW_S + 0.9)
    assert not one.state(NOW_S + 0.9).valid
    two = one.heard(GRANT, yes(W), NOW_S + 0.1, NOW_S + 1.0)
    state = two.state(NOW_S + 1.0)
    assert (state.valid, state.term, state.until_s) == (True, 5, NOW_S + 4)
    assert state.why == "site a holds term 5 by site-a and witness"
    assert not two.state(NOW_S + 4).valid


def test_three_grants_valid_until_the_second_last_ends() -> None:
    three = held().heard(GRANT, yes(B), NOW_S + 2, NOW_S + 2).heard(GRANT, yes(W), NOW_S + 1, NOW_S + 2)
    assert three.state(NOW_S + 2).until_s == NOW_S + 5


def test_voter_that_grants_less_counts_for_less() -> None:
    two = lease().heard(GRANT, yes(A), NOW_S, NOW_S).heard(GRANT, yes(W, lease_s=1.0), NOW_S, NOW_S)
    assert two.state(NOW_S).until_s == NOW_S + 1


def test_answer_overtaken_by_a_later_one_shortens_nothing() -> None:
    two = held(NOW_S + 2).heard(GRANT, yes(W), NOW_S, NOW_S + 2)
    assert two.state(NOW_S + 2).until_s == NOW_S + 6


def test_without_a_lease_voters_are_tried_first_and_asked_when_two_would() -> None:
    new = lease()
    assert new.request(NOW_S) == TRY
    one = new.heard(TRY, yes(A), NOW_S, NOW_S)
    assert one.request(NOW_S) == TRY and one.pause_s(TRY, NOW_S) > 0
    two = one.heard(TRY, yes(W), NOW_S, NOW_S)
    assert two.request(NOW_S) == GRANT and two.pause_s(TRY, NOW_S) == 0
    assert two.request(NOW_S + TIMING.renew_s) == TRY, "what they said is old by then"


def test_with_a_lease_it_is_renewed_three_times_in_its_length() -> None:
    assert held().request(NOW_S + 1) == GRANT
    assert held().pause_s(GRANT, NOW_S) == pytest.approx(4 / 3)


def test_refused_for_a_moment_asks_again_when_that_is_over() -> None:
    assert lease().heard(TRY, no(A, wait_s=0.2), NOW_S, NOW_S).pause_s(TRY, NOW_S) == 0.2
    assert lease().heard(TRY, no(A, wait_s=9), NOW_S, NOW_S).pause_s(TRY, NOW_S) == TIMING.retry_s
    assert lease().heard(TRY, no(A, wait_s=1e-9), NOW_S, NOW_S).pause_s(TRY, NOW_S) == TIMING.retry_s / 4


def test_higher_term_at_a_voter_while_valid_is_outbid() -> None:
    raised = held().heard(GRANT, no(B, 7, "b"), NOW_S, NOW_S)
    asks = raised.request(NOW_S)
    assert asks == Request(Wish.GRANT, "a", 8)
    assert raised.state(NOW_S).term == 5
    won = raised.heard(asks, yes(B), NOW_S, NOW_S).heard(asks, yes(A), NOW_S, NOW_S)
    assert (won.state(NOW_S).term, won.held) == (8, 8)


def test_higher_term_at_a_voter_after_a_gap_is_left_alone() -> None:
    late_s = NOW_S + 10
    assert lease().heard(TRY, no(B, 7, "b"), NOW_S, NOW_S).request(NOW_S) == TRY
    raised = held().heard(GRANT, no(B, 7, "b"), NOW_S, NOW_S)
    assert raised.request(late_s) == TRY, "the other site may have been active meanwhile"


def test_given_back_is_over_at_once_and_no_answer_revives_it() -> None:
    ended, tells = held().give_back()
    assert tells == Request(Wish.RELEASE, "a", 5)
    revived = ended.heard(GRANT, yes(A), NOW_S, NOW_S).heard(GRANT, yes(W), NOW_S, NOW_S)
    assert not revived.state(NOW_S).valid and revived.request(NOW_S) is None
    assert revived.state(NOW_S).why == "site a gave its lease back"


def test_answer_to_an_earlier_lease_does_not_count() -> None:
    assert held(NOW_S - 1) == lease()


def test_order_that_did_not_succeed_in_time_is_dropped() -> None:
    limited = lease(try_until_s=NOW_S + 10)
    assert limited.request(NOW_S + 9) == TRY
    assert limited.request(NOW_S + 10) is None
    once_held = replace(held(), try_until_s=NOW_S + 10)
    assert once_held.request(NOW_S + 20) == TRY, "a site that was active goes on trying"


def test_no_lease_says_who_refused_and_why() -> None:
    refused = lease().heard(TRY, no(W, 6, "b"), NOW_S, NOW_S)
    why = "site a has fewer than two grants (witness: witness knows term 6 of site b)"
    assert refused.state(NOW_S).why == why
