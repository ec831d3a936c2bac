"""The headers of one connection's calls: gathered from their frames, and decoded.

`connection` gives it every HEADERS and CONTINUATION frame. A block of headers may come in several frames,
with no other frame between them. All blocks of a connection share one table, so every one is decoded, also
that of a call which is refused.
"""

from __future__ import annotations

from typing import NamedTuple

from hpack import Decoder, HPACKError

from twinlog.ordering import frames
from twinlog.ordering.frames import Code, Frame, ProtocolError

LIMIT_BYTES = 64 * 1024


class Headers(NamedTuple):
    """The headers of one call, whole, or its trailers."""

    stream_id: int
    ends_stream: bool
    pairs: dict[str, str]


class _Begun(NamedTuple):
    """Headers whose end has not come."""

    stream_id: int
    ends_stream: bool
    block: bytes


class Gathering:
    """What has come of the headers that are on their way."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=LIMIT_BYTES)
        self._begun: _Begun | None = None

    def add(self, one: Frame) -> Headers | None:
        """Take the next frame of headers; gives them when they are whole."""
        begun = self._begin(one) if one.kind == frames.HEADERS else self._continue(one)
        return self._gather(begun, one.flags)

    def check(self, one: Frame) -> None:
        """Raise for a frame that stands where headers should go on."""
        if self._begun is not None and one.kind != frames.CONTINUATION:
            raise ProtocolError(Code.PROTOCOL_ERROR, "a frame in the middle of headers")

    def _begin(self, one: Frame) -> _Begun:
        if one.stream_id % 2 == 0:
            raise ProtocolError(Code.PROTOCOL_ERROR, "clients begin streams with odd numbers")
        return _Begun(one.stream_id, bool(one.flags & frames.END_STREAM), frames.content(one))

    def _continue(self, one: Frame) -> _Begun:
        if self._begun is None or self._begun.stream_id != one.stream_id:
            raise ProtocolError(Code.PROTOCOL_ERROR, "headers that continue nothing")
        return self._begun._replace(block=self._begun.block + one.payload)

    def _gather(self, begun: _Begun, flags: int) -> Headers | None:
        if len(begun.block) > LIMIT_BYTES:
            raise ProtocolError(Code.ENHANCE_YOUR_CALM, "too many headers")
        if not flags & frames.END_HEADERS:
            self._begun = begun
            return None
        self._begun = None
        try:
            pairs = {str(name): str(value) for name, value in self._decoder.decode(begun.block)}
        except (HPACKError, UnicodeDecodeError) as error:
            raise ProtocolError(Code.COMPRESSION_ERROR, f"headers that cannot be read: {error}") from None
        return Headers(begun.stream_id, begun.ends_stream, pairs)
