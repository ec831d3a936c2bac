"""The settings beside access that a client of a bus should have, each with its reason. Pure.

Two things decide them: clients must move to the other site by themselves when the gate moves, also
when the old site hangs instead of refusing; and a batch as big as the sites allow must get through
unchanged client files. Names and defaults are those of Kafka's Java clients and of librdkafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

GIVE_UP_MS = 5000
KNOCK_AGAIN_MS = 1000
_JAVA_FETCH_BYTES = 50 * 1024 * 1024  # fetch.max.bytes by default, in both families
_JAVA_BUFFER_BYTES = 32 * 1024 * 1024
_LIBRDKAFKA_RECEIVE_BYTES = 100_000_000
_LIBRDKAFKA_MESSAGE_LIMIT = 1_000_000_000
_INT_MAX = 2**31 - 1
_RESPONSE_ROOM_BYTES = 1024 * 1024  # what a fetch response holds beside records
_BATCH_OVERHEAD = 61


class Role(StrEnum):
    """Which clients know a setting."""

    ANY = "any"
    PRODUCER = "producer"
    CONSUMER = "consumer"


@dataclass(frozen=True)
class Tuning:
    """What the sites allow, and where the client stands."""

    message_max_bytes: int = 1_048_588  # message.max.bytes: the biggest batch, Kafka's own default
    rack: str = ""  # that of the brokers nearest to it


@dataclass(frozen=True)
class Tuned:
    """One setting and why it is there."""

    key: str
    value: str
    why: str
    role: Role = Role.ANY


def java_tuning(tuning: Tuning) -> list[Tuned]:
    """For Kafka's Java clients."""
    request = java_request_bytes(tuning.message_max_bytes)
    fetch = min(max(_JAVA_FETCH_BYTES, tuning.message_max_bytes), _INT_MAX)
    return [
        Tuned(
            "metadata.recovery.strategy",
            "rebootstrap",
            "when no known broker answers, ask the bootstrap address again: the other site may be there",
        ),
        Tuned(
            "metadata.recovery.rebootstrap.trigger.ms",
            str(GIVE_UP_MS),
            "do so after 5 s, also when brokers hang instead of refusing (Kafka waits 5 minutes)",
        ),
        Tuned("request.timeout.ms", str(GIVE_UP_MS), "a broker that hangs is given up after 5 s"),
        Tuned(
            "enable.idempotence",
            "true",
            "a record that is sent again, here or at the other site, is kept once",
            Role.PRODUCER,
        ),
        Tuned("acks", "all", "every in-sync copy has a record before it counts as written", Role.PRODUCER),
        Tuned(
            "delivery.timeout.ms",
            "120000",
            "how long a record may wait for a site that takes it; a move takes seconds",
            Role.PRODUCER,
        ),
        Tuned(
            "max.request.size",
            str(request),
            f"a batch of {tuning.message_max_bytes} bytes passes; Java's estimate of it is a little higher",
            Role.PRODUCER,
        ),
        Tuned(
            "buffer.memory",
            str(max(_JAVA_BUFFER_BYTES, 2 * request)),
            "room for the next batch while the biggest one is on its way",
            Role.PRODUCER,
        ),
        Tuned(
            "max.partition.fetch.bytes",
            str(min(tuning.message_max_bytes, _INT_MAX)),
            "the biggest batch comes in one piece",
            Role.CONSUMER,
        ),
        Tuned("fetch.max.bytes", str(fetch), "at least one batch of that size a fetch", Role.CONSUMER),
        *_near(tuning),
    ]


def librdkafka_tuning(tuning: Tuning, *, can_rebootstrap: bool = True) -> list[Tuned]:
    """For librdkafka's clients; before 2.10 they cannot re-bootstrap and refuse settings about it."""
    message = min(max(tuning.message_max_bytes, 1000), _LIBRDKAFKA_MESSAGE_LIMIT)
    fetch = max(_JAVA_FETCH_BYTES, message)
    rebootstrap = [
        Tuned(
            "metadata.recovery.strategy",
            "rebootstrap",
            "when no known broker answers, ask the bootstrap address again: the other site may be there",
        ),
        Tuned(
            "metadata.recovery.rebootstrap.trigger.ms",
            str(GIVE_UP_MS),
            "do so after 5 s without an answer about metadata",
        ),
        Tuned(
            "socket.connection.setup.timeout.ms",
            str(GIVE_UP_MS),
            "behind a broken line nothing answers at all: given up after 5 s too (librdkafka waits 30 s)",
        ),
    ]
    return [
        *(rebootstrap if can_rebootstrap else []),
        Tuned(
            "reconnect.backoff.max.ms",
            str(KNOCK_AGAIN_MS),
            "whoever refuses is asked again within a second, as Java does (librdkafka waits up to 10 s)",
        ),
        Tuned("socket.timeout.ms", str(GIVE_UP_MS), "a broker that hangs is given up after 5 s"),
        Tuned(
            "enable.idempotence",
            "true",
            "a record that is sent again, here or at the other site, is kept once (consumers ignore this)",
            Role.PRODUCER,
        ),
        Tuned(
            "message.max.bytes",
            str(message),
            # librdkafka's own text for a bigger one, which names no setting.
            "a batch as big as the sites allow passes. 'Message size too large' means max.message.bytes of"
            " the topic (max_message in the bus's file), or message.max.bytes of the site: after a change"
            " there, print this file again",
        ),
        Tuned(
            "receive.message.max.bytes",
            str(max(_LIBRDKAFKA_RECEIVE_BYTES, fetch + _RESPONSE_ROOM_BYTES)),
            "an answer that holds such batches is taken (at least fetch.max.bytes + 512)",
        ),
        Tuned(
            "max.partition.fetch.bytes",
            str(message),
            "the biggest batch comes in one piece (producers ignore this)",
            Role.CONSUMER,
        ),
        Tuned(
            "fetch.max.bytes",
            str(fetch),
            "at least one batch of that size a fetch (producers ignore this)",
            Role.CONSUMER,
        ),
        *_near(tuning),
    ]


def _near(tuning: Tuning) -> list[Tuned]:
    if not tuning.rack:
        return []
    why = "read from the copy in this rack, where there is one (KIP-392; producers ignore this)"
    return [Tuned("client.rack", tuning.rack, why, Role.CONSUMER)]


def java_request_bytes(message_max_bytes: int) -> int:
    """`max.request.size` that lets one record through whose batch has exactly the allowed size.

    Before it sends, Java counts the most that a record's length (5 bytes), attributes (1), time
    delta (10) and offset delta (5) can take. In a batch of one they take the length's real size
    and one byte each.
    """
    length_size = 1
    while _varint_size(message_max_bytes - _BATCH_OVERHEAD - length_size) > length_size:
        length_size += 1
    return min(message_max_bytes + 5 + 1 + 10 + 5 - (length_size + 3), _INT_MAX)


def _varint_size(value: int) -> int:
    # Zigzag doubles a positive number, then seven bits go into each byte.
    return max(1, -(-(2 * value).bit_length() // 7))
