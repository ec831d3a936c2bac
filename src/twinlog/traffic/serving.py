"""The thread in which gate, health page and DNS answers are served, and the sockets they listen on.

The traffic manager makes one `Serving` and opens its parts in it. All of them share one event loop,
so nothing that runs in it may block; other threads reach in through `call_on` only.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from twinlog.errors import SiteError
from twinlog.wire.addresses import HostPort

ANSWER_TIMEOUT_S = 10.0  # the loop answers in milliseconds; more means that something blocks it
TURNS_TO_CLOSE = 3  # of the loop, from the end of a task to the close of its socket
BACKLOG = 1024  # all clients of a lost site reconnect within the same second

Answer = TypeVar("Answer")


class Part(Protocol):
    """Something that listens: it is opened and closed inside the loop."""

    async def open(self) -> None:
        """Listen."""

    async def close(self) -> None:
        """Listen no more and end what is under way."""


class Serving:
    """A thread with an event loop, and the parts that are open in it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._parts: list[Part] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="serving", daemon=True)
        self._thread.start()

    def open(self, part: Part) -> None:
        """Open a part; it is served when this returns."""
        self._wait_for(part.open())
        self._parts.append(part)

    def close(self) -> None:
        """Close all parts, the last one first, and end the thread; a second time is no error."""
        if self._loop.is_closed():
            return
        try:
            while self._parts:
                self._wait_for(self._parts.pop().close())
            self._wait_for(_settle())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _settle() -> None:
    """End what the kernel had accepted and nobody had looked at when the parts were closed."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    for _ in range(TURNS_TO_CLOSE):
        await asyncio.sleep(0)


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[[], Answer]) -> Answer:
    """Call a function inside a loop, from any thread, and wait for its answer."""
    if _running_loop() is loop:
        return function()
    answer: Future[Answer] = Future()

    def call() -> None:
        try:
            answer.set_result(function())
        except Exception as error:
            answer.set_exception(error)

    loop.call_soon_threadsafe(call)
    return answer.result(ANSWER_TIMEOUT_S)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def listen_on(address: HostPort, what: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """A bound socket, listening if it is a stream; port 0 lets the kernel choose."""
    try:
        family, place = _resolve(address, kind)
        bound = socket.socket(family, kind)
        try:
            if kind is socket.SOCK_STREAM:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(place)
            if kind is socket.SOCK_STREAM:
                bound.listen(BACKLOG)
            bound.setblocking(False)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise SiteError(
            f"{what} cannot listen on {address}: {error.strerror}",
            where=str(address),
            hint=_hint(error, address, kind),
        ) from error
    return bound


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server; a connection that is being accepted gets to its protocol first."""
    # asyncio forgets, unclosed, a socket that it accepted in the turn in which its server is closed.
    loop = asyncio.get_running_loop()
    for bound in server.sockets:
        loop.remove_reader(bound.fileno())
    for _ in range(TURNS_TO_CLOSE):
        await asyncio.sleep(0)
    server.close()


def address_of(bound: socket.socket) -> HostPort:
    """Where a socket is bound."""
    host, port = bound.getsockname()[:2]
    return HostPort(host, port)


def _resolve(address: HostPort, kind: socket.SocketKind) -> tuple[int, Any]:
    found = socket.getaddrinfo(address.host, address.port, type=kind, flags=socket.AI_PASSIVE)
    # A name such as localhost has often both; clients try all addresses, so one is enough.
    family, _, _, _, place = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, place


def _hint(error: OSError, address: HostPort, kind: socket.SocketKind) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"ss -lnp{'t' if kind is socket.SOCK_STREAM else 'u'} 'sport = :{address.port}'"
    if error.errno == errno.EACCES:
        return "may this user open ports below 1024? choose a higher one"
    return f"is {address.host} an address of this machine? ip address"
