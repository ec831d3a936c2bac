"""How requests that carry records name their topics: by name, or by id (KIP-516).

`fetching` and `appending` agree on one of the two when they are made. By id is safer where ids are
known, because a topic that was deleted and made again is then refused instead of taken for the old
one; by name is all that older brokers know. Ids must not change while the keys are in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from twinlog.wire import compact
from twinlog.wire.connection import Connection
from twinlog.wire.versions import Range

_ID_BYTES = 16


class TopicKeys:
    """Writes and reads topics as one request does; with ids, by id."""

    def __init__(self, ids: Mapping[str, UUID] | None = None) -> None:
        self._ids = ids
        self._written: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}

    @property
    def by_id(self) -> bool:
        """True if topics go by their ids."""
        return self._ids is not None

    def write(self, topic: str) -> bytes:
        """A topic as it stands in the request; a topic without a known id is a KeyError."""
        key = self._written.get(topic)
        if key is None:
            key = compact.text(topic) if self._ids is None else self._ids[topic].bytes
            self._written[topic] = key
            self._names[key] = topic
        return key

    def read(self, data: memoryview, at: int) -> tuple[str, int]:
        """The topic that stands at a place of the answer, and the place behind it."""
        if self._ids is None:
            return compact.read_text(data, at)
        end = at + _ID_BYTES
        name = self._names.get(bytes(data[at:end]))
        if name is None:
            raise ValueError("an answer about a topic that was not asked for")
        return name, end


def agree(
    connection: Connection,
    request: tuple[str, int],
    versions: tuple[Range, Range],
    ids: Mapping[str, UUID] | None,
) -> tuple[int, TopicKeys]:
    """The version of a request (its name and api key) to use, of those by name or those by id."""
    by_name, by_id = versions
    if ids is not None and connection.knows(request[1], by_id):
        return connection.agree(*request, by_id), TopicKeys(ids)
    return connection.agree(*request, by_name), TopicKeys()
