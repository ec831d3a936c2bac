"""librdkafka's producer and consumer behind a few typed calls, for the client library.

`client` builds on this and imports no driver itself. A Sender may be used by several threads; what
became of a record is told from within `serve` and `flush`. A Receiver belongs to one thread.
librdkafka repeats a record whose answer got lost, and Python is not told whether it did. So a refusal
proves that a record is not in the log only if it is about the record itself (`is_certain`): a right
that was taken away, say, may have been there when the first attempt was appended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import confluent_kafka as confluent

from twinlog.errors import KafkaError
from twinlog.wire import codes
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Role, Tuning, librdkafka_tuning
from twinlog.wire.offsets import TopicPartition

Settings = Mapping[str, str | int | float | bool]
Headers = Sequence[tuple[str, bytes | None]]

_LOG = logging.getLogger("twinlog.client")
_LOG.addHandler(logging.NullHandler())
_CLIENT_ID = "twinlog-client"
_ANY_PARTITION = -1
_NOW = 0
_PURGE_S = 5.0  # what was purged is told at once
# Refused for what the record is, and so at every attempt.
_ABOUT_THE_RECORD = frozenset(
    [
        "MESSAGE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_TOPIC_EXCEPTION",
        "INVALID_TIMESTAMP",
        "INVALID_RECORD",
        "POLICY_VIOLATION",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    ]
)


class Outgoing(NamedTuple):
    """A record to send. Without a partition the key decides, without a time it is now."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class Delivered(NamedTuple):
    """Every in-sync replica has the record, at this place."""

    partition: int
    offset: int


class Failed(NamedTuple):
    """librdkafka has given a record up. `is_certain`: it is not in the log."""

    reason: str
    hint: str
    is_certain: bool


class Received(NamedTuple):
    """A record as it came."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


Report = Delivered | Failed
Told = Callable[[Report], None]


class NoRoom(KafkaError):
    """The queue is full; there is room again when records in it were answered."""


class Sender:
    """An idempotent producer with acks=all."""

    def __init__(
        self, access: Access, *, timeout_s: float, tuning: Tuning, settings: Settings | None = None
    ) -> None:
        used = {
            **_usual(access, tuning, Role.PRODUCER),
            "acks": "all",
            "message.timeout.ms": max(1, int(timeout_s * 1000)),
            **(settings or {}),
        }
        self._where = ",".join(access.bootstrap)
        self._fatal: KafkaError | None = None  # why the driver has given up for good
        self._producer: Any = confluent.Producer(used, logger=_LOG)

    def check(self, topic: str, timeout_s: float) -> None:
        """Raise unless the site has this topic and lets this user see it."""
        what = f"looking for topic '{topic}'"
        try:
            found = self._open().list_topics(topic, timeout_s).topics[topic]
        except confluent.KafkaException as error:
            raise explained(error.args[0], what, self._where) from error
        if found.error is not None:
            raise explained(found.error, what, self._where)

    def send(self, record: Outgoing, told: Told) -> None:
        """Queue a record; raises if it was not queued, and then it was not sent either."""

        def answered(error: Any, message: Any) -> None:
            told(self._report(error, message))

        try:
            self._open().produce(
                record.topic,
                record.value,
                record.key,
                _ANY_PARTITION if record.partition is None else record.partition,
                on_delivery=answered,
                timestamp=_NOW if record.timestamp_ms is None else record.timestamp_ms,
                headers=list(record.headers) or None,
            )
        except BufferError as error:
            raise NoRoom("the producer's queue is full", where=self._where) from error
        except confluent.KafkaException as error:
            raise explained(error.args[0], f"sending to '{record.topic}'", self._where) from error

    def serve(self, timeout_s: float) -> None:
        """Wait for answers and tell them."""
        self._listen(lambda producer: producer.poll(timeout_s))

    def flush(self, timeout_s: float) -> int:
        """Send all that is queued without lingering; returns how many records are left unanswered."""
        return 0 if self._producer is None else self._listen(lambda producer: producer.flush(timeout_s))

    def close(self) -> None:
        """End it; what was not answered by now is told as failed. Nobody may be in `serve` any more."""
        self._producer.purge()
        self.flush(_PURGE_S)
        self._producer = None  # its threads end here

    def _listen(self, how: Callable[[Any], int]) -> int:
        """Hear the driver once more when it says, once, that it has given up: records are answered after."""
        try:
            return how(self._producer)
        except confluent.KafkaException as error:
            self._fatal = explained(error.args[0], "the producer cannot go on", self._where)
            return how(self._producer)

    def _report(self, error: Any, message: Any) -> Report:
        if error is None:
            return Delivered(message.partition(), message.offset())
        said = explained(error, f"writing to '{message.topic()}'", self._where)
        if self._fatal is not None:
            return Failed(f"{said}: {self._fatal.what}", self._fatal.hint, is_certain(said.code))
        return Failed(str(said), said.hint, is_certain(said.code))

    def _open(self) -> Any:
        producer = self._producer
        if producer is None:
            raise KafkaError("the producer is closed", code="STATE", where=self._where, hint="open a new one")
        return producer


class Receiver:
    """A member of a consumer group that commits only when told to."""

    def __init__(
        self, access: Access, *, group: str, start: str, tuning: Tuning, settings: Settings | None = None
    ) -> None:
        used = {
            **_usual(access, tuning, Role.CONSUMER),
            "group.id": group,
            "auto.offset.reset": start,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            **(settings or {}),
        }
        self._where = ",".join(access.bootstrap)
        self._consumer: Any = confluent.Consumer(used, logger=_LOG)

    def subscribe(self, topics: Sequence[str], lost: Callable[[list[TopicPartition]], None]) -> None:
        """Read topics from now on; `lost` is told, from within `take`, which partitions others have got."""

        def gone(_: Any, partitions: Any) -> None:
            lost([(one.topic, one.partition) for one in partitions])

        self._consumer.subscribe(list(topics), on_revoke=gone, on_lost=gone)

    def take(self, most: int, timeout_s: float) -> list[Received]:
        """Up to so many records, none if none came in time."""
        got = []
        # `consume` alone would wait for all of them.
        try:
            first = self._consumer.poll(timeout_s)
            rest = self._consumer.consume(most - 1, 0.0) if first is not None else []
        except confluent.KafkaException as refusal:
            raise explained(refusal.args[0], "reading", self._where) from refusal
        for message in (first, *rest) if first is not None else ():
            error = message.error()
            if error is None:
                got.append(_received(message))
            elif not error.retriable() and error.code() not in _PASSING:
                raise explained(error, "reading", self._where)
        return got

    def pause(self, places: Sequence[TopicPartition]) -> None:
        """Take nothing of these partitions until they are resumed."""
        self._consumer.pause([confluent.TopicPartition(*place) for place in places])

    def resume(self, places: Sequence[TopicPartition]) -> None:
        """Take them again, from where they were."""
        self._consumer.resume([confluent.TopicPartition(*place) for place in places])

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Let the group go on at these offsets the next time; returns when that is written."""
        wanted = [confluent.TopicPartition(*place, offset) for place, offset in positions.items()]
        try:
            done = self._consumer.commit(offsets=wanted, asynchronous=False)
        except confluent.KafkaException as error:
            raise explained(error.args[0], "committing offsets", self._where) from error
        for one in done:
            if one.error is not None:
                raise explained(one.error, f"committing {one.topic}-{one.partition}", self._where)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


