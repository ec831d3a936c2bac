"""Calls that may hang, and what becomes of their callers."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from twinlog.wire.errands import Errands

SOON_S = 5.0
BRIEFLY_S = 0.05


def does(*calls: Callable[[], object]) -> Callable[[], None]:
    """One call of several."""

    def all_of_them() -> None:
        for call in calls:
            call()

    return all_of_them


def refuses() -> None:
    raise KeyError("no")


def test_call_gives_its_answer_or_its_error() -> None:
    errands = Errands()
    assert errands.run(lambda: 7, SOON_S) == 7
    with pytest.raises(KeyError):
        errands.run(refuses, SOON_S)
    assert errands.run(lambda: 8, SOON_S) == 8


def test_caller_of_a_call_that_hangs_goes_on_after_its_time() -> None:
    errands, go_on = Errands(), threading.Event()
    with pytest.raises(TimeoutError):
        errands.run(go_on.wait, BRIEFLY_S)
    go_on.set()


def test_next_call_waits_for_the_one_that_hangs_and_is_not_made_before_it() -> None:
    errands, go_on, made = Errands(), threading.Event(), list[str]()
    with pytest.raises(TimeoutError):
        errands.run(does(lambda: go_on.wait(SOON_S), lambda: made.append("first")), BRIEFLY_S)
    with pytest.raises(TimeoutError, match="the one before has not ended"):
        errands.run(lambda: made.append("second"), BRIEFLY_S)
    go_on.set()
    errands.run(lambda: made.append("third"), SOON_S)
    assert made == ["first", "third"]


def test_last_call_is_made_at_once_or_by_the_one_that_hangs() -> None:
    errands, made = Errands(), list[str]()
    errands.last(lambda: made.append("at once"))
    assert made == ["at once"]
    go_on, ended = threading.Event(), threading.Event()
    with pytest.raises(TimeoutError):
        errands.run(does(lambda: go_on.wait(SOON_S), lambda: made.append("hung")), BRIEFLY_S)
    errands.last(does(lambda: made.append("last"), ended.set))
    assert made == ["at once"]
    go_on.set()
    assert ended.wait(SOON_S)
    assert made == ["at once", "hung", "last"]
