"""The bytes of Produce, both ways (versions 9 to 13).

Pure; `appending` holds the conversation. By hand, because kafka-python's classes copy every batch
three times: here a request is a list of pieces in which the batches are the caller's own memory,
to be left alone until the request has been sent.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from twinlog.wire.compact import read_count, read_text, skip_tags, varint
from twinlog.wire.connection import Piece
from twinlog.wire.topic_keys import TopicKeys

NAME, API_KEY = "ProduceRequest", 0

_ASK = struct.Struct(">xhi")  # no transactional id, acks, timeout
_INT32 = struct.Struct(">i")
_NO_TAGS = b"\0"
_PARTITION = struct.Struct(">ihqqq")  # partition, code, base offset, append time, log start
_NOTHING_MORE = b"\1\0\0"  # no wrong records, no message, no tags


class Appended(NamedTuple):
    """What became of one batch. `message` is the broker's own words about a code, or empty."""

    topic: str
    partition: int
    code: int
    base_offset: int
    message: str


def encode(
    keys: TopicKeys, acks: int, timeout_ms: int, batches: Sequence[tuple[str, int, Piece]]
) -> list[Piece]:
    """A request that appends one batch to each of some partitions, in pieces."""
    by_topic: dict[str, dict[int, Piece]] = {}
    for topic, partition, batch in batches:
        entries = by_topic.setdefault(topic, {})
        if partition in entries:
            raise ValueError(f"two batches for {topic}-{partition} in one request")
        entries[partition] = batch
    pieces: list[Piece] = []
    between = _ASK.pack(acks, timeout_ms) + varint(len(by_topic) + 1)
    for topic, entries in by_topic.items():
        between += keys.write(topic) + varint(len(entries) + 1)
        for partition, batch in entries.items():
            pieces.append(between + _INT32.pack(partition) + varint(len(batch) + 1))
            pieces.append(batch)
            between = _NO_TAGS
        between += _NO_TAGS
    pieces.append(between + _NO_TAGS)
    return pieces


def decode(data: memoryview, keys: TopicKeys) -> list[Appended]:
    """The answer in a frame, behind its header."""
    topics, at = read_count(data, 0)
    appended: list[Appended] = []
    for _ in range(topics):
        topic, at = keys.read(data, at)
        partitions, at = read_count(data, at)
        for _ in range(partitions):
            one, at = _partition(topic, data, at)
            appended.append(one)
        at = skip_tags(data, at)
    return appended


def _partition(topic: str, data: memoryview, at: int) -> tuple[Appended, int]:
    partition, code, base_offset, _, _ = _PARTITION.unpack_from(data, at)
    at += _PARTITION.size
    if bytes(data[at : at + len(_NOTHING_MORE)]) == _NOTHING_MORE:
        return Appended(topic, partition, code, base_offset, ""), at + len(_NOTHING_MORE)
    wrong, at = read_count(data, at)
    said: list[str] = []
    for _ in range(wrong):
        (index,) = _INT32.unpack_from(data, at)
        why, at = read_text(data, at + _INT32.size)
        said.append(f"record {index}: {why}" if why else f"record {index}")
        at = skip_tags(data, at)
    message, at = read_text(data, at)
    at = skip_tags(data, at)
    return Appended(topic, partition, code, base_offset, message or "; ".join(said)), at