# librdkafka tells of them and goes on by itself.
_PASSING = frozenset(
    [
        confluent.KafkaError._ALL_BROKERS_DOWN,
        confluent.KafkaError._TRANSPORT,
        confluent.KafkaError._RESOLVE,
        confluent.KafkaError._TIMED_OUT,
        confluent.KafkaError._PARTITION_EOF,
        confluent.KafkaError.UNKNOWN_TOPIC_OR_PART,
    ]
)


def _usual(access: Access, tuning: Tuning, role: Role) -> dict[str, Any]:
    tuned = librdkafka_tuning(tuning)
    return {
        "client.id": _CLIENT_ID,
        **access.librdkafka(),
        **{one.key: one.value for one in tuned if one.role in (Role.ANY, role)},
    }


def is_certain(code: str) -> bool:
    """True if a record that was refused with this code is not in the log, however often it was sent."""
    return code in _ABOUT_THE_RECORD


def explained(error: Any, what: str, where: str) -> KafkaError:
    """The error that librdkafka means: Kafka's own by Kafka's name, its own by its name without the mark."""
    code = error.code()
    if code > codes.NONE:
        return codes.error_for(code, None, what, where)
    name = error.name().lstrip("_")
    if error.fatal() or code == confluent.KafkaError._FATAL:
        hint = "this client cannot go on: open a new one"
    elif code in (confluent.KafkaError._UNKNOWN_TOPIC, confluent.KafkaError._UNKNOWN_PARTITION):
        hint = codes.hint_for(codes.UNKNOWN_TOPIC_OR_PARTITION)
    else:
        hint = "is the site up? twinlog status"
    return KafkaError(
        f"{what}: {error.str()}", code=name, retriable=error.retriable(), where=where, hint=hint
    )


def _received(message: Any) -> Received:
    _, timestamp_ms = message.timestamp()
    return Received(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        timestamp_ms,
    )
