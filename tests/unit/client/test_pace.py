"""How often the standby is asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.client.pace import LEAST_S, MOST_REST_S, PAUSES_S, REST, TROUBLED_S, Pace


def test_copies_that_move_are_asked_for_again_at_once_and_others_ever_less_often() -> None:
    pace = Pace()
    quiet = [pace.next_pause(news=False, trouble=False, took_s=0.0).most_s for _ in range(len(PAUSES_S) + 1)]
    assert quiet == [*PAUSES_S[1:], PAUSES_S[-1], PAUSES_S[-1]]
    assert pace.next_pause(news=True, trouble=False, took_s=0.0) == (LEAST_S, LEAST_S)


def test_a_standby_that_does_not_answer_is_left_alone_for_a_while() -> None:
    assert Pace().next_pause(news=False, trouble=True, took_s=0.0).most_s == TROUBLED_S


def test_a_slow_answer_has_the_next_question_wait_although_copies_move() -> None:
    assert Pace().next_pause(news=True, trouble=False, took_s=0.01) == (0.01 * REST, 0.01 * REST)
    assert Pace().next_pause(news=True, trouble=False, took_s=5.0) == (MOST_REST_S, MOST_REST_S)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0, 10))))
def test_pauses_are_never_shorter_than_the_least_nor_longer_than_in_trouble(
    turns: list[tuple[bool, bool, float]],
) -> None:
    pace = Pace()
    for news, trouble, took_s in turns:
        least_s, most_s = pace.next_pause(news=news, trouble=trouble, took_s=took_s)
        assert LEAST_S <= least_s <= most_s <= TROUBLED_S
