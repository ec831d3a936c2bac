"""Abort markers that we write ourselves: they take offsets and no consumer ever sees them.

The mirror fills gaps with them (WriteTxnMarkers, which needs CLUSTER_ACTION). Not a transaction: no
coordinator knows of it and none writes a marker again. One attempt, never repeated here, because a
marker of the same epoch is appended again. Brokers answer for each producer and partition, not for
each marker, so of several markers a code of 0 does not say that all were written: the log end does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twinlog.wire import codes, fill_bytes
from twinlog.wire.connection import Connection, Pending, RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fill_bytes import Fill
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.versions import Range

__all__ = ["Fill", "Filled", "Filling", "receive_fill", "send_fill"]

_MARKERS, _ENDS = Range(1, 2), Range(6, 9)
_NOT_ANSWERED = -1  # UNKNOWN_SERVER_ERROR: of a partition that the answer leaves out nobody knows
_NO_OFFSET = -1


class Filled(NamedTuple):
    """What became of a fill: a code, of the markers or else of the question, and where the log ends now.

    Of a single marker the code says all, and the log end is not asked for.
    """

    code: int
    log_end: int | None


class Filling(NamedTuple):
    """A fill that was sent and whose answer has not been read yet."""

    fills: tuple[Fill, ...]
    markers: Pending[dict[TopicPartition, int]]
    ends: Pending[dict[TopicPartition, tuple[int, int]]] | None


def send_fill(connection: Connection, fills: Sequence[Fill], deadline: Deadline) -> Filling:
    """Write markers through the leader of the partitions, and ask for the log ends behind them.

    In one go: a broker begins with a request when it has answered the one before it on a connection.
    """
    marked = _send_markers(connection, fills, deadline)
    asked = [_place(one) for one in fills if _is_asked(one)]
    ends = _send_question(connection, asked, deadline) if asked else None
    return Filling(tuple(fills), marked, ends)


def receive_fill(
    connection: Connection, filling: Filling, deadline: Deadline
) -> dict[TopicPartition, Filled]:
    """Wait for the answers to a fill; what was sent before it on the connection must have been read."""
    told = connection.receive(filling.markers, deadline)
    ends = connection.receive(filling.ends, deadline) if filling.ends is not None else {}
    filled: dict[TopicPartition, Filled] = {}
    for fill in filling.fills:
        place = _place(fill)
        marked = told.get(place, _NOT_ANSWERED)
        if not _is_asked(fill):
            filled[place] = Filled(marked, None)
            continue
        code, log_end = ends.get(place, (_NOT_ANSWERED, _NO_OFFSET))
        filled[place] = Filled(marked if marked != codes.NONE else code, log_end)
    return filled


def _is_asked(fill: Fill) -> bool:
    return fill.count > 1


def _place(fill: Fill) -> TopicPartition:
    return fill.topic, fill.partition


def _send_question(
    connection: Connection, places: Sequence[TopicPartition], deadline: Deadline
) -> Pending[dict[TopicPartition, tuple[int, int]]]:
    version = connection.agree(fill_bytes.ENDS_NAME, fill_bytes.ENDS_API_KEY, _ENDS)
    body = [fill_bytes.encode_ends(places)]
    question = RawRequest(
        fill_bytes.ENDS_NAME, fill_bytes.ENDS_API_KEY, version, body, fill_bytes.decode_ends
    )
    return connection.send_raw(question, deadline)


def _send_markers(
    connection: Connection, fills: Sequence[Fill], deadline: Deadline
) -> Pending[dict[TopicPartition, int]]:
    if len({_place(one) for one in fills}) < len(fills):
        raise ValueError("two fills for one partition in one request")
    version = connection.agree(fill_bytes.MARKERS_NAME, fill_bytes.MARKERS_API_KEY, _MARKERS)
    body = [fill_bytes.encode_markers(version, fills)]
    request = RawRequest(
        fill_bytes.MARKERS_NAME, fill_bytes.MARKERS_API_KEY, version, body, fill_bytes.decode_markers
    )
    return connection.send_raw(request, deadline)
