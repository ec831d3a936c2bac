"""The bytes of Fetch, both ways (versions 12 to 18).

Pure; `fetching` holds the conversation. By hand, because kafka-python's classes copy every
partition's records into bytes that cannot be changed, while the mirror stamps batches where they lie:
the records of an answer are pieces of its frame, which stays in memory as long as one of them does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from twinlog.wire.compact import read_count, read_varint, skip_tags, varint
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.topic_keys import TopicKeys

NAME, API_KEY = "FetchRequest", 1
NO_SESSION = 0
FIRST_EPOCH, LAST_EPOCH = 0, -1  # of a session: the one that opens it, and the one that ends it

_REPLICA_GONE = 15  # from this version on only followers name themselves (KIP-903)
_CONSUMER = struct.pack(">i", -1)
_ASK = struct.Struct(">iiibii")  # wait, least and most bytes, isolation, session and its epoch
# Partition, leader epoch, offset, last epoch, the follower's log start, most bytes, no tags.
_ASK_PARTITION = struct.Struct(">iiqiqix")
_NO_EPOCH = _NO_LOG_START = -1
_NO_RACK_NO_TAGS = b"\1\0"
_ANSWER = struct.Struct(">ihi")  # throttled for, code, session
_PARTITION = struct.Struct(">ihqqq")  # partition, code, high watermark, last stable, log start
_ABORTED = struct.Struct(">qq")  # producer id, first offset
_INT32 = struct.Struct(">i")


@dataclass(frozen=True)
class FetchLimits:
    """What one fetch may bring. A batch that is larger than the limits comes alone (KIP-74)."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 16 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    read_committed: bool = True


class Fetched(NamedTuple):
    """What came of one partition. `aborted`: (first offset, producer id) of each aborted transaction.

    `records` can be written to. Its last batch may be cut off; its first may begin before the
    offset that was asked for.
    """

    topic: str
    partition: int
    code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]
    records: memoryview


class FetchAnswer(NamedTuple):
    """A whole answer; `code` is about the session."""

    code: int
    session_id: int
    fetched: list[Fetched]


def encode(
    version: int,
    keys: TopicKeys,
    limits: FetchLimits,
    session: tuple[int, int],
    wanted: Mapping[TopicPartition, int],
    forgotten: Iterable[TopicPartition] = (),
) -> bytes:
    """A request of a session (its id and epoch) for partitions from offsets on."""
    most = limits.partition_max_bytes
    asked: dict[str, list[bytes]] = {}
    for (topic, partition), offset in wanted.items():
        asked.setdefault(topic, []).append(
            _ASK_PARTITION.pack(partition, _NO_EPOCH, offset, _NO_EPOCH, _NO_LOG_START, most)
        )
    left: dict[str, list[bytes]] = {}
    for topic, partition in forgotten:
        left.setdefault(topic, []).append(_INT32.pack(partition))
    isolation = 1 if limits.read_committed else 0
    return b"".join(
        (
            _CONSUMER if version < _REPLICA_GONE else b"",
            _ASK.pack(limits.max_wait_ms, limits.min_bytes, limits.max_bytes, isolation, *session),
            _by_topic(keys, asked),
            _by_topic(keys, left),
            _NO_RACK_NO_TAGS,
        )
    )


def decode(data: memoryview, keys: TopicKeys) -> FetchAnswer:
    """The answer in a frame, behind its header."""
    _, code, session_id = _ANSWER.unpack_from(data)
    topics, at = read_count(data, _ANSWER.size)
    fetched: list[Fetched] = []
    for _ in range(topics):
        topic, at = keys.read(data, at)
        partitions, at = read_count(data, at)
        for _ in range(partitions):
            one, at = _partition(topic, data, at)
            fetched.append(one)
        at = skip_tags(data, at)
    return FetchAnswer(code, session_id, fetched)


def _by_topic(keys: TopicKeys, entries: Mapping[str, list[bytes]]) -> bytes:
    pieces = [varint(len(entries) + 1)]
    for topic, partitions in entries.items():
        pieces += (keys.write(topic), varint(len(partitions) + 1), *partitions, b"\0")
    return b"".join(pieces)


def _partition(topic: str, data: memoryview, at: int) -> tuple[Fetched, int]:
    partition, code, high_watermark, last_stable, log_start = _PARTITION.unpack_from(data, at)
    transactions, at = read_count(data, at + _PARTITION.size)
    aborted: tuple[tuple[int, int], ...] = ()
    for _ in range(transactions):
        producer_id, first_offset = _ABORTED.unpack_from(data, at)
        aborted += ((first_offset, producer_id),)
        at = skip_tags(data, at + _ABORTED.size)
    size, at = read_varint(data, at + _INT32.size)  # past the replica that it would rather have us ask
    end = at + max(0, size - 1)
    if end > len(data):
        raise ValueError("records are longer than the answer that holds them")
    records = data[at:end]
    at = end + 1 if data[end] == 0 else skip_tags(data, end)
    return (
        Fetched(topic, partition, code, high_watermark, last_stable, log_start, aborted, records),
        at,
    )
