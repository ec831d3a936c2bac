"""Who is in a group and what each member reads, as three kinds of groups tell it.

Pure; `groups` asks. The bytes of ConsumerGroupDescribe (KIP-848) and ShareGroupDescribe (KIP-932) are read
here by hand because kafka-python has no classes for them; a classic member's assignment is bytes in
an answer of its own. Of a member what names it is kept, and the partitions that it has now.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from twinlog.wire.compact import read_count, read_text, skip_tags, text, varint
from twinlog.wire.offsets import TopicPartition

NAME, API_KEY, VERSION = "ConsumerGroupDescribeRequest", 69, 0
SHARE_NAME, SHARE_API_KEY, SHARE_VERSION = "ShareGroupDescribeRequest", 77, 1

_CODE = struct.Struct(">h")
_INT32_BYTES, _ID_BYTES = 4, 16
_VERSION_AND_COUNT = struct.Struct(">hi")
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_NO_RIGHTS_NO_TAGS = b"\0\0"


@dataclass(frozen=True)
class Member:
    """A consumer in a group. `instance_id` is that of a static member, or empty."""

    id: str
    client_id: str
    host: str
    instance_id: str = ""
    assigned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class Membership:
    """A group's state, by Kafka's name, and who is in it."""

    state: str
    members: tuple[Member, ...]
    assignor: str = ""


class Described(NamedTuple):
    """What came of one group."""

    name: str
    code: int
    message: str
    membership: Membership


def encode(names: Sequence[str]) -> bytes:
    """A request about groups."""
    return varint(len(names) + 1) + b"".join(text(name) for name in names) + _NO_RIGHTS_NO_TAGS


def decode(data: memoryview) -> list[Described]:
    """The answer about consumer groups in a frame, behind its header."""
    return _decode(data, _member)


def decode_share(data: memoryview) -> list[Described]:
    """The answer about share groups in a frame, behind its header."""
    return _decode(data, _share_member)


def classic_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """What a classic member was given, from the bytes that its leader wrote; nothing if they are no such."""
    found: list[TopicPartition] = []
    try:
        _, topics = _VERSION_AND_COUNT.unpack_from(data, 0)
        at = _VERSION_AND_COUNT.size
        for _ in range(topics):
            (size,) = _INT16.unpack_from(data, at)
            at += _INT16.size
            topic = data[at : at + size].decode()
            (count,) = _INT32.unpack_from(data, at + size)
            at += size + _INT32.size
            found += ((topic, index) for index in struct.unpack_from(f">{count}i", data, at))
            at += count * _INT32_BYTES
    except (struct.error, UnicodeDecodeError):
        return ()  # not every user of the classic protocol is a consumer: Connect writes its own
    return tuple(found)


def _decode(data: memoryview, member_of: _ReadMember) -> list[Described]:
    count, at = read_count(data, _INT32_BYTES)  # past how long we were throttled
    groups = []
    for _ in range(count):
        group, at = _group(data, at, member_of)
        groups.append(group)
    return groups


def _group(data: memoryview, at: int, member_of: _ReadMember) -> tuple[Described, int]:
    (code,) = _CODE.unpack_from(data, at)
    message, at = read_text(data, at + _CODE.size)
    name, at = read_text(data, at)
    state, at = read_text(data, at)
    assignor, at = read_text(data, at + 2 * _INT32_BYTES)  # past two epochs
    count, at = read_count(data, at)
    members = []
    for _ in range(count):
        member, at = member_of(data, at)
        members.append(member)
    at = skip_tags(data, at + _INT32_BYTES)  # past rights that were not asked for
    return Described(name, code, message, Membership(state, tuple(members), assignor)), at


def _member(data: memoryview, at: int) -> tuple[Member, int]:
    member_id, at = read_text(data, at)
    instance_id, at = read_text(data, at)
    _, at = read_text(data, at)  # the rack
    client_id, at = read_text(data, at + _INT32_BYTES)  # past its epoch
    host, at = read_text(data, at)
    at = _skip_names(data, at)
    _, at = read_text(data, at)  # the pattern that it subscribed to
    assigned, at = _assignment(data, at)
    _, at = _assignment(data, at)  # what it will have
    return Member(member_id, client_id, host, instance_id, assigned), skip_tags(data, at)


def _share_member(data: memoryview, at: int) -> tuple[Member, int]:
    member_id, at = read_text(data, at)
    _, at = read_text(data, at)  # the rack
    client_id, at = read_text(data, at + _INT32_BYTES)  # past its epoch
    host, at = read_text(data, at)
    at = _skip_names(data, at)
    assigned, at = _assignment(data, at)
    return Member(member_id, client_id, host, assigned=assigned), skip_tags(data, at)


def _skip_names(data: memoryview, at: int) -> int:
    names, at = read_count(data, at)
    for _ in range(names):
        _, at = read_text(data, at)
    return at


def _assignment(data: memoryview, at: int) -> tuple[tuple[TopicPartition, ...], int]:
    found: list[TopicPartition] = []
    topics, at = read_count(data, at)
    for _ in range(topics):
        topic, at = read_text(data, at + _ID_BYTES)
        count, at = read_count(data, at)
        found += ((topic, index) for index in struct.unpack_from(f">{count}i", data, at))
        at = skip_tags(data, at + count * _INT32_BYTES)
    return tuple(found), skip_tags(data, at)


_ReadMember = Callable[[memoryview, int], tuple[Member, int]]
