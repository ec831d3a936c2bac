"""Headers of a record, in the bytes that a batch holds of it: read, put on, taken off.

Pure. Salvage puts its own headers before those that a record has and takes them off again; key, value
and the record's own headers are the same bytes afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from twinlog.wire.batches import UnreadableBatch
from twinlog.wire.contents import read_field, read_signed
from twinlog.wire.records import varint

Headers = Sequence[tuple[str, bytes | None]]
_NULL = -1


def headers(rest: bytes) -> list[tuple[str, bytes | None]]:
    """The headers of a record, in order; a name that is not text is shown as well as it goes."""
    data = memoryview(rest)
    try:
        _, count, at = _start(data)
        found: list[tuple[str, bytes | None]] = []
        for _ in range(count):
            name, at = read_field(data, at)
            value, at = read_field(data, at)
            found.append(((name or b"").decode(errors="replace"), value))
    except (IndexError, ValueError):
        raise _unreadable(rest) from None
    return found


def with_headers(rest: bytes, more: Headers) -> bytes:
    """The record with these headers before its own."""
    data = memoryview(rest)
    try:
        place, count, behind = _start(data)
    except (IndexError, ValueError):
        raise _unreadable(rest) from None
    added = b"".join(_encoded(name.encode()) + _encoded(value) for name, value in more)
    return b"".join((data[:place], varint(count + len(more)), added, data[behind:]))


def without_headers(rest: bytes, first: int) -> bytes:
    """The record without that many of its first headers."""
    data = memoryview(rest)
    try:
        place, count, at = _start(data)
        for _ in range(2 * first):
            _, at = read_field(data, at)
    except (IndexError, ValueError):
        raise _unreadable(rest) from None
    if count < first:
        raise ValueError(f"the record has {count} headers, not {first}")
    return b"".join((data[:place], varint(count - first), data[at:]))


def _start(data: memoryview) -> tuple[int, int, int]:
    """Where the number of headers stands, the number, and where the first one stands."""
    _, at = read_field(data, 0)
    _, place = read_field(data, at)
    count, first = read_signed(data, place)
    if count < 0:
        raise ValueError
    return place, count, first


def _encoded(content: bytes | None) -> bytes:
    return varint(_NULL) if content is None else varint(len(content)) + content


def _unreadable(rest: bytes) -> UnreadableBatch:
    return UnreadableBatch(f"{len(rest)} bytes are not key, value and headers of a record")
