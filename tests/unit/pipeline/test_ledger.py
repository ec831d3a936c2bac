"""A partition has one holder, and the next one knows how it came free."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.pipeline.ledger import Ledger, Task, TopicPartition

FIRST, SECOND = Task(1, 0, 0), Task(2, 0, 0)
P0, P1 = ("orders", 0), ("orders", 1)


def ledger() -> Ledger:
    made = Ledger()
    made.assign(1, {0: [P0, P1]})
    return made


def test_what_nobody_held_in_this_generation_was_not_handed_over() -> None:
    assert ledger().take(FIRST) == {P0: False, P1: False}


def test_what_was_handed_over_in_order_is_taken_as_such_once() -> None:
    made = ledger()
    made.take(FIRST)
    made.assign(2, {0: [P0]})
    made.give_up(FIRST, orderly=True)
    assert made.take(SECOND) == {P0: True}
    made.give_up(SECOND, orderly=False)
    assert made.take(Task(2, 0, 1)) == {P0: False}


def test_what_was_in_trouble_when_handed_over_is_looked_at() -> None:
    made = ledger()
    made.take(FIRST)
    made.assign(2, {0: [P0, P1]})
    made.give_up(FIRST, orderly=True, doubtful=[P1])
    assert made.take(SECOND) == {P0: True, P1: False}


def test_nobody_takes_what_another_holds() -> None:
    made = ledger()
    made.take(FIRST)
    made.assign(2, {0: [P0], 1: []})
    assert made.in_the_way(SECOND) == {FIRST}
    assert not made.in_the_way(Task(2, 1, 0))
    with pytest.raises(AssertionError, match="others hold"):
        made.take(SECOND)


def test_a_later_attempt_waits_for_the_earlier_one_too() -> None:
    made = ledger()
    made.take(FIRST)
    assert made.in_the_way(Task(1, 0, 1)) == {FIRST}


def test_tasks_of_an_epoch_long_over_get_nothing() -> None:
    made = ledger()
    made.assign(2, {0: [P0]})
    made.assign(3, {0: [P0]})
    assert made.take(FIRST) == {}


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=40)
)
def test_no_partition_ever_has_two_holders(moves: list[tuple[int, int, int, bool]]) -> None:
    made = Ledger()
    partitions = [("orders", number) for number in range(6)]
    held: dict[TopicPartition, Task] = {}
    for epoch, slot, attempt, orderly in moves:
        made.assign(epoch, {number: partitions[number::3] for number in range(3)})
        task = Task(epoch, slot, attempt)
        if task in made.holders:
            made.give_up(task, orderly=orderly)
            held = {partition: holder for partition, holder in held.items() if holder != task}
        elif not made.in_the_way(task):
            for partition in made.take(task):
                assert partition not in held
                held[partition] = task
        assert made.holders == frozenset(held.values())
