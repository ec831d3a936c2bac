"""Asking beside somebody who may not wait."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from tests.running.traffic.loopback import WAIT_S, wait_until
from twinlog.errors import SiteError
from twinlog.traffic.clock import clock_s
from twinlog.traffic.inquiry import Inquiry
from twinlog.traffic.votes import Answer

ANSWER = Answer("witness", False, "", 3, "a")


class Voters:
    """Answer when they are let to."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.asked = 0

    def ask(self) -> Mapping[str, Answer]:
        self.asked += 1
        assert self.may_answer.wait(WAIT_S)
        return {"witness": ANSWER}


def test_looking_does_not_wait_for_voters_that_hang() -> None:
    voters = Voters()
    with Inquiry(voters.ask, every_s=0.0) as inquiry:
        before_s = clock_s()
        assert inquiry.told(before_s) == {}
        wait_until(lambda: voters.asked == 1)
        assert inquiry.told(before_s) == {}
        voters.may_answer.set()
        wait_until(lambda: inquiry.told(before_s) == {"witness": ANSWER})


def test_answers_to_an_earlier_question_are_not_taken_for_later_ones() -> None:
    voters = Voters()
    voters.may_answer.set()
    with Inquiry(voters.ask, every_s=0.0) as inquiry:
        before_s = clock_s()
        wait_until(lambda: bool(inquiry.told(before_s)))
        assert inquiry.told(clock_s()) == {}


def test_nobody_is_asked_while_nobody_looks() -> None:
    voters = Voters()
    voters.may_answer.set()
    with Inquiry(voters.ask, every_s=0.0) as inquiry:
        pass
    assert voters.asked == 0
    inquiry.told(0.0)
    assert voters.asked == 0


def test_asking_that_fails_is_no_answer_and_is_tried_again() -> None:
    asked: list[int] = []

    def ask() -> Mapping[str, Answer]:
        asked.append(1)
        if len(asked) == 1:
            raise SiteError("its certificate is being replaced")
        return {"witness": ANSWER}

    with Inquiry(ask, every_s=0.0) as inquiry:
        wait_until(lambda: bool(inquiry.told(0.0)))
    assert len(asked) > 1
