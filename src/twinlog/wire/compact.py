"""The compact forms of Kafka's protocol (KIP-482): lengths as varints, and tagged fields.

Pure; `fetch_bytes` and `produce_bytes` are made of these, and `connection` reads headers with them. A length
is written plus one, so that zero can mean "null". What is read is checked against the end of
the data: a length that points past it raises ValueError and never yields a shorter piece.
"""

from __future__ import annotations

_MOST_SHIFT = 28  # a varint of 32 bits has at most five bytes


def varint(number: int) -> bytes:
    """A number that is not negative: seven bits a byte, the lowest first."""
    if number < 0x80:
        return bytes((number,))
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def text(content: str) -> bytes:
    """A string."""
    encoded = content.encode()
    return varint(len(encoded) + 1) + encoded


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number that stands at a place, and the place behind it."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    number, shift = byte & 0x7F, 7
    while shift <= _MOST_SHIFT:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise ValueError("a varint of more than 32 bits")


def read_bytes(data: memoryview, at: int) -> tuple[memoryview | None, int]:
    """The piece of data that stands at a place (None if it is null), and the place behind it."""
    size, at = read_varint(data, at)
    if size == 0:
        return None, at
    end = at + size - 1
    if end > len(data):
        raise ValueError("a piece is longer than the answer that holds it")
    return data[at:end], end


def read_text(data: memoryview, at: int) -> tuple[str, int]:
    """The string that stands at a place (empty if it is null), and the place behind it."""
    content, at = read_bytes(data, at)
    return "" if content is None else str(content, "utf-8"), at


def read_count(data: memoryview, at: int) -> tuple[int, int]:
    """How many entries an array has (none if it is null), and where the first one stands."""
    count, at = read_varint(data, at)
    return max(0, count - 1), at


def skip_tags(data: memoryview, at: int) -> int:
    """The place behind tagged fields, whatever they are."""
    count, at = read_varint(data, at)
    for _ in range(count):
        _, at = read_varint(data, at)
        size, at = read_varint(data, at)
        at += size
    if at > len(data):
        raise ValueError("a tagged field is longer than the answer that holds it")
    return at
