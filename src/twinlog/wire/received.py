"""A record as it came, whole or not yet taken out of librdkafka's message. Pure.

`messages` makes them; the client library and the commands hand them on. This is done for every record that
anybody reads, and a record costs more than what is in it: so where a program looks at values only, the
other fields stay in the message (`Unopened`), and where it has looked at more, all are taken out at once
(`Opened`). To programs both are a `Received`: the same fields, equal, hashed and unpacked alike.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from twinlog.wire.offsets import TopicPartition

NO_HEADERS: tuple[tuple[str, bytes | None], ...] = ()


class Received(NamedTuple):
    """A record as it came."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Habit:
    """What a program has been seen to do with its records."""

    __slots__ = ("opens",)

    def __init__(self, *, opens: bool = False) -> None:
        self.opens = opens  # it has looked at more than values


class _Quick(tuple[Any, ...]):
    """Made of an iterable by tuple's own constructor, which takes half the time of one that has names."""

    __slots__ = ()
    __new__ = tuple.__new__


class _Inside(NamedTuple):
    """What an unopened record is in truth."""

    value: bytes | None
    message: Any
    habit: Habit


if TYPE_CHECKING:
    Opened: Callable[[tuple[Any, ...]], Received]
    Unopened: Callable[[tuple[Any, ...]], Received]
else:

    class Opened(_Quick, Received):
        """A record that has all of its fields."""

        __slots__ = ()

        def __repr__(self) -> str:
            return repr(Received(*self))

        def __reduce__(self) -> tuple[Any, ...]:
            return Received, tuple(self)

        def _replace(self, **fields: Any) -> Received:
            return Received(*self)._replace(**fields)

    # Derived from the other, so that of two that are compared it is the one that is asked.
    class Unopened(Opened):
        """A record that has its value, and the message with the rest.

        Nothing may look at it as at a tuple before it is opened; whatever would is written here again.
        """

        __slots__ = ()
        value = _Inside.value
        _message = _Inside.message
        _habit = _Inside.habit
        topic = property(lambda record: _looked_into(record).topic())
        partition = property(lambda record: _looked_into(record).partition())
        offset = property(lambda record: _looked_into(record).offset())
        key = property(lambda record: _looked_into(record).key())
        headers = property(lambda record: tuple(_looked_into(record).headers() or NO_HEADERS))
        timestamp_ms = property(lambda record: _looked_into(record).timestamp()[1])

        def __iter__(self) -> Iterator[Any]:
            return iter(open_record(self))

        def __len__(self) -> int:
            return len(Received._fields)

        def __hash__(self) -> int:
            return hash(open_record(self))

    def _opening(how: Callable[..., Any]) -> Callable[..., Any]:
        def done(record: Received, *args: Any) -> Any:
            return how(open_record(record), *args)

        return done

    for _name in ("eq", "ne", "lt", "le", "gt", "ge", "getitem", "contains", "add", "mul"):
        setattr(Unopened, f"__{_name}__", _opening(getattr(operator, _name)))
    Unopened.__rmul__ = _opening(operator.mul)
    Unopened.__radd__ = _opening(lambda fields, before: before + fields)
    Unopened.count = _opening(operator.countOf)
    Unopened.index = _opening(tuple.index)


def _looked_into(record: Any) -> Any:
    """The message of an unopened record; from now on records of its consumer are made whole."""
    record._habit.opens = True
    return record._message


def open_record(record: Received) -> tuple[Any, ...]:
    """All fields of an unopened record."""
    message = _looked_into(record)
    return (
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        tuple(message.headers() or NO_HEADERS),
        message.timestamp()[1],
    )


def spot_of(record: Received) -> tuple[TopicPartition, int]:
    """Where a record stood; it is not opened for that."""
    if type(record) is Unopened:
        message = cast(Any, record)._message
        return (message.topic(), message.partition()), message.offset()
    return record[:2], record[2]


def are_of_one_place(records: list[Received]) -> bool:
    """True if all records of a batch, which is not empty, are of one partition."""
    if type(records[0]) is Unopened:
        return True  # `messages` leaves no others so
    first = records[0][:2]
    topics, partitions = list(map(_TOPIC, records)), list(map(_PARTITION, records))
    return topics.count(first[0]) == len(records) == partitions.count(first[1])


_TOPIC = operator.itemgetter(0)
_PARTITION = operator.itemgetter(1)
