"""Limits of a move: which copies they hold for."""

from __future__ import annotations

from twinlog.ops.assignment import Change
from twinlog.ops.throttles import FROM, TO, limited, taking_part

MOVED = Change("t", 0, (1, 2), (3, 1), 100)
REORDERED = Change("t", 1, (1, 2), (2, 1), 100)
OTHER = Change("u", 0, (2,), (4,), 100)


def test_copies_are_limited_where_they_are_read_and_where_they_are_written() -> None:
    assert limited([MOVED, OTHER]) == {"t": {FROM: "0:1,0:2", TO: "0:3"}, "u": {FROM: "0:2", TO: "0:4"}}


def test_a_change_of_order_copies_nothing_and_is_not_limited() -> None:
    assert limited([REORDERED]) == {}
    assert taking_part([REORDERED]) == set()


def test_brokers_on_both_sides_take_part() -> None:
    assert taking_part([MOVED, OTHER]) == {1, 2, 3, 4}
