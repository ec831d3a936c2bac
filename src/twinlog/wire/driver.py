"""librdkafka's producer behind a few typed calls, and what its clients share; `receiver` has the consumer.

The client library builds on this and imports no driver itself. A Sender may be used by several threads;
what became of a record is told from within `serve` and `flush`, and who waits for it is woken after
each of them, not for each record: at full speed a record may cost one Python call here, not ten.
librdkafka repeats a record whose answer got lost, and Python is not told whether it did. So a refusal
proves that a record is not in the log only if it is about the record itself (`is_certain`): a right
that was taken away, say, may have been there when the first attempt was appended. One more proof: a
producer that was refused its id has sent nothing. librdkafka asks for it once, before the first record,
and raises its epoch by itself from then on; only transactions ask again, and are refused otherwise.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import confluent_kafka as confluent

from twinlog.errors import KafkaError
from twinlog.wire import codes
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Role, Tuning, librdkafka_tuning

Settings = Mapping[str, str | int | float | bool]
Heard = Callable[[str], None]  # a client's statistics, as JSON
ClientSettings = Mapping[str, str | int | float | bool | Heard]
Headers = Sequence[tuple[str, bytes | None]]

LOG = logging.getLogger("twinlog.client")
LOG.addHandler(logging.NullHandler())
_CLIENT_ID = "twinlog-client"
ANY_PARTITION = -1
_NOT_QUEUED = "_error"  # what produce_batch adds to such records
NOW = 0
_PURGE_S = 5.0  # what was purged is told at once
_NO_ID = "CLUSTER_AUTHORIZATION_FAILED"  # the answer to InitProducerId of a user who may write nowhere
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


class Listener(Protocol):
    """Who hears of one record."""

    def told(self, error: Any, message: Any) -> None:
        """What librdkafka says of the record, once."""


Report = Delivered | Failed
Told = Callable[[Report], None]


class NoRoom(KafkaError):
    """The queue is full; there is room again when records in it were answered."""


class Receipt:
    """What became of one record, once it is told: a place or a failure."""

    __slots__ = ("failed", "offset", "partition", "sender", "then")

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.partition = -1
        self.offset = -1  # set last: whoever sees it sees the partition too
        self.failed: Failed | None = None
        self.then: Callable[[], None] | None = None  # called when it was told

    def told(self, error: Any, message: Any) -> None:
        """What librdkafka says of the record."""
        offset = message.offset() if error is None else None
        if offset is None:
            self.failed = self.sender.failure(error, message)
        else:
            self.partition = message.partition()
            self.offset = offset
        if self.then is not None:
            self.then()


class Sender:
    """An idempotent producer with acks=all."""

    def __init__(
        self,
        access: Access,
        *,
        timeout_s: float,
        tuning: Tuning,
        settings: ClientSettings | None = None,
    ) -> None:
        used = {
            **usual(access, tuning, Role.PRODUCER),
            "acks": "all",
            "message.timeout.ms": max(1, int(timeout_s * 1000)),
            "partitioner": "murmur2_random",  # a key goes where Kafka's Java clients put it
            **(settings or {}),
        }
        self.answered = threading.Condition()  # notified after answers were told
        self.has_listeners = False  # True once somebody wants to be called with an answer
        self.waiters = 0  # who waits for `answered` just now
        self.wanted = threading.Event()  # set by those who begin to
        self._where = ",".join(access.bootstrap)
        self._fatal: KafkaError | None = None  # why the driver has given up for good
        self._producer: Any = confluent.Producer(used, logger=LOG)
        # The driver's own call, for whoever sends so fast that `queue` would cost too much: topic, value,
        # key, partition or ANY_PARTITION, who is told; if need be None, time or NOW, and a list of headers.
        # If it raises, nothing was queued.
        self.produce: Callable[..., None] = self._producer.produce

    def check(self, topic: str, timeout_s: float) -> int:
        """How many partitions a topic has; raises unless it is there and this user may see it."""
        what = f"looking for topic '{topic}'"
        try:
            found = self._open().list_topics(topic, timeout_s).topics[topic]
        except confluent.KafkaException as error:
            raise explained(error.args[0], what, self._where) from error
        if found.error is not None:
            raise explained(found.error, what, self._where)
        return len(found.partitions)

    def queue(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp_ms: int | None,
        listener: Listener | None,
    ) -> None:
        """Queue a record; raises if it was not queued, and then it was not sent either."""
        try:
            (self._producer or self._open()).produce(
                topic,
                value,
                key,
                ANY_PARTITION if partition is None else partition,
                None if listener is None else listener.told,
                None,
                NOW if timestamp_ms is None else timestamp_ms,
                list(headers) if headers else None,
            )
        except BufferError as error:
            raise self._no_room() from error
        except confluent.KafkaException as error:
            raise self._refusal(error.args[0], f"sending to '{topic}'") from error

    def queue_together(
        self, topic: str, partition: int, key: bytes, values: Sequence[bytes], receipts: Sequence[Receipt]
    ) -> list[Receipt]:
        """Queue records in one call, to go in as few requests as they can; gives those that found no room."""
        piece: list[dict[str, Any]] = [
            {"value": value, "key": key, "callback": receipt.told}
            for value, receipt in zip(values, receipts, strict=True)
        ]
        try:
            queued = (self._producer or self._open()).produce_batch(topic, piece, partition)
        except BufferError as error:
            raise self._no_room() from error
        except confluent.KafkaException as error:
            raise self._refusal(error.args[0], f"sending to '{topic}'") from error
        if queued == len(piece):
            return []
        return [receipt for record, receipt in zip(piece, receipts, strict=True) if _NOT_QUEUED in record]

    def send(self, record: Outgoing, told: Told) -> None:
        """Queue a record and hear once what became of it."""
        receipt = Receipt(self)

        def ended() -> None:
            told(receipt.failed or Delivered(receipt.partition, receipt.offset))

        receipt.then = ended
        self.queue(*record, receipt)

    def serve(self, timeout_s: float) -> None:
        """Wait for answers and tell them; nothing is heard any more when it is closed."""
        if self._producer is not None:
            self._listen(lambda producer: producer.poll(timeout_s))

    def flush(self, timeout_s: float) -> int:
        """Send all that is queued without lingering; returns how many records are left unanswered."""
        return 0 if self._producer is None else self._listen(lambda producer: producer.flush(timeout_s))

    def close(self) -> None:
        """End it; what was not answered by now is told as failed. Nobody may be in `serve` any more."""
        self._producer.purge()
        self.flush(_PURGE_S)
        self.produce = self._closed
        self._producer = None  # its threads end here

    def _listen(self, how: Callable[[Any], int]) -> int:
        """Hear the driver once more when it says, once, that it has given up: records are answered after."""
        producer = self._producer
        try:
            return how(producer)
        except confluent.KafkaException as error:
            self._fatal = explained(error.args[0], "the producer cannot go on", self._where)
            return how(producer)
        except SystemError:
            self._fatal = KafkaError(UNSAID, code="FATAL", where=self._where, hint="open a new one")
            return how(producer)
        finally:
            self.wake()

    def _refusal(self, error: Any, what: str) -> KafkaError:
        """Why a record was not even queued; the driver says why it has given up only when it is heard."""
        said = explained(error, what, self._where)
        if error.code() != confluent.KafkaError._FATAL:
            return said
        if self._fatal is None:
            self.serve(0)
        if self._fatal is None:
            return said
        return KafkaError(
            f"{what}: {self._fatal.what}", code=self._fatal.code, where=self._where, hint=self._fatal.hint
        )

    @property
    def is_open(self) -> bool:
        """False when it was closed: then nothing is heard any more."""
        return self._producer is not None

    @property
    def has_given_up(self) -> bool:
        """True if the driver takes no record any more; a new Sender does."""
        return self._fatal is not None

    def wake(self) -> None:
        """Let those who wait for an answer look again."""
        with self.answered:
            self.answered.notify_all()

    def failure(self, error: Any, message: Any) -> Failed:
        """What a refusal means, or an answer that names no offset."""
        if error is None:  # the broker knew the batch as one that it had taken long before
            return Failed("the record is in the log, and the site did not say where", "look for it", False)
        what = f"writing to '{message.topic()}'"
        said = explained(error, what, self._where)
        if self._fatal is not None and self._fatal.code == _NO_ID:
            return Failed(
                f"{self._where}: {what}: this user may write to no topic, so nothing was sent: {_NO_ID}",
                f"may it produce to '{message.topic()}'? twinlog user rights --topic {message.topic()}",
                True,
            )
        if self._fatal is not None:
            return Failed(f"{said}: {self._fatal.what}", self._fatal.hint, is_certain(said.code))
        return Failed(str(said), said.hint, is_certain(said.code))

    def _open(self) -> Any:
        return self._producer if self._producer is not None else self._closed()

    def _closed(self, *_: object) -> None:
        raise KafkaError("the producer is closed", code="STATE", where=self._where, hint="open a new one")

    def _no_room(self) -> NoRoom:
        return NoRoom(
            "the producer's queue is full", where=self._where, hint="is the site up? twinlog status"
        )


# confluent-kafka 2.16 loses the reason when an answer comes in the same turn, and raises a SystemError then.
UNSAID = "the producer cannot go on; records that were not written say why"


def usual(access: Access, tuning: Tuning, role: Role) -> dict[str, Any]:
    """Settings of every client: its access and what the bus recommends."""
    tuned = librdkafka_tuning(tuning)
    return {
        "client.id": _CLIENT_ID,
        **access.librdkafka(),
        **{one.key: one.value for one in tuned if one.role in (Role.ANY, role)},
    }


def is_certain(code: str) -> bool:
    """True if a record that was refused with this code is not in the log, however often it was sent."""
    return code in _ABOUT_THE_RECORD


def librdkafka_version() -> str:
    """The version of the C library, which is not that of its Python binding."""
    return str(confluent.libversion()[0])


def explained(error: Any, what: str, where: str) -> KafkaError:
    """The error that librdkafka means: Kafka's own by Kafka's name, its own by its name without the mark."""
    code = error.code()
    if code == confluent.KafkaError.CLUSTER_AUTHORIZATION_FAILED:
        hint = "may this user write to any topic? producers need that to begin: twinlog user rights"
        return KafkaError(f"{what}: {error.name()}", code=error.name(), where=where, hint=hint)
    if code > codes.NONE:
        return codes.error_for(code, None, what, where)
    name = error.name().lstrip("_")
    if error.fatal() or code == confluent.KafkaError._FATAL:
        hint = "this client cannot go on: open a new one"
    elif code in (confluent.KafkaError._UNKNOWN_TOPIC, confluent.KafkaError._UNKNOWN_PARTITION):
        hint = codes.hint_for(codes.UNKNOWN_TOPIC_OR_PARTITION)
    elif code == confluent.KafkaError._AUTHENTICATION:
        hint = codes.hint_for(confluent.KafkaError.SASL_AUTHENTICATION_FAILED)
    else:
        hint = "is the site up? twinlog status"
    return KafkaError(
        f"{what}: {error.str()}", code=name, retriable=error.retriable(), where=where, hint=hint
    )
