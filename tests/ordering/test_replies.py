"""Answers of a stream: in order, and none after a refusal, in whatever order they become known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.ordering.replies import Replies
from twinlog.ordering.statuses import SERVICE_UNAVAILABLE, SUCCESS


def test_answer_that_is_known_early_waits_for_those_before_it() -> None:
    replies = Replies()
    first, second = replies.begin(0.0, 1), replies.begin(0.0, 1)
    second.status = SUCCESS
    assert replies.due() == []
    first.status = SUCCESS
    assert replies.due() == [first, second]
    assert len(replies) == 0


@given(st.lists(st.booleans(), max_size=12), st.randoms())
def test_answers_come_in_the_order_of_questions_up_to_the_first_refusal(
    good: list[bool], order: object
) -> None:
    replies = Replies()
    answers = [replies.begin(0.0, 1) for _ in good]
    known = list(range(len(good)))
    order.shuffle(known)  # type: ignore[attr-defined]
    sent = []
    for index in known:
        answers[index].status = SUCCESS if good[index] else SERVICE_UNAVAILABLE
        sent += replies.due()
    last = good.index(False) + 1 if False in good else len(good)
    assert sent == answers[:last]
    assert replies.has_ended == (False in good)
    assert replies.size_bytes == 0 or replies.has_ended
