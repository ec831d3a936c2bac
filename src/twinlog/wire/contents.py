"""What a record carries, read from the bytes that a batch holds of it: key, value, headers.

Pure. `recode` passes these bytes on without looking; whoever has to know a record's key, or to
describe a record without showing what is in it, reads them here.
"""

from __future__ import annotations

from typing import NamedTuple

from twinlog.wire.batches import UnreadableBatch
from twinlog.wire.compact import read_varint


class Contents(NamedTuple):
    """Key and value as they were sent (None is null), and the number of headers."""

    key: bytes | None
    value: bytes | None
    header_count: int

    @property
    def is_tombstone(self) -> bool:
        """True if it says that its key is gone."""
        return self.key is not None and self.value is None


def contents(rest: bytes) -> Contents:
    """Key, value and headers of a record."""
    data = memoryview(rest)
    try:
        key, at = read_field(data, 0)
        value, at = read_field(data, at)
        header_count, _ = read_signed(data, at)
    except (IndexError, ValueError):
        raise UnreadableBatch(f"{len(rest)} bytes are not key, value and headers of a record") from None
    return Contents(key, value, header_count)


def key_of(rest: bytes) -> bytes | None:
    """The key alone."""
    try:
        return read_field(memoryview(rest), 0)[0]
    except (IndexError, ValueError):
        raise UnreadableBatch(f"{len(rest)} bytes do not begin with the key of a record") from None


def read_field(data: memoryview, at: int) -> tuple[bytes | None, int]:
    """The piece of a record that stands at a place (None if it is null), and the place behind it."""
    length, at = read_signed(data, at)
    if length < 0:
        return None, at
    if at + length > len(data):
        raise ValueError
    return bytes(data[at : at + length]), at + length


def read_signed(data: memoryview, at: int) -> tuple[int, int]:
    """The number at a place, written so that small ones of either sign are short, and the place behind."""
    number, at = read_varint(data, at)
    return (number >> 1) ^ -(number & 1), at
