"""The outcomes of a batch: made when they are looked at, and a list in all other respects."""

from __future__ import annotations

from twinlog import Done, NotDone
from twinlog.client.batch import Outcomes

REFUSED = NotDone("too large")
FOUND = Outcomes([(0, 7, False), REFUSED, (2, 8, False)])
WANTED = [Done(0, 7), REFUSED, Done(2, 8)]


def test_outcomes_are_indexed_cut_counted_and_iterated_over_as_a_list_is() -> None:
    assert [*FOUND] == WANTED and len(FOUND) == 3
    assert (FOUND[0], FOUND[-2], FOUND[1:]) == (WANTED[0], REFUSED, WANTED[1:])
    assert REFUSED in FOUND and Done(1, 7) not in FOUND


def test_a_record_that_is_there_is_a_done_and_no_bare_tuple() -> None:
    assert [type(one) for one in FOUND] == [Done, NotDone, Done]
    assert type(FOUND[0]) is Done


def test_outcomes_equal_a_list_of_the_same_and_look_like_one() -> None:
    assert FOUND == WANTED and WANTED[:2] != FOUND and FOUND != 3
    assert repr(FOUND) == repr(WANTED)
