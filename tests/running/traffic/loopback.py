"""Brokers of a few lines on loopback, and clients that ask them: no Kafka, real sockets."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from twinlog.wire.addresses import HostPort

WAIT_S = 20.0  # a busy machine; the things waited for take milliseconds
HERE = HostPort("127.0.0.1", 0)


class Broker:
    """Says its name to each client, then sends back what it hears, half-close included."""

    def __init__(self, name: str) -> None:
        self.name = name.encode()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = HostPort("127.0.0.1", self._socket.getsockname()[1])
        self._selector = selectors.DefaultSelector()
        self._stop, self._stopped = socket.socketpair()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._selector.register(self._stopped, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._stopped:
                    self._end()
                    return
                if key.fileobj is self._socket:
                    connection, _ = self._socket.accept()
                    self._selector.register(connection, selectors.EVENT_READ)
                    with suppress(OSError):  # gone again already
                        connection.sendall(self.name)
                elif isinstance(key.fileobj, socket.socket):
                    self._echo(key.fileobj)

    def _echo(self, connection: socket.socket) -> None:
        with suppress(OSError):
            if data := connection.recv(65536):
                connection.sendall(data)
                return
        self._selector.unregister(connection)
        connection.close()

    def _end(self) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()


@contextmanager
def brokers(*names: str) -> Iterator[list[Broker]]:
    """Brokers of these names, until the block ends."""
    made = [Broker(name) for name in names]
    try:
        yield made
    finally:
        for broker in made:
            broker.close()


@contextmanager
def dead_address() -> Iterator[HostPort]:
    """An address where nobody listens and, while the block runs, nobody else can."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield HostPort("127.0.0.1", reserved.getsockname()[1])


@contextmanager
def silent_address(port: int = 0) -> Iterator[HostPort]:
    """An address that accepts and never says a word, as a stopped process does."""
    with socket.create_server(("127.0.0.1", port), backlog=64) as server:
        yield HostPort("127.0.0.1", server.getsockname()[1])


@contextmanager
def deaf_address(port: int = 0) -> Iterator[HostPort]:
    """An address whose queue is full, so that connecting hangs."""
    with socket.create_server(("127.0.0.1", port), backlog=0) as server:
        place = server.getsockname()
        waiting = []
        try:
            for _ in range(4):  # the kernel takes one or two more than it was told
                waiting.append(socket.socket())
                waiting[-1].setblocking(False)
                waiting[-1].connect_ex(place)
            yield HostPort("127.0.0.1", place[1])
        finally:
            for one in waiting:
                one.close()


def connect(address: HostPort) -> socket.socket:
    """A client's connection."""
    return socket.create_connection((address.host, address.port), timeout=WAIT_S)


def hear(connection: socket.socket, count: int) -> bytes:
    """So many bytes, or fewer if the other end closes first."""
    heard = b""
    while len(heard) < count and (more := connection.recv(count - len(heard))):
        heard += more
    return heard


def is_cut(connection: socket.socket) -> bool:
    """Wait for the end of a connection; True if nothing came before it."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def wait_until(condition: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
    """Wait until something is so; fail if it is not in time."""
    pause = threading.Event()
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "waited too long"
        pause.wait(0.01)
