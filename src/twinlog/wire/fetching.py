"""Fetching: records of many partitions from one leader, as they lie in its log.

The mirror makes one FetchSession for a connection to a leader, says from where it wants which
partition, and takes one fetch at a time: `send`, then `receive`. After the first fetch only changes
are sent and only news come back (KIP-227), so that idle partitions cost nothing.
Codes are told, never acted upon. A partition whose position stays where it was is sent again:
`forget` it to pause it. After an error of the connection a session is of no use any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from twinlog.wire import codes, fetch_bytes
from twinlog.wire.connection import Connection, Pending, RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetch_bytes import (
    FIRST_EPOCH,
    LAST_EPOCH,
    NO_SESSION,
    FetchAnswer,
    Fetched,
    FetchLimits,
)
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.topic_keys import agree
from twinlog.wire.versions import Range

__all__ = ["FetchLimits", "FetchSession", "Fetched"]

_BY_NAME, _BY_ID = Range(12, 12), Range(13, 18)
_HIGHEST_EPOCH = 2**31 - 1
# The broker has dropped the session, or lost count: nothing is wrong with the partitions.
_SESSION_LOST = ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "FETCH_SESSION_TOPIC_ID_ERROR")


class FetchSession:
    """What is wanted of one leader, and the fetch that is under way."""

    def __init__(
        self,
        connection: Connection,
        limits: FetchLimits | None = None,
        *,
        ids: Mapping[str, UUID] | None = None,
    ) -> None:
        self._connection = connection
        self._limits = limits if limits is not None else FetchLimits()
        versions = (_BY_NAME, _BY_ID)
        self._version, self._keys = agree(connection, (fetch_bytes.NAME, fetch_bytes.API_KEY), versions, ids)
        self._wanted: dict[TopicPartition, int] = {}
        self._held: dict[TopicPartition, int] = {}  # the positions that the broker knows of
        self._touched: dict[TopicPartition, None] = {}  # those that may differ between the two
        self._outdated: set[TopicPartition] = set()
        self._session_id, self._epoch = NO_SESSION, FIRST_EPOCH
        self._pending: Pending[FetchAnswer] | None = None

    @property
    def connection(self) -> Connection:
        """The connection to the leader."""
        return self._connection

    @property
    def wanted(self) -> Mapping[TopicPartition, int]:
        """The positions as they were wanted last."""
        return self._wanted

    @property
    def is_under_way(self) -> bool:
        """True between `send` and `receive`."""
        return self._pending is not None

    def want(self, place: TopicPartition, offset: int) -> None:
        """Fetch a partition from an offset on, beginning with the next `send`."""
        # Whoever moved last goes last, so that a full fetch with a small limit starves nobody.
        if self._wanted.pop(place, None) != offset:
            self._touch(place)
        self._wanted[place] = offset

    def forget(self, place: TopicPartition) -> None:
        """Fetch a partition no more; harmless if it was not wanted."""
        if self._wanted.pop(place, None) is not None:
            self._touch(place)

    def send(self, deadline: Deadline, *, max_wait_ms: int | None = None) -> None:
        """Ask for what is wanted; the broker answers when there is some, or after `max_wait_ms`.

        That is one of the session's limits, and may be another one for a single fetch.
        """
        if self._pending is not None:
            raise RuntimeError("one fetch at a time")
        if self._session_id == NO_SESSION:
            self._held.clear()
            self._touched = dict.fromkeys(self._wanted)
        changed, forgotten = self._news()
        self._held.update(changed)
        for place in forgotten:
            del self._held[place]
        self._touched.clear()
        limits = self._limits if max_wait_ms is None else replace(self._limits, max_wait_ms=max_wait_ms)
        self._ask(limits, changed, forgotten, self._epoch, deadline)

    def receive(self, deadline: Deadline) -> list[Fetched]:
        """Wait for the answer: partitions with records, with an error, or with moved ends.

        What is about a position that is not wanted any more is left out. Nothing at all comes too
        when the broker has lost the session; the next `send` opens another.
        """
        if self._pending is None:
            raise RuntimeError("there is no fetch under way")
        answer = self._connection.receive(self._pending, deadline)
        self._pending = None
        outdated, self._outdated = self._outdated, set()
        if answer.code != codes.NONE or answer.session_id == NO_SESSION:
            self._session_id, self._epoch = NO_SESSION, FIRST_EPOCH
        else:
            self._session_id, self._epoch = answer.session_id, self._epoch % _HIGHEST_EPOCH + 1
        if codes.name_of(answer.code) in _SESSION_LOST:
            return []
        codes.check(answer.code, None, "fetching records", str(self._connection.address))
        if not outdated:
            return answer.fetched
        return [one for one in answer.fetched if (one.topic, one.partition) not in outdated]

    def end(self, deadline: Deadline) -> None:
        """Let the broker forget the session; it keeps a limited number, and idle ones for minutes."""
        if self._pending is not None:
            self.receive(deadline)
        if self._session_id != NO_SESSION:
            self._ask(self._limits, {}, [], LAST_EPOCH, deadline)
            self.receive(deadline)

    def _touch(self, place: TopicPartition) -> None:
        self._touched[place] = None
        if self._pending is not None and place in self._held:
            self._outdated.add(place)

    def _news(self) -> tuple[dict[TopicPartition, int], list[TopicPartition]]:
        """What the broker has to be told: positions that are new to it, and places to forget."""
        changed: dict[TopicPartition, int] = {}
        forgotten = []
        for place in self._touched:
            offset = self._wanted.get(place)
            if offset is None:
                if place in self._held:
                    forgotten.append(place)
            elif self._held.get(place) != offset:
                changed[place] = offset
        return changed, forgotten

    def _ask(
        self,
        limits: FetchLimits,
        changed: Mapping[TopicPartition, int],
        forgotten: list[TopicPartition],
        epoch: int,
        deadline: Deadline,
    ) -> None:
        session = (self._session_id, epoch)
        body = fetch_bytes.encode(self._version, self._keys, limits, session, changed, forgotten)
        request = RawRequest(
            fetch_bytes.NAME,
            fetch_bytes.API_KEY,
            self._version,
            [body],
            lambda frame: fetch_bytes.decode(frame, self._keys),
        )
        self._pending = self._connection.send_raw(request, deadline)
