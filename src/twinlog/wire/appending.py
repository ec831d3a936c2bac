"""Appending: whole batches to many partitions of one leader, several requests in flight.

The mirror makes one Appender for a connection to a leader. A request holds one batch for each of
its partitions (all that Kafka allows), and the broker takes the requests of a connection in order;
but a request that is refused does not stop the one behind it. Codes are told, never acted upon.
After an error of the connection nobody knows what became of the requests in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from uuid import UUID

from twinlog.wire import produce_bytes
from twinlog.wire.connection import Connection, Pending, Piece, RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.produce_bytes import Appended
from twinlog.wire.topic_keys import agree
from twinlog.wire.versions import Range

__all__ = ["ALL_IN_SYNC", "LEADER_ONLY", "MOST_IN_FLIGHT", "Appended", "Appender"]

ALL_IN_SYNC, LEADER_ONLY = -1, 1
MOST_IN_FLIGHT = 5  # a broker remembers the last five batches of a producer
_BY_NAME, _BY_ID = Range(9, 12), Range(13, 13)
_OWN_SHARE = 0.9  # of the time that is left: the broker's own answer should come before our timeout


class Appender:
    """Writes batches to one leader."""

    def __init__(
        self, connection: Connection, *, acks: int = ALL_IN_SYNC, ids: Mapping[str, UUID] | None = None
    ) -> None:
        if acks not in (ALL_IN_SYNC, LEADER_ONLY):
            raise ValueError("a write without an answer cannot be followed")
        self._connection = connection
        self._acks = acks
        versions = (_BY_NAME, _BY_ID)
        self._version, self._keys = agree(
            connection, (produce_bytes.NAME, produce_bytes.API_KEY), versions, ids
        )
        self._pending: deque[Pending[list[Appended]]] = deque()

    @property
    def connection(self) -> Connection:
        """The connection to the leader."""
        return self._connection

    @property
    def in_flight(self) -> int:
        """Requests that were sent and are not answered yet."""
        return len(self._pending)

    def send(self, batches: Sequence[tuple[str, int, Piece]], deadline: Deadline) -> None:
        """Append a batch to each of some partitions; what became of them is told by `receive`."""
        if len(self._pending) >= MOST_IN_FLIGHT:
            raise RuntimeError("too many requests in flight")
        timeout_ms = max(1, int(deadline.remaining_s() * 1000 * _OWN_SHARE))
        request = RawRequest(
            produce_bytes.NAME,
            produce_bytes.API_KEY,
            self._version,
            produce_bytes.encode(self._keys, self._acks, timeout_ms, batches),
            lambda frame: produce_bytes.decode(frame, self._keys),
        )
        self._pending.append(self._connection.send_raw(request, deadline))

    def receive(self, deadline: Deadline) -> list[Appended]:
        """Wait for the answer to the oldest request in flight."""
        if not self._pending:
            raise RuntimeError("there is no request in flight")
        answer = self._connection.receive(self._pending[0], deadline)
        self._pending.popleft()
        return answer
