"""Records that are sent together, and whose outcomes are waited for together.

For `Producer.send_many`. Nobody holds a single one of these writes, so there is no `Sent` for a plain
record: the driver tells a place in a list. That place is forgotten as soon as it was told, and what is left
of a record is a bare tuple, which the garbage collector does not look at twice: with an object for each
record alive it took a quarter of the time. All others go the way of `send`. The caller's thread hears
the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, cast, overload

from twinlog.client.outcomes import Done, Outcome
from twinlog.client.sent import Sent, failure
from twinlog.wire.driver import ANY_PARTITION, NOW, Outgoing, Sender

HEAR_EVERY = 128  # sends, a power of two
FLUSH_S = 0.01  # short, because it also waits for what other threads send meanwhile

_Told = tuple[int, int, bool] | Outcome  # what a Done is made of, if the record is there
_made = tuple.__new__  # of a named tuple: half of what its own call takes


class Outcomes(Sequence[Outcome]):
    """Outcomes in the order of their records; a Done is made when it is looked at."""

    def __init__(self, told: list[_Told | None]) -> None:
        self._told = told

    def __len__(self) -> int:
        return len(self._told)

    @overload
    def __getitem__(self, which: int) -> Outcome: ...
    @overload
    def __getitem__(self, which: slice) -> list[Outcome]: ...
    def __getitem__(self, which: int | slice) -> Outcome | list[Outcome]:
        if isinstance(which, slice):
            return [_outcome(one) for one in self._told[which]]
        return _outcome(self._told[which])

    def __iter__(self) -> Iterator[Outcome]:
        # As `_outcome` does it, without a call for each.
        return (_made(Done, one) if type(one) is tuple else _outcome(one) for one in self._told)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __repr__(self) -> str:
        return repr(list(self))


def _outcome(told: _Told | None) -> Outcome:
    if type(told) is tuple:
        return _made(Done, told)
    assert told is not None  # all have ended
    return cast(Outcome, told)


class _Place:
    """Where the outcome of one record belongs. Filled in by `send`: a constructor costs too much."""

    __slots__ = ("batch", "index")

    batch: Batch
    index: int

    def __call__(self, error: Any, message: Any) -> None:
        """What librdkafka says of the record."""
        batch = self.batch
        if error is None and (offset := message.offset()) is not None:
            batch.told[self.index] = (message.partition(), offset, False)
        else:
            batch.told[self.index] = failure(batch.sender, error, message)


class Batch:
    """The writes of one call."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.told: list[_Told | None] = []
        self._others: list[tuple[int, Sent]] = []

    def send(
        self, records: Iterable[Outgoing], plain: Collection[str], otherwise: Callable[[Outgoing], Sent]
    ) -> None:
        """Send records; those of plain topics go the short way, the rest otherwise."""
        told, sender, produce = self.told, self.sender, self.sender.produce
        for index, record in enumerate(records):
            topic, value, key, headers, partition, timestamp_ms = record
            told.append(None)
            if topic not in plain:
                self._others.append((index, otherwise(record)))
                continue
            place = _Place()
            place.batch = self
            place.index = index
            where = ANY_PARTITION if partition is None else partition
            try:
                if headers or timestamp_ms is not None:
                    produce(topic, value, key, where, place, None, timestamp_ms or NOW, list(headers))
                else:
                    produce(topic, value, key, where, place)
            except Exception:  # it was not queued; the other way says why, or waits for room
                self._others.append((index, otherwise(record)))
            if not index & (HEAR_EVERY - 1):
                sender.serve(0.0)

    def hear(self) -> None:
        """Hear the driver until it has told all that went the short way, or is closed."""
        others = {index for index, _ in self._others}
        for index, first in enumerate(self.told):
            if first is None and index not in others:
                while self.told[index] is None and self.sender.is_open:
                    self.sender.flush(FLUSH_S)  # nothing follows that would be worth lingering for

    def ended(self) -> Outcomes:
        """The outcomes; waits for those that have not ended."""
        for index, sent in self._others:
            self.told[index] = sent.result()
        if not self.sender.is_open:  # whoever closes a producer hears what is left
            with self.sender.answered:
                self.sender.answered.wait_for(lambda: None not in self.told)
        return Outcomes(self.told)
