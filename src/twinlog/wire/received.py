"""A record as it came, and which records of a batch still count. Pure.

`receiver` makes them of librdkafka's messages; the client library and the commands hand them on. Making
one is done for every record that anybody reads, so it is written to be quick.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from twinlog.wire.offsets import TopicPartition

_made = tuple.__new__
_NO_HEADERS: tuple[tuple[str, bytes | None], ...] = ()


class Received(NamedTuple):
    """A record as it came."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


def from_messages(messages: Iterable[Any]) -> list[Received]:
    """The records in messages of librdkafka, without those that are errors."""
    # In one go, and not by the call of the named tuple: each would cost a record half as much again.
    return [
        _made(
            Received,
            (
                message.topic(),
                message.partition(),
                message.offset(),
                message.key(),
                message.value(),
                tuple(headers) if (headers := message.headers()) else _NO_HEADERS,
                message.timestamp()[1],
            ),
        )
        for message in messages
        if message.error() is None
    ]


def without_stale(
    got: Sequence[Received], gone: Collection[TopicPartition], assigned: Collection[TopicPartition]
) -> list[Received]:
    """Without records of partitions that were lost in the middle of a batch.

    One that is assigned again begins where the group had committed, so what was collected before ends
    where its offsets go back. In doubt a record is kept: to see it twice is less than never to see it.
    """
    begins: dict[TopicPartition, int] = {}
    last: dict[TopicPartition, int] = {}
    for index, record in enumerate(got):
        place = record[:2]
        if record.offset <= last.get(place, -1):
            begins[place] = index
        last[place] = record.offset
    return [
        record
        for index, record in enumerate(got)
        if record[:2] not in gone or (record[:2] in assigned and index >= begins.get(record[:2], 0))
    ]
