"""What an answer to a probe means: a refusal for want of copies, or anything else."""

from __future__ import annotations

from collections import Counter

import pytest

from twinlog.drills.probe import TAKEN, TOO_FEW_REFUSED, is_refusal, said


@pytest.mark.parametrize(
    ("reason", "refused"),
    [
        ("writing to 'orders': NOT_ENOUGH_REPLICAS", True),
        ("writing to 'orders': NOT_ENOUGH_REPLICAS_AFTER_APPEND", False),
        ("writing to 'orders': Local: Message timed out", False),
    ],
)
def test_only_the_answer_of_a_site_that_took_nothing_is_a_refusal(reason: str, refused: bool) -> None:
    assert is_refusal(reason) is refused


def test_answers_are_told_in_words() -> None:
    assert said(Counter({TOO_FEW_REFUSED: 23, TAKEN: 1})) == "23 refused with NOT_ENOUGH_REPLICAS, 1 taken"
    assert said(Counter()) == "nothing was sent"
