"""Who is in a group, and the request that tells it of groups of the newer protocol (KIP-848).

Pure; `groups` asks. The bytes of ConsumerGroupDescribe are read here by hand because kafka-python
has no classes for it. Of a member only what names it is kept; what it reads is passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from twinlog.wire.compact import read_count, read_text, skip_tags, text, varint

NAME, API_KEY, VERSION = "ConsumerGroupDescribeRequest", 69, 0

_CODE = struct.Struct(">h")
_INT32_BYTES, _ID_BYTES = 4, 16
_NO_RIGHTS_NO_TAGS = b"\0\0"


@dataclass(frozen=True)
class Member:
    """A consumer in a group. `instance_id` is that of a static member, or empty."""

    id: str
    client_id: str
    host: str
    instance_id: str = ""


@dataclass(frozen=True)
class Membership:
    """A group's state, by Kafka's name, and who is in it."""

    state: str
    members: tuple[Member, ...]


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
    """The answer in a frame, behind its header."""
    count, at = read_count(data, _INT32_BYTES)  # past how long we were throttled
    groups = []
    for _ in range(count):
        group, at = _group(data, at)
        groups.append(group)
    return groups


def _group(data: memoryview, at: int) -> tuple[Described, int]:
    (code,) = _CODE.unpack_from(data, at)
    message, at = read_text(data, at + _CODE.size)
    name, at = read_text(data, at)
    state, at = read_text(data, at)
    _, at = read_text(data, at + 2 * _INT32_BYTES)  # past two epochs; the assignor
    count, at = read_count(data, at)
    members = []
    for _ in range(count):
        member, at = _member(data, at)
        members.append(member)
    at = skip_tags(data, at + _INT32_BYTES)  # past rights that were not asked for
    return Described(name, code, message, Membership(state, tuple(members))), at


def _member(data: memoryview, at: int) -> tuple[Member, int]:
    member_id, at = read_text(data, at)
    instance_id, at = read_text(data, at)
    _, at = read_text(data, at)  # the rack
    client_id, at = read_text(data, at + _INT32_BYTES)  # past its epoch
    host, at = read_text(data, at)
    names, at = read_count(data, at)
    for _ in range(names):
        _, at = read_text(data, at)
    _, at = read_text(data, at)  # the pattern that it subscribed to
    for _ in ("now", "soon"):
        at = _skip_assignment(data, at)
    return Member(member_id, client_id, host, instance_id), skip_tags(data, at)


def _skip_assignment(data: memoryview, at: int) -> int:
    topics, at = read_count(data, at)
    for _ in range(topics):
        _, at = read_text(data, at + _ID_BYTES)
        partitions, at = read_count(data, at)
        at = skip_tags(data, at + partitions * _INT32_BYTES)
    return skip_tags(data, at)
