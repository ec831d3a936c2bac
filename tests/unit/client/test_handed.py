"""What a consumer commits, and what it hands out again."""

from __future__ import annotations

import gc

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from twinlog.client.consumer import MOST_AT_ONCE
from twinlog.client.handed import Handed
from twinlog.wire.messages import is_one_place, to_records
from twinlog.wire.received import Habit, Received

PLACES = (("orders", 0), ("orders", 1))


def record(place: tuple[str, int], offset: int) -> Received:
    return Received(*place, offset, None, b"x", (), 0)


def unopened(records: list[Received]) -> list[Received]:
    """The same, as a Receiver hands them over whose program looks at values only."""
    messages = [
        Message(one.topic, one.partition, one.offset, None, one.value, timestamp=(1, 0)) for one in records
    ]
    return to_records(messages, Habit(), is_one_place=is_one_place(messages))


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.integers(1, 5)), max_size=12), st.data())
def test_positions_are_behind_the_last_handed_out_and_beginnings_at_the_first(
    runs: list[tuple[tuple[str, int], int]], data: st.DataObject
) -> None:
    handed = Handed()
    ends = dict.fromkeys(PLACES, 0)
    firsts: dict[tuple[str, int], int] = {}
    lasts: dict[tuple[str, int], int] = {}
    for place, count in runs:
        read = [record(place, ends[place] + number) for number in range(count)]
        ends[place] += count
        if data.draw(st.booleans()):  # a batch may be of several partitions
            read += [record(other, ends[other]) for other in PLACES]
            ends = {other: end + 1 for other, end in ends.items()}
        is_known = len({one[:2] for one in read}) == 1 and data.draw(st.booleans())
        handed.fill(unopened(read) if data.draw(st.booleans()) else read, is_one_place=is_known)
        while not handed.is_empty:
            most = data.draw(st.integers(1, 8))
            for one in filter(None, [handed.one()] if most == 1 else handed.many(most)):
                firsts.setdefault(one[:2], one.offset)
                lasts[one[:2]] = one.offset + 1
            if data.draw(st.booleans()):
                assert handed.positions == lasts
        if data.draw(st.booleans()):
            handed.clear()
            firsts, lasts = {}, {}
    assert handed.positions == lasts
    assert handed.beginnings == firsts


def three() -> Handed:
    """Offsets 0 to 2 of both partitions, of which the first four records were handed out."""
    handed = Handed()
    handed.fill([record(place, offset) for place in PLACES for offset in range(3)])
    handed.many(4)
    return handed


def test_what_others_read_now_is_neither_handed_out_nor_committed() -> None:
    handed = three()
    handed.drop([PLACES[1]])
    assert handed.is_empty
    assert handed.positions == {PLACES[0]: 3}


def test_a_move_back_uncommits_what_lies_behind_it_and_keeps_what_lies_before() -> None:
    handed = three()
    handed.move({PLACES[0]: 2})
    assert handed.positions == {PLACES[0]: 2, PLACES[1]: 1}
    assert handed.many(10) == [record(PLACES[1], 1), record(PLACES[1], 2)]


def test_a_move_back_before_all_that_was_handed_out_leaves_nothing_to_commit() -> None:
    handed = three()
    handed.move({PLACES[1]: 0})
    assert handed.is_empty
    assert handed.positions == {PLACES[0]: 3}
    assert handed.beginnings == {PLACES[0]: 0}


def test_a_move_forward_commits_no_more_than_was_handed_out() -> None:
    handed = three()
    handed.move({PLACES[0]: 100, PLACES[1]: -1})
    assert handed.positions == {PLACES[0]: 3, PLACES[1]: 1}


def test_what_is_left_is_handed_out_one_by_one_and_counted() -> None:
    handed = three()
    assert [one.offset for one in handed.rest()] == [1, 2]
    assert handed.is_empty and handed.positions == {PLACES[0]: 3, PLACES[1]: 3}


def test_handing_out_one_by_one_ends_when_reading_goes_on_elsewhere() -> None:
    handed = Handed()
    handed.fill([record(PLACES[0], offset) for offset in range(3)])
    rest = handed.rest()
    assert next(rest).offset == 0
    handed.move({PLACES[0]: 0})
    assert list(rest) == [] and handed.positions == {}


def test_handing_out_one_by_one_ends_when_the_consumer_is_closed() -> None:
    handed = Handed()
    handed.fill([record(PLACES[0], offset) for offset in range(3)])
    rest = handed.rest()
    assert next(rest).offset == 0
    handed.fill([])
    assert list(rest) == [] and handed.positions == {PLACES[0]: 1}


def test_a_batch_that_is_handed_out_whole_is_the_callers_and_counts() -> None:
    handed = Handed()
    handed.fill([record(PLACES[0], offset) for offset in range(3)])
    handed.many(500).clear()
    assert handed.is_empty and handed.positions == {PLACES[0]: 3} and handed.beginnings == {PLACES[0]: 0}


@pytest.mark.parametrize(("moved", "left"), [(PLACES[0], []), (PLACES[1], [1, 2])])
def test_records_that_are_not_taken_out_of_their_messages_are_dropped_by_partition(
    moved: tuple[str, int], left: list[int]
) -> None:
    handed = Handed()
    handed.fill(unopened([record(PLACES[0], offset) for offset in range(3)]))
    assert handed.one() == record(PLACES[0], 0)
    handed.drop([moved])
    assert [one.offset for one in handed.rest()] == left


def test_batches_read_one_after_the_other_are_never_searched_for_garbage() -> None:
    searches: list[str] = []

    def told(phase: str, _: object) -> None:
        searches.append(phase)

    handed = Handed()
    records = [record(PLACES[0], number) for number in range(MOST_AT_ONCE)]
    gc.collect()
    gc.callbacks.append(told)
    try:
        for _ in range(5):
            handed.fill(unopened(records), is_one_place=True)
            assert sum(len(one.value or b"") for one in handed.many(MOST_AT_ONCE)) == MOST_AT_ONCE
    finally:
        gc.callbacks.remove(told)
    assert not searches
