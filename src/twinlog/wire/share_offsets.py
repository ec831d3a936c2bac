"""Where share groups (KIP-932) begin to read: their start offsets, read and set.

The mirror copies them as it does the offsets of consumer groups. A group that is not there is made by
setting an offset; one that has members refuses. What single members have acknowledged behind the
start is known to nobody outside. The bytes are written here by hand because kafka-python has no
classes for these requests.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from twinlog.wire import codes, groups
from twinlog.wire.cluster import Cluster
from twinlog.wire.compact import read_count, read_text, skip_tags, text, varint
from twinlog.wire.connection import RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.versions import Range

DESCRIBE, DESCRIBE_KEY = "DescribeShareGroupOffsetsRequest", 90
ALTER, ALTER_KEY = "AlterShareGroupOffsetsRequest", 91
VERSION = 0

_NO_OFFSET = -1  # nobody has begun to read there
_PLACE = struct.Struct(">iq")  # partition, start offset
_TOLD = struct.Struct(">iqih")  # partition, start offset, leader epoch, code
_CHANGED = struct.Struct(">ih")  # partition, code
_CODE = struct.Struct(">h")
_ID_BYTES, _INT32_BYTES = 16, 4
_ALL_TOPICS, _NO_TAGS = b"\0", b"\0"

Starts = dict[TopicPartition, int]


class Told(NamedTuple):
    """What came of one group."""

    name: str
    code: int
    message: str
    starts: Starts


class Changed(NamedTuple):
    """What became of a change; without a code of its own, a code for each partition."""

    code: int
    message: str
    partitions: dict[TopicPartition, int]


# The bytes


def encode_describe(names: Iterable[str]) -> bytes:
    """A request for all start offsets of groups."""
    wanted = [text(name) + _ALL_TOPICS + _NO_TAGS for name in names]
    return varint(len(wanted) + 1) + b"".join(wanted) + _NO_TAGS


def decode_describe(data: memoryview) -> list[Told]:
    """The answer in a frame, behind its header."""
    count, at = read_count(data, _INT32_BYTES)  # past how long we were throttled
    told = []
    for _ in range(count):
        name, at = read_text(data, at)
        starts: Starts = {}
        topics, at = read_count(data, at)
        for _ in range(topics):
            topic, at = read_text(data, at)
            partitions, at = read_count(data, at + _ID_BYTES)
            for _ in range(partitions):
                index, offset, _, code = _TOLD.unpack_from(data, at)
                _, at = read_text(data, at + _TOLD.size)
                at = skip_tags(data, at)
                if code == codes.NONE and offset != _NO_OFFSET:
                    starts[(topic, index)] = offset
            at = skip_tags(data, at)
        (code,) = _CODE.unpack_from(data, at)
        message, at = read_text(data, at + _CODE.size)
        at = skip_tags(data, at)
        told.append(Told(name, code, message, starts))
    return told


def encode_alter(name: str, starts: Mapping[TopicPartition, int]) -> bytes:
    """A request to set start offsets of one group."""
    by_topic: dict[str, list[bytes]] = defaultdict(list)
    for (topic, index), offset in starts.items():
        by_topic[topic].append(_PLACE.pack(index, offset) + _NO_TAGS)
    topics = [
        text(topic) + varint(len(places) + 1) + b"".join(places) + _NO_TAGS
        for topic, places in by_topic.items()
    ]
    return text(name) + varint(len(topics) + 1) + b"".join(topics) + _NO_TAGS


def decode_alter(data: memoryview) -> Changed:
    """The answer in a frame, behind its header."""
    (code,) = _CODE.unpack_from(data, _INT32_BYTES)
    message, at = read_text(data, _INT32_BYTES + _CODE.size)
    topics, at = read_count(data, at)
    partitions: dict[TopicPartition, int] = {}
    for _ in range(topics):
        topic, at = read_text(data, at)
        count, at = read_count(data, at + _ID_BYTES)
        for _ in range(count):
            index, part_code = _CHANGED.unpack_from(data, at)
            _, at = read_text(data, at + _CHANGED.size)
            at = skip_tags(data, at)
            partitions[(topic, index)] = part_code
        at = skip_tags(data, at)
    return Changed(code, message, partitions)


# The hands


def are_known(cluster: Cluster) -> bool:
    """True if the cluster has share groups and lets their offsets be set."""
    wanted = Range(VERSION, VERSION)
    connection = cluster.retry(cluster.any_broker)
    return all(connection.knows(key, wanted) for key in (DESCRIBE_KEY, ALTER_KEY))


def describe(cluster: Cluster, names: Iterable[str]) -> dict[str, Starts]:
    """Where each group begins to read; partitions that it has not begun are left out."""
    wanted = tuple(names)

    def attempt() -> dict[str, Starts]:
        found: dict[str, Starts] = {name: {} for name in wanted}
        for coordinator, theirs in groups.by_coordinator(cluster, wanted).items():
            request = RawRequest(DESCRIBE, DESCRIBE_KEY, VERSION, [encode_describe(theirs)], decode_describe)
            connection, deadline = cluster.broker(coordinator), Deadline(cluster.patience.request_s)
            for name, code, message, starts in connection.receive(
                connection.send_raw(request, deadline), deadline
            ):
                if not groups.is_missing(code):
                    codes.check(code, message, f"reading where share group '{name}' begins", cluster.where)
                    found[name] = starts
        return found

    return cluster.retry(attempt)


def alter(
    cluster: Cluster, offsets: Mapping[str, Mapping[TopicPartition, int]]
) -> dict[str, dict[TopicPartition, int]]:
    """Set where groups without members begin to read; gives a code for each partition of each group."""
    told: dict[str, dict[TopicPartition, int]] = {}

    def attempt() -> dict[str, dict[TopicPartition, int]]:
        left = [name for name in offsets if name not in told]
        for coordinator, names in groups.by_coordinator(cluster, left).items():
            for name in names:
                told[name] = _alter(cluster, coordinator, name, offsets[name])
        return told

    return cluster.retry(attempt)


def _alter(
    cluster: Cluster, coordinator: int, name: str, starts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    request = RawRequest(ALTER, ALTER_KEY, VERSION, [encode_alter(name, starts)], decode_alter)
    connection, deadline = cluster.broker(coordinator), Deadline(cluster.patience.request_s)
    changed = connection.receive(connection.send_raw(request, deadline), deadline)
    if groups.has_moved(changed.code):
        what = f"setting where share group '{name}' begins"
        raise codes.error_for(changed.code, changed.message, what, cluster.where)
    return {place: changed.code or changed.partitions.get(place, codes.NONE) for place in starts}
