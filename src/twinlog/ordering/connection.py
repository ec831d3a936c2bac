"""One gRPC connection at the server's end, without a socket: bytes in, calls of sessions, bytes out.

`server` feeds what it reads and writes what `take` gives. Written for streams of many small messages:
what arrives together is handled together and answered in as few frames as possible, which the usual
library does not do for Python. Everything runs in the server's loop. A session that cannot keep up
holds its stream: its client gets no more leave to send, and other streams go on.
"""

from __future__ import annotations

from collections.abc import Callable

from twinlog.ordering import frames, headers
from twinlog.ordering.calls import INTERNAL, STREAM_WINDOW_BYTES, UNIMPLEMENTED, Session, Stream
from twinlog.ordering.frames import Code, Frame, ProtocolError
from twinlog.ordering.headers import Gathering, Headers

CONNECTION_WINDOW_BYTES = 64 * 1024 * 1024
FRAME_LIMIT_BYTES = 1024 * 1024
WRITE_AT_ONCE_BYTES = 1024 * 1024
STREAMS_LIMIT = 2048
PING_STRIKES = 2  # more pings than these, each too early, and the client is told to calm down

Open = Callable[[str, Stream], Session | None]


class Connection:
    """One client and all its calls."""

    def __init__(
        self,
        open_session: Open,
        *,
        now_s: Callable[[], float],
        ping_interval_s: float = 60.0,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.peer_certificate: bytes | None = None
        self.is_over = False
        self.streams: dict[int, Stream] = {}
        self._open = open_session
        self._now_s = now_s
        self._wake = wake
        self._ping_interval_s = ping_interval_s
        self._last_ping_s = -ping_interval_s
        self._strikes = 0
        self._gathering = Gathering()
        self._rest = b""
        self._has_preface = False
        self._last_id = 0
        self._send_window_bytes = frames.DEFAULT_WINDOW_BYTES
        self._initial_window_bytes = frames.DEFAULT_WINDOW_BYTES
        self._frame_bytes = frames.DEFAULT_FRAME_BYTES
        self._owed_bytes = 0
        self._touched: dict[int, Stream] = {}
        ours = (
            (frames.MAX_CONCURRENT_STREAMS, STREAMS_LIMIT),
            (frames.INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES),
            (frames.MAX_FRAME_SIZE, FRAME_LIMIT_BYTES),
            (frames.MAX_HEADER_LIST_SIZE, headers.LIMIT_BYTES),
        )
        more = CONNECTION_WINDOW_BYTES - frames.DEFAULT_WINDOW_BYTES
        self._out = [frames.settings(ours), frames.window_update(0, more)]

    def receive(self, data: bytes) -> None:
        """Handle what the client sent."""
        if self.is_over:
            return
        try:
            self._receive(data)
        except ProtocolError as error:
            self.close(error.code, str(error))

    def take(self) -> bytes:
        """What is to be written now."""
        while self._touched:  # a session that hears that all is sent may send more, up to its own limit
            touched, self._touched = self._touched, {}
            for stream in touched.values():
                self._pump(stream)
            if sum(map(len, self._out)) >= WRITE_AT_ONCE_BYTES:
                break
        out, self._out = self._out, []
        return b"".join(out)

    def close(self, code: Code = Code.NO_ERROR, why: str = "") -> None:
        """Say good-bye; no call goes on."""
        if not self.is_over:
            self.is_over = True
            self.write(frames.goaway(self._last_id, code, why))
            self.lost()

    def lost(self) -> None:
        """The connection is gone, and with it every call."""
        self.is_over = True
        for stream in list(self.streams.values()):
            self._drop(stream)

    def ping(self) -> None:
        """Ask whether the client is there."""
        self.write(frames.frame(frames.PING, 0, 0, b"twinlog!"))

    def write(self, data: bytes) -> None:
        """Have bytes written with the rest."""
        self._out.append(data)
        self._wake()

    def touch(self, stream: Stream) -> None:
        """A stream has something to send."""
        self._touched[stream.id] = stream
        self._wake()

    def _receive(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        if not self._has_preface:
            if not frames.PREFACE.startswith(data[: len(frames.PREFACE)]):
                raise ProtocolError(Code.PROTOCOL_ERROR, "this is a port for gRPC")
            if len(data) < len(frames.PREFACE):
                self._rest = data
                return
            self._has_preface = True
            data = data[len(frames.PREFACE) :]
        found, self._rest = frames.split(data, FRAME_LIMIT_BYTES)
        for one in found:
            self._gathering.check(one)
            handle = _HANDLERS.get(one.kind)
            if handle is not None:  # frames of other kinds are to be passed over
                handle(self, one)
            if self.is_over:
                return

    def _data(self, one: Frame) -> None:
        size = len(one.payload)
        self._owed_bytes += size
        if self._owed_bytes >= CONNECTION_WINDOW_BYTES // 4:
            self.write(frames.window_update(0, self._owed_bytes))
            self._owed_bytes = 0
        stream = self.streams.get(one.stream_id)
        if stream is None:
            if one.stream_id > self._last_id or one.stream_id == 0:
                raise ProtocolError(Code.PROTOCOL_ERROR, "data for a call that was never made")
            return  # on its way while the call ended
        if stream.client_ended:
            raise ProtocolError(Code.STREAM_CLOSED, "data after the end of a call")
        stream.receive_window_bytes -= size
        if stream.receive_window_bytes < 0:
            raise ProtocolError(Code.FLOW_CONTROL_ERROR, "more data than was allowed")
        stream.credit(size)
        stream.receive(frames.content(one))
        if one.flags & frames.END_STREAM:
            self._half_close(stream)

    def _headers(self, one: Frame) -> None:
        found = self._gathering.add(one)
        if found is None:
            return
        known = self.streams.get(found.stream_id)
        if known is None and found.stream_id > self._last_id:
            known = self._begin(found)
        if known is not None and found.ends_stream:
            self._half_close(known)

    def _begin(self, found: Headers) -> Stream | None:
        """A new call."""
        self._last_id = found.stream_id
        if len(self.streams) >= STREAMS_LIMIT:
            self.write(frames.reset(found.stream_id, Code.REFUSED_STREAM))
            return None
        stream = Stream(self, found.stream_id, self._initial_window_bytes)
        self.streams[stream.id] = stream
        stream.encoding = found.pairs.get("grpc-encoding", "identity")
        path = found.pairs.get(":path", "")
        stream.session = self._open(path, stream)
        if stream.session is None:
            stream.finish(UNIMPLEMENTED, f"there is no method {path}")
        return stream

    def _half_close(self, stream: Stream) -> None:
        stream.client_ended = True
        if stream.session is not None and stream.trailer is None:
            if not stream.is_between_messages:
                stream.finish(INTERNAL, "the last message is not whole")
            else:
                stream.session.half_closed()

    def _reset(self, one: Frame) -> None:
        frames.read_number(one.payload)
        stream = self.streams.get(one.stream_id)
        if stream is not None:
            self._drop(stream)

    def _settings(self, one: Frame) -> None:
        if one.flags & frames.ACK:
            return
        for key, value in frames.read_settings(one.payload):
            if key == frames.INITIAL_WINDOW_SIZE:
                if value > frames.LARGEST_WINDOW_BYTES:
                    raise ProtocolError(Code.FLOW_CONTROL_ERROR, "a window that is too large")
                change, self._initial_window_bytes = value - self._initial_window_bytes, value
                for stream in self.streams.values():
                    stream.send_window_bytes += change
                    self.touch(stream)
            elif key == frames.MAX_FRAME_SIZE:
                if not frames.DEFAULT_FRAME_BYTES <= value <= frames.LARGEST_FRAME_BYTES:
                    raise ProtocolError(Code.PROTOCOL_ERROR, "a frame size out of bounds")
                self._frame_bytes = min(value, FRAME_LIMIT_BYTES)
        self.write(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _ping(self, one: Frame) -> None:
        if len(one.payload) != 8:
            raise ProtocolError(Code.FRAME_SIZE_ERROR, "a ping of a wrong size")
        if one.flags & frames.ACK:
            return
        now_s = self._now_s()
        early, self._last_ping_s = now_s - self._last_ping_s < self._ping_interval_s, now_s
        self._strikes = self._strikes + 1 if early else 0
        if self._strikes > PING_STRIKES:
            raise ProtocolError(Code.ENHANCE_YOUR_CALM, "too_many_pings")
        self.write(frames.frame(frames.PING, frames.ACK, 0, one.payload))

    def _window(self, one: Frame) -> None:
        more = frames.read_number(one.payload) & 0x7FFF_FFFF
        if more == 0:
            raise ProtocolError(Code.PROTOCOL_ERROR, "leave to send nothing")
        if one.stream_id == 0:
            self._send_window_bytes += more
            for stream in self.streams.values():
                self.touch(stream)
            if self._send_window_bytes > frames.LARGEST_WINDOW_BYTES:
                raise ProtocolError(Code.FLOW_CONTROL_ERROR, "a window that is too large")
        elif (found := self.streams.get(one.stream_id)) is not None:
            found.send_window_bytes += more
            self.touch(found)

    def _goaway(self, _: Frame) -> None:
        """The client makes no new calls; those that it has go on."""

    def _pump(self, stream: Stream) -> None:
        """Write what a stream has to send, as far as the client's windows go."""
        if not stream.is_open:
            return
        if stream.outgoing:
            self._strikes = 0
            size = min(stream.send_window_bytes, self._send_window_bytes)
            if size > 0:
                self._out.append(stream.headers_once())
                waiting = stream.take(size)
                for start in range(0, len(waiting), self._frame_bytes):
                    piece = bytes(waiting[start : start + self._frame_bytes])
                    self._out.append(frames.frame(frames.DATA, 0, stream.id, piece))
                stream.send_window_bytes -= len(waiting)
                self._send_window_bytes -= len(waiting)
        if stream.outgoing:
            return
        if stream.trailer is not None:
            self._finish(stream, stream.trailer)
        elif stream.session is not None:
            stream.session.drained()

    def _finish(self, stream: Stream, trailer: bytes) -> None:
        self._out.append(stream.headers_once())
        flags = frames.END_HEADERS | frames.END_STREAM
        self._out.append(frames.frame(frames.HEADERS, flags, stream.id, trailer))
        if not stream.client_ended:
            # What it still sends nobody would read.
            self._out.append(frames.reset(stream.id, Code.NO_ERROR))
        self._drop(stream)

    def _drop(self, stream: Stream) -> None:
        if self.streams.pop(stream.id, None) is not None:
            stream.is_open = False
            stream.outgoing = []
            if stream.session is not None:
                stream.session.gone()


def _pass(connection: Connection, one: Frame) -> None:
    """Frames that change nothing here."""


def _forbidden(connection: Connection, one: Frame) -> None:
    raise ProtocolError(Code.PROTOCOL_ERROR, "clients promise nothing")


_HANDLERS: dict[int, Callable[[Connection, Frame], None]] = {
    frames.DATA: Connection._data,
    frames.HEADERS: Connection._headers,
    frames.PRIORITY: _pass,
    frames.RST_STREAM: Connection._reset,
    frames.SETTINGS: Connection._settings,
    frames.PUSH_PROMISE: _forbidden,
    frames.PING: Connection._ping,
    frames.GOAWAY: Connection._goaway,
    frames.WINDOW_UPDATE: Connection._window,
    frames.CONTINUATION: Connection._headers,
}
