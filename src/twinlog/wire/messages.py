"""librdkafka's messages: which of a batch still count, and the records in them. Pure.

`receiver` calls it for every batch. What is asked of each message is asked of all in one go, by calls that
never enter Python code: a Python call for each record would cost more than librdkafka does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import repeat
from operator import itemgetter
from typing import Any

from confluent_kafka import Message

from twinlog.wire.offsets import TopicPartition
from twinlog.wire.received import NO_HEADERS, Habit, Opened, Received, Unopened

_MS = itemgetter(1)


def place_of(message: Any) -> TopicPartition:
    """The partition of a message."""
    return message.topic(), message.partition()


def without_errors(messages: list[Any]) -> list[Any]:
    """The messages that are records."""
    if not any(map(Message.error, messages)):
        return messages
    return [message for message in messages if message.error() is None]


def without_stale(
    got: list[Any], gone: Collection[TopicPartition], assigned: Collection[TopicPartition]
) -> list[Any]:
    """Without messages of partitions that were lost in the middle of a batch.

    One that is assigned again begins where the group had committed, so what was collected before ends
    where its offsets go back. In doubt a record is kept: to see it twice is less than never to see it.
    """
    begins: dict[TopicPartition, int] = {}
    last: dict[TopicPartition, int] = {}
    places = list(map(place_of, got))
    for index, (place, message) in enumerate(zip(places, got, strict=True)):
        if message.offset() <= last.get(place, -1):
            begins[place] = index
        last[place] = message.offset()
    return [
        message
        for index, (place, message) in enumerate(zip(places, got, strict=True))
        if place not in gone or (place in assigned and index >= begins.get(place, 0))
    ]


def is_one_place(messages: list[Any], only_topic: str | None = None) -> bool:
    """True if all messages are of one partition, as those of most batches are.

    `only_topic` is their topic if they cannot be of another.
    """
    if not messages:
        return True
    (topic, partition), count = place_of(messages[0]), len(messages)
    return list(map(Message.partition, messages)).count(partition) == count and (
        only_topic is not None or list(map(Message.topic, messages)).count(topic) == count
    )


def to_records(messages: list[Any], habit: Habit, *, is_one_place: bool) -> list[Received]:
    """The records in messages that are no errors; unopened only if all are of one partition."""
    if not messages:
        return []
    if is_one_place and not habit.opens:
        return list(map(Unopened, zip(map(Message.value, messages), messages, repeat(habit), strict=False)))
    fields: tuple[Iterable[Any], ...] = (
        repeat(messages[0].topic()) if is_one_place else map(Message.topic, messages),
        repeat(messages[0].partition()) if is_one_place else map(Message.partition, messages),
        map(Message.offset, messages),
        map(Message.key, messages),
        map(Message.value, messages),
        _headers(messages),
        map(_MS, map(Message.timestamp, messages)),
    )
    return list(map(Opened, zip(*fields, strict=False)))


def _headers(messages: list[Any]) -> Iterable[Any]:
    found = list(map(Message.headers, messages))
    if found.count(None) == len(found):
        return repeat(NO_HEADERS)
    return [tuple(headers) if headers else NO_HEADERS for headers in found]
