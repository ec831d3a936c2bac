"""Broadcast streams that cost next to nothing, so that what is measured is the orderer.

Each stream is a connection of its own. Everything is prepared before the clock starts: the frames of all
messages stand ready, and while it runs bytes are written as far as the orderer's windows go and answers
are counted. It speaks just enough HTTP/2 for that, and fails on any answer that is not a success.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence

from twinlog.ordering import frames
from twinlog.ordering.callers import BROADCAST
from twinlog.ordering.proto import orderer_pb2

_HEADERS = frames.header_block(
    [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", BROADCAST),
        (":authority", "bench"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ]
)
_WINDOW_BYTES = 2**30
_READ_BYTES = 256 * 1024
_GOOD = orderer_pb2.BroadcastResponse(status="SUCCESS").SerializeToString()
_ANSWER = b"\x00" + len(_GOOD).to_bytes(4, "big") + _GOOD


class Stream:
    """One connection with one call."""

    def __init__(self, address: str, messages: Sequence[bytes], in_flight: int) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 10.0)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = [_framed(message) for message in messages]
        self._next = 0
        self._in_flight = in_flight
        self._window = self._shared_window = 0
        self._rest = b""
        self._answers = b""
        self._unsent = b""
        self.answered = 0
        more = frames.window_update(0, _WINDOW_BYTES)
        ours = frames.settings([(frames.INITIAL_WINDOW_SIZE, _WINDOW_BYTES)])
        begin = frames.frame(frames.HEADERS, frames.END_HEADERS, 1, _HEADERS)
        self.socket.sendall(frames.PREFACE + ours + more + begin)
        while not self._window:  # the orderer's own settings come first
            self._take(self.socket.recv(_READ_BYTES))
        self.socket.setblocking(False)

    @property
    def is_done(self) -> bool:
        """True when everything was answered."""
        return self.answered == len(self._frames)

    def send(self) -> None:
        """Write as much as the orderer lets us."""
        ready = [self._unsent] if self._unsent else []
        while self._next < len(self._frames) and self._next - self.answered < self._in_flight:
            one = self._frames[self._next]
            size = len(one) - frames.HEADER_BYTES
            if size > self._window or size > self._shared_window:
                break
            self._window -= size
            self._shared_window -= size
            self._next += 1
            ready.append(one)
        if ready:
            data = b"".join(ready)
            try:
                sent = self.socket.send(data)
            except BlockingIOError:
                sent = 0
            self._unsent = data[sent:]

    def receive(self) -> None:
        """Count answers."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("the orderer has ended the connection")
        self._take(data)

    def _take(self, data: bytes) -> None:
        found, self._rest = frames.split(self._rest + data, frames.LARGEST_FRAME_BYTES)
        for one in found:
            if one.kind == frames.DATA:
                self._count(one.payload)
            elif one.kind == frames.WINDOW_UPDATE:
                more = frames.read_number(one.payload)
                if one.stream_id:
                    self._window += more
                else:
                    self._shared_window += more
            elif one.kind == frames.SETTINGS and not one.flags & frames.ACK:
                self._shared_window = frames.DEFAULT_WINDOW_BYTES
                self._window = dict(frames.read_settings(one.payload))[frames.INITIAL_WINDOW_SIZE]
            elif one.kind in (frames.GOAWAY, frames.RST_STREAM):
                raise ConnectionError(f"the orderer has ended the call: {one.payload!r}")

    def _count(self, payload: bytes) -> None:
        answers = self._answers + payload
        count = len(answers) // len(_ANSWER)
        whole = count * len(_ANSWER)
        if answers[:whole] != _ANSWER * count:
            raise ConnectionError(f"a message was refused: {answers[:whole]!r}")
        self.answered += count
        self._answers = answers[whole:]


def run(streams: Sequence[Stream], timeout_s: float) -> float:
    """Have all streams send everything; the seconds until the last answer."""
    began_s = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream.socket, selectors.EVENT_READ, stream)
            stream.send()
        open_streams = len(streams)
        while open_streams:
            if time.perf_counter() - began_s > timeout_s:
                raise TimeoutError(f"not everything was answered after {timeout_s:g} s")
            for key, _ in selector.select(0.01):
                stream = key.data
                stream.receive()
                if stream.is_done:
                    selector.unregister(stream.socket)
                    open_streams -= 1
            for stream in streams:
                stream.send()
    return time.perf_counter() - began_s


def _framed(message: bytes) -> bytes:
    return frames.frame(frames.DATA, 0, 1, b"\x00" + len(message).to_bytes(4, "big") + message)
