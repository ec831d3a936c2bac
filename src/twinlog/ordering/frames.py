"""HTTP/2 frames as bytes, as far as gRPC needs them. Pure.

`connection` takes frames apart with `split` and writes them with the functions below. Header blocks are
written without a table and without Huffman's code, so that they depend on nothing sent before; they are
read with a real decoder, because clients use both.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES = 9
DEFAULT_WINDOW_BYTES = 65_535
LARGEST_WINDOW_BYTES = 2**31 - 1
DEFAULT_FRAME_BYTES = 16_384
LARGEST_FRAME_BYTES = 2**24 - 1

DATA = 0x0
HEADERS = 0x1
PRIORITY = 0x2
RST_STREAM = 0x3
SETTINGS = 0x4
PUSH_PROMISE = 0x5
PING = 0x6
GOAWAY = 0x7
WINDOW_UPDATE = 0x8
CONTINUATION = 0x9

END_STREAM = 0x1
ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
HAS_PRIORITY = 0x20

MAX_CONCURRENT_STREAMS = 0x3
INITIAL_WINDOW_SIZE = 0x4
MAX_FRAME_SIZE = 0x5
MAX_HEADER_LIST_SIZE = 0x6

_HEAD = struct.Struct(">BHBBL")
_PAIR = struct.Struct(">HL")
_NUMBER = struct.Struct(">L")


class Code(IntEnum):
    """Why a stream or a connection ended."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    FLOW_CONTROL_ERROR = 0x3
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    COMPRESSION_ERROR = 0x9
    ENHANCE_YOUR_CALM = 0xB


class ProtocolError(Exception):
    """The other side broke the rules of HTTP/2; the connection ends."""

    def __init__(self, code: Code, what: str) -> None:
        super().__init__(what)
        self.code = code


class Frame(NamedTuple):
    """One frame as it came."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes


def split(data: bytes, limit_bytes: int) -> tuple[list[Frame], bytes]:
    """The whole frames at the start of `data`, and the rest."""
    frames = []
    place, end = 0, len(data)
    unpack = _HEAD.unpack_from
    while end - place >= HEADER_BYTES:
        high, low, kind, flags, stream_id = unpack(data, place)
        size = high << 16 | low
        if size > limit_bytes:
            raise ProtocolError(Code.FRAME_SIZE_ERROR, f"a frame of {size} bytes")
        start = place + HEADER_BYTES
        if end - start < size:
            break
        place = start + size
        frames.append(Frame(kind, flags, stream_id & 0x7FFF_FFFF, data[start:place]))
    return frames, data[place:] if place else data


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """One frame."""
    size = len(payload)
    return _HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, stream_id) + payload


def settings(pairs: Iterable[tuple[int, int]]) -> bytes:
    """A SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(_PAIR.pack(key, value) for key, value in pairs))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """The pairs in a SETTINGS frame."""
    if len(payload) % _PAIR.size:
        raise ProtocolError(Code.FRAME_SIZE_ERROR, "settings of a wrong size")
    return [_PAIR.unpack_from(payload, place) for place in range(0, len(payload), _PAIR.size)]


def window_update(stream_id: int, size_bytes: int) -> bytes:
    """Leave to send more."""
    return frame(WINDOW_UPDATE, 0, stream_id, _NUMBER.pack(size_bytes))


def read_number(payload: bytes) -> int:
    """The number that is all of a WINDOW_UPDATE or RST_STREAM frame."""
    if len(payload) != _NUMBER.size:
        raise ProtocolError(Code.FRAME_SIZE_ERROR, "a number of a wrong size")
    number: int = _NUMBER.unpack(payload)[0]
    return number


def reset(stream_id: int, code: Code) -> bytes:
    """The end of one stream."""
    return frame(RST_STREAM, 0, stream_id, _NUMBER.pack(code))


def goaway(last_stream_id: int, code: Code, why: str = "") -> bytes:
    """No stream after this one is looked at."""
    return frame(GOAWAY, 0, 0, _NUMBER.pack(last_stream_id) + _NUMBER.pack(code) + why.encode())


def content(taken: Frame) -> bytes:
    """What a DATA or HEADERS frame holds, without padding and priority."""
    payload, padding = taken.payload, 0
    if taken.flags & PADDED:
        if not payload:
            raise ProtocolError(Code.FRAME_SIZE_ERROR, "padding is announced and missing")
        padding, payload = payload[0], payload[1:]
    if taken.kind == HEADERS and taken.flags & HAS_PRIORITY:
        payload = payload[5:]
    if padding > len(payload):
        raise ProtocolError(Code.PROTOCOL_ERROR, "more padding than frame")
    return payload[: len(payload) - padding] if padding else payload


def header_block(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Headers, each as a literal that no table remembers."""
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in pairs)


def _text(text: str) -> bytes:
    raw = text.encode("utf-8")
    return _length(len(raw)) + raw


def _length(number: int) -> bytes:
    """An integer with a prefix of seven bits."""
    if number < 0x7F:
        return bytes((number,))
    octets = [0x7F]
    number -= 0x7F
    while number >= 0x80:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*octets, number))
