"""Records as programs see them, whether or not they were taken out of librdkafka's messages yet."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from twinlog.wire.messages import is_one_place, to_records, without_errors
from twinlog.wire.received import Habit, Received, are_of_one_place, spot_of

HEADERS = [("a", b"1"), ("b", None)]
WHOLE = Received("orders", 2, 41, b"k", b"v", tuple(HEADERS), 1_700_000_000_123)
LATER = WHOLE._replace(offset=42)


def message(record: Received) -> Any:
    return Message(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=list(record.headers) or None,
        timestamp=(1, record.timestamp_ms),
    )


def records_in(messages: list[Any], habit: Habit, only_topic: str | None = None) -> list[Received]:
    return to_records(messages, habit, is_one_place=is_one_place(messages, only_topic))


def made(*records: Received, opens: bool = False) -> list[Received]:
    return records_in(list(map(message, records)), Habit(opens=opens))


LOOKS: list[Callable[[Any], Any]] = [
    *(lambda one, name=name: getattr(one, name) for name in Received._fields),
    *(lambda one, index=index: one[index] for index in (0, 6, -1, slice(2), slice(None, None, -1))),
    tuple,
    list,
    len,
    hash,
    repr,
    str,
    lambda one: (*one,),
    lambda one: one._asdict(),
    lambda one: one._replace(key=None),
    lambda one: one.index(b"v"),
    lambda one: one.count(41),
    lambda one: (b"k" in one, b"x" in one),
    lambda one: one + (1,),  # noqa: RUF005
    lambda one: (1,) + one,  # noqa: RUF005
    lambda one: one * 2,
    lambda one: 2 * one,
    lambda one: (one == WHOLE, one == WHOLE, one == tuple(WHOLE), tuple(WHOLE) == one, one == LATER),
    lambda one: (one != WHOLE, one != WHOLE, one != LATER, one != LATER),
    lambda one: (one < LATER, one <= LATER, one > LATER, one >= LATER, one < LATER, one > LATER),
    lambda one: {WHOLE: 1}[one],
    lambda one: {one: 1}[WHOLE],
    lambda one: sorted([LATER, one]),
    copy.copy,
    copy.deepcopy,
    lambda one: pickle.loads(pickle.dumps(one)),
    lambda one: isinstance(one, Received),
]


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("look", LOOKS)
def test_record_made_of_a_message_looks_like_one_that_was_made_by_hand(
    look: Callable[[Any], Any], opens: bool
) -> None:
    assert look(made(WHOLE, opens=opens)[0]) == look(WHOLE)


def test_record_that_is_taken_out_equals_one_that_is_not_from_either_side() -> None:
    (out,), (inside, later) = made(WHOLE, opens=True), made(WHOLE, LATER)
    assert out == inside and inside == out
    assert not operator.ne(out, inside) and not operator.ne(inside, out)
    assert out < later and later > out and inside < later and {out, inside, WHOLE} == {WHOLE}


def test_where_only_values_are_looked_at_nothing_else_is_taken_out() -> None:
    habit = Habit()
    for record in records_in([message(WHOLE), message(LATER)], habit):
        assert record.value == b"v"
        spot_of(record)
    assert not habit.opens


@pytest.mark.parametrize("look", [lambda one: one.key, lambda one: one[4], tuple, hash, repr])
def test_records_are_made_whole_once_a_program_has_looked_at_more_than_a_value(
    look: Callable[[Any], Any],
) -> None:
    habit = Habit()
    look(records_in([message(WHOLE)], habit)[0])
    assert habit.opens
    (record,) = records_in([message(WHOLE)], habit)
    assert tuple.__eq__(record, WHOLE)  # without any help from the record


def test_errors_in_a_batch_are_no_records() -> None:
    ended = Message(topic="orders", partition=2, error=KafkaError(KafkaError._PARTITION_EOF))
    left = without_errors([message(WHOLE), ended, message(LATER)])
    assert records_in(left, Habit()) == [WHOLE, LATER]
    assert records_in(without_errors([ended]), Habit()) == []


RECORDS = st.builds(
    Received,
    st.sampled_from(["orders", "payments"]),
    st.integers(0, 2),
    st.integers(0, 2**62),
    st.none() | st.binary(max_size=3),
    st.none() | st.binary(max_size=3),
    st.lists(st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=2)), max_size=2).map(tuple),
    st.integers(-1, 2**40),
)


@given(st.lists(RECORDS, max_size=6), st.booleans())
def test_records_of_any_batch_are_what_the_messages_say(records: list[Received], opens: bool) -> None:
    found = made(*records, opens=opens)
    assert [spot_of(one) for one in found] == [(one[:2], one.offset) for one in records]
    if records:
        are_of_one = len({one[:2] for one in records}) == 1
        assert is_one_place(list(map(message, records))) == are_of_one_place(found) == are_of_one
    assert found == records


@given(st.lists(RECORDS.map(lambda one: one._replace(topic="orders")), max_size=6), st.booleans())
def test_records_of_the_only_topic_are_what_the_messages_say(records: list[Received], opens: bool) -> None:
    assert records_in(list(map(message, records)), Habit(opens=opens), "orders") == records
