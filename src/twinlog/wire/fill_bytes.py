"""The bytes of a fill: WriteTxnMarkers (versions 1 and 2), and the question for the log end behind it
(ListOffsets, versions 6 to 9).

Pure; `markers` holds the conversation. By hand, because a partition full of small transactions needs
both for every commit, and kafka-python's classes cost more than the rest of the way.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from twinlog.wire.compact import read_count, read_text, skip_tags, text, varint
from twinlog.wire.offsets import TopicPartition

MARKERS_NAME, MARKERS_API_KEY = "WriteTxnMarkersRequest", 27
ENDS_NAME, ENDS_API_KEY = "ListOffsetsRequest", 2

_WITH_TRANSACTION_VERSION = 2
_PRODUCER = struct.Struct(">qh?")  # producer id, epoch, whether to commit
_INT32 = struct.Struct(">i")
_INT64_BYTES = 8
_NO_TAGS = b"\0"
_LENIENT = b"\0"  # the strict epochs of transaction version 2 (KIP-1228) are for coordinators
_MARKED = struct.Struct(">ih")  # partition, code
_DEBUGGER = struct.pack(">ib", -2, 0)  # who may see the end of the log, and isolation
_ASK_END = struct.Struct(">iiqx")  # partition, leader epoch, timestamp, no tags
_ANY_EPOCH = _LATEST = -1
_END = struct.Struct(">ihqqi")  # partition, code, timestamp, offset, leader epoch


@dataclass(frozen=True)
class Fill:
    """So many markers of a producer for one partition."""

    topic: str
    partition: int
    count: int
    producer_id: int
    producer_epoch: int
    # Of the coordinator in whose name they are; one below an earlier marker's would be refused.
    coordinator_epoch: int = 0


def encode_markers(version: int, fills: Sequence[Fill]) -> bytes:
    """A request for abort markers: first one for every partition, then a second, and so on."""
    by_producer: dict[tuple[int, int, int], list[Fill]] = defaultdict(list)
    for fill in fills:
        by_producer[(fill.producer_id, fill.producer_epoch, fill.coordinator_epoch)].append(fill)
    total = 0
    pieces: list[bytes] = []
    for producer, theirs in by_producer.items():
        done = 0
        # As long as the same partitions want more, the same marker is repeated.
        for level in sorted({fill.count for fill in theirs}):
            places = [(fill.topic, fill.partition) for fill in theirs if fill.count >= level]
            pieces.append(_marker(version, producer, places) * (level - done))
            done = level
        total += done
    return b"".join((varint(total + 1), *pieces, _NO_TAGS))


def decode_markers(data: memoryview) -> dict[TopicPartition, int]:
    """The answer in a frame, behind its header: a code for each partition."""
    told: dict[TopicPartition, int] = {}
    producers, at = read_count(data, 0)
    for _ in range(producers):
        topics, at = read_count(data, at + _INT64_BYTES)
        for _ in range(topics):
            topic, at = read_text(data, at)
            partitions, at = read_count(data, at)
            for _ in range(partitions):
                partition, code = _MARKED.unpack_from(data, at)
                told[(topic, partition)] = code
                at = skip_tags(data, at + _MARKED.size)
            at = skip_tags(data, at)
        at = skip_tags(data, at)
    return told


def encode_ends(places: Iterable[TopicPartition]) -> bytes:
    """A request for the log ends of partitions."""
    by_topic: dict[str, list[bytes]] = defaultdict(list)
    for topic, partition in places:
        by_topic[topic].append(_ASK_END.pack(partition, _ANY_EPOCH, _LATEST))
    return _DEBUGGER + _by_topic(by_topic) + _NO_TAGS


def decode_ends(data: memoryview) -> dict[TopicPartition, tuple[int, int]]:
    """The answer in a frame, behind its header: a code and the log end of each partition."""
    told: dict[TopicPartition, tuple[int, int]] = {}
    topics, at = read_count(data, _INT32.size)  # past how long we were throttled
    for _ in range(topics):
        topic, at = read_text(data, at)
        partitions, at = read_count(data, at)
        for _ in range(partitions):
            partition, code, _, offset, _ = _END.unpack_from(data, at)
            told[(topic, partition)] = (code, offset)
            at = skip_tags(data, at + _END.size)
        at = skip_tags(data, at)
    return told


def _marker(version: int, producer: tuple[int, int, int], places: Iterable[TopicPartition]) -> bytes:
    producer_id, epoch, coordinator_epoch = producer
    by_topic: dict[str, list[bytes]] = defaultdict(list)
    for topic, partition in places:
        by_topic[topic].append(_INT32.pack(partition))
    return b"".join(
        (
            _PRODUCER.pack(producer_id, epoch, False),
            _by_topic(by_topic),
            _INT32.pack(coordinator_epoch),
            _LENIENT if version >= _WITH_TRANSACTION_VERSION else b"",
            _NO_TAGS,
        )
    )


def _by_topic(entries: dict[str, list[bytes]]) -> bytes:
    pieces = [varint(len(entries) + 1)]
    for topic, partitions in entries.items():
        pieces += (text(topic), varint(len(partitions) + 1), *partitions, _NO_TAGS)
    return b"".join(pieces)
