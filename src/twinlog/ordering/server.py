"""The orderer's port: sockets, TLS and keep-alive around `connection`, on one asyncio loop.

The process starts one. Sessions run in the loop's thread; whoever works in another thread hands its
results over with `post`, which wakes the loop once for all that comes together. A client that does not
read what we write is not read from either. With mutual TLS the roots may grow while the server runs.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from twinlog.errors import PrerequisiteError, UsageError
from twinlog.ordering.connection import Connection, Open
from twinlog.ordering.frames import Code
from twinlog.ordering.localconfig import Keepalive, ServerTls

WRITE_BUFFER_BYTES = 1024 * 1024
BACKLOG = 512
GOODBYE_S = 0.2  # for the last bytes of connections that we end
# Forward secrecy and AES-GCM only; TLS 1.3 has its own list, which is as good.
CIPHERS = "ECDHE+AESGCM"

LOG = logging.getLogger("twinlog.ordering")

Post = Callable[[Callable[[], None]], None]


class Relay:
    """Calls from other threads, run in the loop's, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._is_due = False

    def post(self, call: Callable[[], None]) -> None:
        """Have a function called soon; any thread may ask."""
        self._calls.append(call)
        if not self._is_due:  # set back before the calls are taken, so that none is left behind
            self._is_due = True
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:  # the loop has ended, and with it everybody who would hear of it
                self._calls.clear()

    def soon(self, call: Callable[[], None]) -> None:
        """Have a function called in the loop's next turn; asked in the loop's own thread, it wakes nobody."""
        self._loop.call_soon(call)

    def _run(self) -> None:
        self._is_due = False
        for _ in range(len(self._calls)):
            try:
                self._calls.popleft()()
            except Exception:  # of one call; the others stand in line behind it
                LOG.exception("a call from another thread failed")


@dataclass(frozen=True)
class Endpoint:
    """Where and how to listen."""

    host: str
    port: int
    keepalive: Keepalive
    tls: ssl.SSLContext | None = None


class Server:
    """Listens, until it is closed."""

    def __init__(self, endpoint: Endpoint, open_session: Open) -> None:
        self._endpoint = endpoint
        self._open = open_session
        self._wires: set[_Wire] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Begin to listen; gives the port."""
        loop = asyncio.get_running_loop()
        where = f"{self._endpoint.host}:{self._endpoint.port}"
        try:
            self._server = await loop.create_server(
                lambda: _Wire(self._open, self._endpoint.keepalive, self._wires, loop),
                self._endpoint.host,
                self._endpoint.port,
                ssl=self._endpoint.tls,
                backlog=BACKLOG,
            )
        except OSError as error:
            raise PrerequisiteError(
                f"cannot listen: {error.strerror or error}", where=where, hint="does another orderer run?"
            ) from None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Take no more connections and end those that there are."""
        if self._server is not None:
            self._server.close()
        for wire in list(self._wires):
            wire.end()
        deadline_s = time.monotonic() + GOODBYE_S
        while self._wires and time.monotonic() < deadline_s:
            await asyncio.sleep(GOODBYE_S / 10)
        for wire in list(self._wires):
            wire.abort()


class _Wire(asyncio.Protocol):
    """One socket."""

    def __init__(
        self, open_session: Open, keepalive: Keepalive, wires: set[_Wire], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._keepalive = keepalive
        self._wires = wires
        self._loop = loop
        self._connection = Connection(
            open_session,
            now_s=loop.time,
            ping_interval_s=keepalive.server_min_interval_s,
            wake=self._wake,
        )
        self._transport: asyncio.Transport | None = None
        self._is_due = False
        self._is_full = False
        self._heard_s = loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the client."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._connection.peer_certificate = tls.getpeercert(binary_form=True)
        self._wires.add(self)
        self._timer = self._loop.call_later(self._keepalive.server_interval_s, self._probe)
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Handle what came, and answer all of it at once."""
        self._heard_s = self._loop.time()
        self._connection.receive(data)
        self._flush()

    def pause_writing(self) -> None:
        """The client reads too slowly: read nothing from it either."""
        self._is_full = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._is_full = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        self._wires.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._connection.lost()

    def end(self) -> None:
        """Say good-bye."""
        self._connection.close(Code.NO_ERROR, "the orderer ends")
        self._flush()

    def abort(self) -> None:
        """End it with whatever was not written."""
        if self._transport is not None:
            self._transport.abort()

    def _wake(self) -> None:
        """Something is to be sent: write it when all that is due now has been done."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_due = False
        if self._transport is None or self._transport.is_closing() or self._is_full:
            return
        if data := self._connection.take():
            self._transport.write(data)
        if self._connection.is_over:
            self._transport.close()

    def _probe(self) -> None:
        """Ask a client that has been silent whether it is there; one that stays silent is dropped."""
        silent_s = self._loop.time() - self._heard_s
        interval_s, timeout_s = self._keepalive.server_interval_s, self._keepalive.server_timeout_s
        if silent_s >= interval_s + timeout_s:
            self.abort()
            return
        if silent_s >= interval_s:
            self._connection.ping()
            self._flush()
            wait_s = interval_s + timeout_s - silent_s
        else:
            wait_s = interval_s - silent_s
        self._timer = self._loop.call_later(max(wait_s, 0.1), self._probe)


def tls_context(tls: ServerTls, protocol: str = "h2") -> ssl.SSLContext | None:
    """What a port needs to speak TLS, or None where it is off."""
    if not tls.enabled:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols([protocol])
    _load_pair(context, tls)
    if tls.client_auth_required:
        context.verify_mode = ssl.CERT_REQUIRED
        for pem in tls.client_root_cas:
            trust(context, pem.read())
    return context


def trust(context: ssl.SSLContext, pem: str) -> None:
    """Let clients in whose certificates come from this root, from the next connection on."""
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(f"a root for clients cannot be read: {error}") from None


def _load_pair(context: ssl.SSLContext, tls: ServerTls) -> None:
    """Load key and certificate, which Python takes from files only."""
    with TemporaryDirectory() as directory:  # readable by its owner only
        pair = Path(directory) / "pair.pem"
        pair.touch(0o600)
        pair.write_text(f"{tls.private_key.read()}\n{tls.certificate.read()}\n")
        try:
            context.load_cert_chain(pair)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"the port's key and certificate cannot be used: {error}",
                where=str(tls.certificate.path or ""),
                hint="do Certificate and PrivateKey belong together?",
            ) from None
