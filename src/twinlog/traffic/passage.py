"""One client at the gate and the broker that it is forwarded to: two sockets, bytes between them.

Made by the gate for each connection that it lets in. Bytes are neither looked at nor kept: what one
end cannot take now is not read from the other, so a passage holds at most `HELD_BYTES` and one read
in each direction. The end of a stream passes through (half-close), and so does a reset.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from twinlog.wire.addresses import HostPort

HELD_BYTES = 64 << 10
READ_BYTES = 64 << 10
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of zero seconds: close sends RST and leaves no TIME_WAIT
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}  # not every system has all


@dataclass(frozen=True)
class Patience:
    """How long the gate waits for what."""

    connect_s: float = 1.0  # for one broker to accept
    reach_s: float = 5.0  # for any broker to accept
    first_word_s: float = 30.0  # for the client to say something: Kafka's clients speak first
    first_answer_s: float = 3.0  # for the broker's first byte, while another broker could be tried
    half_closed_s: float = 30.0  # for the second end to close after the first
    idle_s: float = 600.0  # as brokers do (connections.max.idle.ms)
    drain_s: float = 5.0  # for exchanges under way when the gate closes
    quiet_s: float = 0.5  # so long without a byte means that no exchange is under way


PATIENCE = Patience()


class Passage:
    """A client, its broker, and when either was last heard."""

    def __init__(
        self,
        site: str,
        brokers: Sequence[HostPort],
        client: asyncio.Transport,
        over: Callable[[Passage], None],
    ) -> None:
        self.site = site
        self.brokers = brokers  # that it may be joined with
        self.broker: HostPort | None = None  # that it is joined with
        self._over = over
        self._clock = asyncio.get_running_loop().time
        self._heard_at = self._clock()
        self._asked_at: float | None = None  # the client's first byte
        self._answered = False
        self._reaching: asyncio.Task[None] | None = None
        self.near, self.far = _End(self), _End(self)
        self.near.other, self.far.other = self.far, self.near
        client.pause_reading()  # until there is somewhere to write to
        client.set_protocol(self.near)
        self.near.connection_made(client)

    def reach(self, reaching: asyncio.Task[None]) -> None:
        """Remember who looks for a broker, to be called off when the passage ends first."""
        self._reaching = reaching

    def joined(self) -> None:
        """Both ends are there: let the client speak."""
        self._heard_at = self._clock()
        self.near.read_on()

    def heard(self, end: _End) -> None:
        """Bytes came in at one end."""
        self._heard_at = self._clock()
        if end is self.far:
            self._answered = True
        elif self._asked_at is None:
            self._asked_at = self._heard_at

    def lost(self, end: _End, error: Exception | None) -> None:
        """One end is closed: close the other in the same way."""
        if error is None:
            end.other.finish()
        else:
            end.other.reset()
        if self._reaching is not None:
            self._reaching.cancel()
        if end.other.is_over:
            self._over(self)

    def cut(self) -> None:
        """End it now; what is under way is thrown away."""
        self.near.reset()
        self.far.reset()

    def finish(self) -> None:
        """End it when what was read has been written."""
        self.near.finish()
        self.far.finish()

    def is_quiet(self, patience: Patience) -> bool:
        """Whether no exchange seems to be under way."""
        return self._clock() - self._heard_at >= patience.quiet_s

    def is_overdue(self, patience: Patience) -> bool:
        """Whether one end keeps the other waiting too long."""
        silent_s = self._clock() - self._heard_at
        if self.near.at_end or self.far.at_end:
            return silent_s >= patience.half_closed_s
        if self._asked_at is None:
            return silent_s >= patience.first_word_s
        return silent_s >= patience.idle_s

    def is_unanswered(self, patience: Patience) -> bool:
        """Whether the broker took the client's first bytes and has said nothing since."""
        if self._asked_at is None or self._answered:
            return False
        return self._clock() - self._asked_at >= patience.first_answer_s


class _End(asyncio.BufferedProtocol):
    """One end of a passage: what is read here is written at the other end."""

    other: _End
    # Of all ends together: what was read is copied before the loop goes on.
    _read_into = memoryview(bytearray(READ_BYTES))

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._transport: asyncio.Transport | None = None
        self._closed = False
        self.at_end = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come from this end."""
        return self._closed or self._transport is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=HELD_BYTES)
        _notice_dead_peers(transport.get_extra_info("socket"))
        if self is self._passage.far:
            if self.other.is_over:
                self.reset()
            else:
                self._passage.joined()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self._read_into

    def buffer_updated(self, count: int) -> None:
        """Bytes came in."""
        self._passage.heard(self)
        self.other.write(bytes(self._read_into[:count]))

    def eof_received(self) -> bool:
        """The peer writes no more; it may still read."""
        self.at_end = True
        self.other.write_end()
        if self.other.at_end:
            self._passage.finish()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._closed = True
        self._passage.lost(self, exc)

    def pause_writing(self) -> None:
        """The peer does not keep up: the other end is not read."""
        if self.other._transport is not None and not self.other.at_end:
            self.other._transport.pause_reading()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self.other.read_on()

    def read_on(self) -> None:
        """Read again, unless there is nothing left to read."""
        if self._transport is not None and not self.at_end:
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send, now or when the peer takes it."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def write_end(self) -> None:
        """Tell the peer that nothing more comes, after what is still held."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()

    def finish(self) -> None:
        """Close when everything is written."""
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Close with a reset."""
        if self._transport is not None:
            reset(self._transport)


def reset(transport: asyncio.Transport) -> None:
    """Close a connection at once, so that the peer sees an error and tries again."""
    with suppress(OSError):  # closed already
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def _notice_dead_peers(connection: socket.socket) -> None:
    """Let the kernel find out within a minute that a peer is gone without a word."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
