"""One call of a gRPC client, seen from the server: what its session hears, and what it may do.

`connection` makes a Stream for each call and hands over whole messages; sessions (`broadcast`, `deliver`)
send, finish, and hold a client that is too quick for them. For the thread of the server's loop only.
"""

from __future__ import annotations

import zlib
from typing import Protocol

from twinlog.ordering import frames

MESSAGE_LIMIT_BYTES = 100 * 1024 * 1024
STREAM_WINDOW_BYTES = 4 * 1024 * 1024
PREFIX_BYTES = 5  # of a gRPC message: compressed or not, and its length

OK = 0
RESOURCE_EXHAUSTED = 8
UNIMPLEMENTED = 12
INTERNAL = 13

_RESPONSE = frames.header_block([(":status", "200"), ("content-type", "application/grpc")])


class Wire(Protocol):
    """The connection of a stream."""

    peer_certificate: bytes | None

    def write(self, data: bytes) -> None:
        """Have bytes written."""

    def touch(self, stream: Stream) -> None:
        """A stream has something to send."""


class Session(Protocol):
    """The server's side of one call."""

    def message(self, raw: bytes) -> None:
        """The client sent a message."""

    def half_closed(self) -> None:
        """The client sends no more."""

    def gone(self) -> None:
        """The call is over: the client has gone, or the server finished it."""

    def drained(self) -> None:
        """All that was to be sent is out of our hands."""


class Stream:
    """One call: what its session may do. For the loop's thread only."""

    def __init__(self, connection: Wire, stream_id: int, window_bytes: int) -> None:
        self.id = stream_id
        self.session: Session | None = None
        self.encoding = "identity"
        self.send_window_bytes = window_bytes
        self.receive_window_bytes = STREAM_WINDOW_BYTES
        self.outgoing: list[bytes] = []  # of the first one a part may be sent
        self.trailer: bytes | None = None
        self.is_open = True  # neither finished by us nor reset
        self.client_ended = False
        self._connection = connection
        self._incoming = bytearray()  # the beginning of a message
        self._wanted_bytes = 0  # until something can be done with it
        self._sent_bytes = 0  # of the first of what is outgoing
        self._owed_bytes = 0  # leave to send that was not given back yet
        self._is_held = False
        self._has_headers = False

    @property
    def peer_certificate(self) -> bytes | None:
        """The client's certificate as DER, where TLS asked for one."""
        return self._connection.peer_certificate

    def receive(self, data: bytes) -> None:
        """Hand over the messages that are whole with what came now."""
        if self._incoming:
            self._incoming += data
            if len(self._incoming) < self._wanted_bytes:
                return
            data = bytes(self._incoming)
        place, session = 0, self.session
        self._wanted_bytes = 0
        while session is not None and len(data) - place >= PREFIX_BYTES:
            start = place + PREFIX_BYTES
            size = int.from_bytes(data[place + 1 : start], "big")
            if size > MESSAGE_LIMIT_BYTES:
                self.finish(
                    RESOURCE_EXHAUSTED, f"a message of {size} bytes: the limit is {MESSAGE_LIMIT_BYTES}"
                )
                break
            if len(data) - start < size:
                self._wanted_bytes = PREFIX_BYTES + size
                break
            message = data[start : start + size]
            if data[place]:
                expanded = expand(message, self.encoding)
                if expanded is None:
                    self.finish(INTERNAL, f"a message that cannot be expanded ({self.encoding})")
                    break
                message = expanded
            place = start + size
            if self.trailer is not None or not self.is_open:
                break  # what follows a refusal is not read
            session.message(message)
        self._incoming = bytearray(data[place:]) if self.trailer is None else bytearray()

    @property
    def is_between_messages(self) -> bool:
        """False while the beginning of a message is there."""
        return not self._incoming

    def send(self, message: bytes, times: int = 1) -> None:
        """Send one message, or the same several times, as soon as the client lets us."""
        if self.is_open:
            framed = b"\x00" + len(message).to_bytes(4, "big") + message
            self.outgoing.append(framed if times == 1 else framed * times)
            self._connection.touch(self)

    def finish(self, code: int = OK, text: str = "") -> None:
        """End the call after what was sent."""
        if self.is_open and self.trailer is None:
            pairs = [("grpc-status", str(code))]
            if text:
                pairs.append(("grpc-message", _percent(text)))
            self.trailer = frames.header_block(pairs)
            self._connection.touch(self)

    def hold(self) -> None:
        """Give the client no more leave to send for now."""
        self._is_held = True

    def release(self) -> None:
        """Let the client send again."""
        self._is_held = False
        self.credit(0)

    def credit(self, size_bytes: int) -> None:
        """Give back leave for what was received, unless the stream is held."""
        self._owed_bytes += size_bytes
        if self._owed_bytes >= STREAM_WINDOW_BYTES // 4 and not self._is_held and not self.client_ended:
            self.receive_window_bytes += self._owed_bytes
            self._connection.write(frames.window_update(self.id, self._owed_bytes))
            self._owed_bytes = 0

    def take(self, most_bytes: int) -> memoryview:
        """The next bytes to be sent, which are then out of our hands."""
        if len(self.outgoing) > 1:
            rest = memoryview(self.outgoing[0])[self._sent_bytes :]
            self.outgoing, self._sent_bytes = [b"".join((rest, *self.outgoing[1:]))], 0
        taken = memoryview(self.outgoing[0])[self._sent_bytes : self._sent_bytes + most_bytes]
        self._sent_bytes += len(taken)
        if self._sent_bytes == len(self.outgoing[0]):
            self.outgoing, self._sent_bytes = [], 0
        return taken

    def headers_once(self) -> bytes:
        """The response's headers, the first time."""
        if self._has_headers:
            return b""
        self._has_headers = True
        return frames.frame(frames.HEADERS, frames.END_HEADERS, self.id, _RESPONSE)


def expand(message: bytes, encoding: str) -> bytes | None:
    """A compressed message as it was, or None."""
    if encoding not in ("gzip", "deflate"):
        return None
    expander = zlib.decompressobj(wbits=31 if encoding == "gzip" else 15)
    try:
        found = expander.decompress(message, MESSAGE_LIMIT_BYTES + 1)
    except zlib.error:
        return None
    return found if len(found) <= MESSAGE_LIMIT_BYTES and expander.eof else None


def _percent(text: str) -> str:
    """A message as gRPC carries it in a header."""
    return "".join(
        chr(octet) if 0x20 <= octet <= 0x7E and octet != 0x25 else f"%{octet:02X}" for octet in text.encode()
    )
