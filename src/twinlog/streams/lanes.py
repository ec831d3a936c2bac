"""Writing the results of one batch exactly once: what a task does with its rows.

The steps, for each lane in the task's rows:

1. take the lane's transactional id over: what an earlier attempt left open is ended, and it cannot go on;
2. ask for the lane's last batch, and leave the rows out if it is this one or a later one;
3. write the rows and the note of this batch in one transaction; commit.

Spark gives a batch that it runs again the same number and the same offsets, so a lane has the same rows
in it, or (where they depend on the time or on a table) rows that none has seen. A commit whose answer
is lost fails the task; the next attempt finds out by step 2. So does a driver that was thought dead
and is not: no task can know that it is the first. Runs inside Spark's Python workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from twinlog.streams.progress import Lane, last_batch, note
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import NoRoom, Outgoing
from twinlog.wire.transactional import Transactional

TIMEOUT_S = 60.0  # a transaction has twice as long
NOTE_TIMEOUT_S = 150.0  # longer than a transaction that nobody ends
_ROOM_S = 0.1


class Row(Protocol):
    """A result as it comes out of a query: what to write, and the lane that it belongs to."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]] | None
    lane: str


@dataclass(frozen=True)
class Writing:
    """What a task needs to write the rows of one batch."""

    access: Access
    tuning: Tuning
    query: str
    run: str
    topic: str
    batch: int


def write(writing: Writing, rows: Iterable[Any]) -> None:
    """Write rows that are ordered by lane."""
    for name, own in groupby(rows, key=lambda row: str(row.lane)):
        _write_lane(writing, Lane(writing.query, writing.run, name), own)


def _write_lane(writing: Writing, lane: Lane, rows: Iterable[Row]) -> None:
    producer = Transactional(
        writing.access, name=lane.transactional_id, timeout_s=TIMEOUT_S, tuning=writing.tuning
    )
    try:
        # Waits until a broker is connected. Asked to prepare before that, librdkafka finds nobody to ask
        # for the coordinator, and looks again half a second later.
        producer.check(writing.topic, TIMEOUT_S)
        producer.prepare(TIMEOUT_S)
        if last_batch(writing.access, lane, NOTE_TIMEOUT_S) >= writing.batch:
            return
        producer.begin()
        for row in rows:
            headers = [(name, bytes(value)) for name, value in row.headers or ()]  # bytearrays come
            _put(producer, Outgoing(writing.topic, _bytes(row.value), _bytes(row.key), headers))
        _put(producer, note(lane, writing.batch))
        producer.commit(TIMEOUT_S)
    finally:
        producer.close()


def _put(producer: Transactional, record: Outgoing) -> None:
    while True:
        try:
            producer.queue(*record, None)
            return
        except NoRoom:
            producer.serve(_ROOM_S)


def _bytes(value: bytes | bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def writer(writing: Writing) -> Callable[[Iterable[Any]], None]:
    """As a function that Spark sends to its tasks."""

    def run(rows: Iterable[Any]) -> None:
        write(writing, rows)

    return run
