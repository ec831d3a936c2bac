"""The settings of a measurement's clients: what was asked for, over what Kafka's own tools would use. Pure.

For the perf commands. Where nothing is given, settings are those of Kafka's Java clients, so that a command
line means the same with both: all replicas acknowledge, nothing is written twice, 32 MiB wait at most.
The size of batches is the exception: librdkafka fills what has come together anyway.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.perf.properties import translated
from twinlog.wire.driver import Settings

Properties = Mapping[str, str]
_BUFFER_KBYTES = 32 * 1024
_TRANSACTION_MS = 60_000
_ALL = ("all", "-1")


def producer(base: Settings, properties: Properties) -> Settings:
    """For a measurement of writing."""
    asked = translated(properties)
    used: dict[str, str | int | float | bool] = {
        **base,
        "acks": "all",
        "client.id": "perf-producer-client",
        "message.timeout.ms": 120_000,
        "queue.buffering.max.kbytes": _BUFFER_KBYTES,
        "queue.buffering.max.messages": 0,
        "enable.idempotence": True,
        **asked,
    }
    if str(used["acks"]) not in _ALL and "enable.idempotence" not in asked:
        used["enable.idempotence"] = False  # as Java does when only acks was given
    if "transactional.id" in used:
        # A record may not wait longer than its transaction; Java sees to that itself.
        longest_ms = int(used.get("transaction.timeout.ms", _TRANSACTION_MS))
        used["message.timeout.ms"] = min(int(used["message.timeout.ms"]), longest_ms)
    return used


def consumer(
    base: Settings,
    properties: Properties,
    *,
    group: str,
    from_latest: bool,
    fetch_bytes: int,
    socket_bytes: int,
) -> Settings:
    """For a measurement of reading."""
    return {
        **base,
        "client.id": "perf-consumer-client",
        "queued.min.messages": 1_000_000,  # fetch ahead as long as there is room
        **translated(properties),
        "group.id": group,
        "auto.offset.reset": "latest" if from_latest else "earliest",
        "max.partition.fetch.bytes": fetch_bytes,
        "socket.receive.buffer.bytes": socket_bytes,
        "check.crcs": False,
    }


def trip_producer(base: Settings, properties: Properties, acks: str) -> Settings:
    """For records that are written one at a time."""
    return {**producer(base, {**properties, "acks": acks}), "linger.ms": 0}


def trip_consumer(base: Settings, properties: Properties, group: str) -> Settings:
    """For records that are read one at a time, as soon as they are there."""
    return {
        **base,
        "client.id": "perf-consumer-client",
        **translated(properties),
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "latest",
        "fetch.min.bytes": 1,  # a fetch that waits at the broker is answered by the next record
    }
