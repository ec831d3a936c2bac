"""Properties of Kafka's Java clients as settings of librdkafka. Pure.

Command lines of Kafka's own tools run unchanged, so the names on them are Java's. Most names are the same in
both families and pass as they are; here stand those that are not. What has no counterpart is an error and
never dropped in silence: a measurement with other settings than asked for is none.
What belongs to access (security, TLS, login, addresses) is taken before by `clientfiles.read`.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.errors import UsageError
from twinlog.wire.driver import Settings

_RENAMED = {
    "request.timeout.ms": "socket.timeout.ms",  # librdkafka has the name too, for something else
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "delivery.timeout.ms": "message.timeout.ms",
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
}
# The tools set these themselves, whatever was given.
_OVERRULED = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")
_ASSIGNORS = {"Range": "range", "RoundRobin": "roundrobin", "CooperativeSticky": "cooperative-sticky"}
_NO_COUNTERPART = {
    "max.block.ms": "records wait for room as long as they have to",
    "max.poll.records": "librdkafka hands over what has come",
    "partitioner.class": "records without a key stay with a partition for a batch, in both families",
    "interceptor.classes": "librdkafka runs no Java classes",
    "metric.reporters": "librdkafka runs no Java classes",
    "metrics.recording.level": "--print-metrics prints what librdkafka counts",
    "default.api.timeout.ms": "every question of this tool has a time limit of its own",
    "partitioner.ignore.keys": "these records have no keys",
    "partitioner.adaptive.partitioning.enable": "librdkafka does not weigh partitions",
    "partitioner.availability.timeout.ms": "librdkafka does not weigh partitions",
}


def translated(properties: Mapping[str, str]) -> dict[str, str | int | float | bool]:
    """The settings that properties mean; raises for the first that librdkafka has no counterpart for."""
    settings: dict[str, str | int | float | bool] = {}
    for key, value in properties.items():
        if key in _OVERRULED:
            continue
        settings |= _one(key, value)
    return settings


def given(pairs: tuple[str, ...]) -> dict[str, str]:
    """Properties of a command line: KEY=VALUE each."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"'{pair}' is no property", hint="it is written as NAME=VALUE")
        found[key.strip()] = value.strip()
    return found


def _one(key: str, value: str) -> Settings:
    if key in _NO_COUNTERPART:
        raise UsageError(
            f"{key} has no counterpart in librdkafka: {_NO_COUNTERPART[key]}",
            hint=f"leave {key} out, or run Kafka's own tool with it",
        )
    if key == "buffer.memory":
        # Java counts bytes only, librdkafka also records: 0 takes that limit away.
        return {
            "queue.buffering.max.kbytes": max(1, whole(key, value) // 1024),
            "queue.buffering.max.messages": 0,
        }
    if key in ("send.buffer.bytes", "receive.buffer.bytes"):
        return {_RENAMED[key]: max(0, whole(key, value))}  # "as the system has it": -1 for Java, 0 here
    if key == "partition.assignment.strategy":
        return {key: ",".join(_assignor(name.strip()) for name in value.split(","))}
    return {_RENAMED.get(key, key): value}


def whole(key: str, value: str) -> int:
    """A property that is a whole number."""
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"{key} is '{value}' and must be a whole number", hint=f"{key}=65536, say") from None


def _assignor(name: str) -> str:
    short = name.rpartition(".")[2].removesuffix("Assignor")
    if name in _ASSIGNORS.values():
        return name
    if short not in _ASSIGNORS:
        raise UsageError(
            f"the assignor {name} has no counterpart in librdkafka",
            hint=f"one of {', '.join(_ASSIGNORS.values())}",
        )
    return _ASSIGNORS[short]
