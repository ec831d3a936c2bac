"""Records of a compacted topic that one site has and the other has not: which of them may be missing.

Pure. Both sites clean their logs on their own, so either may have dropped a record already. It may
have done so only because it holds a newer one of the same key, or because the record says that its
key is gone (a tombstone) and has been in the log for long enough to go itself. Whatever is not
explained in one of these ways by the end is a difference. Only keys that wait for their explanation
are kept, as digests.
"""

from __future__ import annotations

from enum import Enum
from hashlib import blake2b
from typing import NamedTuple

from twinlog.mirror.compare import Seen
from twinlog.mirror.outline import outline
from twinlog.wire.contents import contents, key_of

_DIGEST_BYTES = 16


class Side(Enum):
    """One of the two logs."""

    ACTIVE = "active"
    STANDBY = "standby"

    @property
    def other(self) -> Side:
        """The other one."""
        return Side.STANDBY if self is Side.ACTIVE else Side.ACTIVE


class Unexplained(NamedTuple):
    """A record that a side lacks, the first of its key that it does, and what the other side has there."""

    side: Side
    offset: int
    outline: str


class Missing:
    """What each side lacks, until it is explained."""

    def __init__(self, tombstone_ms: int, now_ms: int) -> None:
        self._expired_before_ms = now_ms - tombstone_ms
        self._waiting: dict[Side, dict[bytes, Unexplained]] = {side: {} for side in Side}

    def __bool__(self) -> bool:
        """True while something waits for its explanation."""
        return any(self._waiting.values())

    def waits(self, side: Side) -> bool:
        """True while something that this side lacks waits for its explanation."""
        return bool(self._waiting[side])

    def lacks(self, side: Side, offset: int, record: Seen) -> None:
        """A side lacks a record that the other one has."""
        found = contents(record.content)
        if found.key is None:
            return  # the cleaner drops what has no key
        waiting, key = self._waiting[side], _digest(found.key)
        if found.is_tombstone and record.timestamp_ms <= self._expired_before_ms:
            waiting.pop(key, None)  # what was older went because of it, before it went itself
            return
        if key not in waiting:
            waiting[key] = Unexplained(side, offset, outline(record))

    def holds(self, side: Side, record: Seen) -> None:
        """A side holds a record: what it lacked of that key until here was superseded."""
        waiting = self._waiting[side]
        if waiting and (key := key_of(record.content)) is not None:
            waiting.pop(_digest(key), None)

    @property
    def first_offset(self) -> int | None:
        """The lowest offset that waits for its explanation."""
        return min((one.offset for side in self._waiting.values() for one in side.values()), default=None)

    def unexplained(self) -> list[Unexplained]:
        """What is still not explained, in the order of offsets."""
        found = (one for side in self._waiting.values() for one in side.values())
        return sorted(found, key=lambda one: one.offset)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
