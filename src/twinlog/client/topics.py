"""A topic with its types: the records of one kind that go through it. Pure.

Declared once and used on both sides: `outgoing` makes the record that a Producer sends, `read` takes
apart what a Consumer got. Producers and Consumers themselves know bytes only, so one of them can serve
topics of several types, and records that nobody reads are never decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from twinlog.client.serializers import Half, Serializer, Spot
from twinlog.errors import UsageError
from twinlog.wire.driver import Headers, Outgoing
from twinlog.wire.received import Received

K = TypeVar("K")
V = TypeVar("V")


class Typed(NamedTuple, Generic[K, V]):
    """A record's key and value as what they stand for, with the record as it came."""

    key: K | None
    value: V | None
    record: Received


@dataclass(frozen=True)
class Topic(Generic[K, V]):
    """A topic whose keys and values are of one type each."""

    name: str
    key: Serializer[K]
    value: Serializer[V]

    def outgoing(
        self,
        value: V | None,
        key: K | None = None,
        *,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Outgoing:
        """A record to send; without a value it is a tombstone."""
        return Outgoing(
            self.name,
            None if value is None else self.value.encode(value, self._spot(Half.VALUE)),
            None if key is None else self.key.encode(key, self._spot(Half.KEY)),
            headers,
            partition,
            timestamp_ms,
        )

    def read(self, record: Received) -> Typed[K, V]:
        """A record of this topic with its types."""
        if record.topic != self.name:
            raise UsageError(
                f"the record is of topic '{record.topic}', not of '{self.name}'",
                hint="which Topic was declared for it?",
            )
        return Typed(
            None if record.key is None else self.key.decode(record.key, self._spot(Half.KEY)),
            None if record.value is None else self.value.decode(record.value, self._spot(Half.VALUE)),
            record,
        )

    def _spot(self, half: Half) -> Spot:
        return Spot(self.name, half)
