"""The bytes of ConsumerGroupHeartbeat: how members join and leave groups of the newer protocol (KIP-848).

Pure; `arrivals` sends them. By hand because kafka-python has no classes for it.
A member names itself, joins in epoch 0 and leaves in epoch -1; of an answer only its code matters.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from twinlog.wire.compact import read_text, text

NAME, API_KEY, VERSION = "ConsumerGroupHeartbeatRequest", 68, 1
JOIN, LEAVE = 0, -1

_INT32 = struct.Struct(">i")
_CODE = struct.Struct(">h")
_NULL, _NONE_OF_THEM, _NO_TAGS = b"\0", b"\1", b"\0"
_REBALANCE_TIMEOUT_MS = 60_000


class Answered(NamedTuple):
    """What the coordinator said."""

    code: int
    message: str


def encode(group: str, member: str, epoch: int) -> bytes:
    """A heartbeat of a member that reads no topic."""
    return b"".join(
        (
            text(group),
            text(member),
            _INT32.pack(epoch),
            _NULL,  # instance: not a static member
            _NULL,  # rack
            _INT32.pack(_REBALANCE_TIMEOUT_MS),
            _NONE_OF_THEM,  # topics by name
            _NULL,  # topics by pattern
            _NULL,  # assignor
            _NONE_OF_THEM,  # partitions that it owns
            _NO_TAGS,
        )
    )


def decode(data: memoryview) -> Answered:
    """The answer in a frame, behind its header."""
    (code,) = _CODE.unpack_from(data, _INT32.size)  # past how long we were throttled
    message, _ = read_text(data, _INT32.size + _CODE.size)
    return Answered(code, message)
