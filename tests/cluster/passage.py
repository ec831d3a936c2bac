"""One address for two sites, for tests of clients that move: carries bytes and knows nothing of Kafka.

Clients learn the brokers' own addresses behind it, so only their first connections pass.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress
from typing import Self

CONNECT_TIMEOUT_S = 30.0


class Gate(socketserver.ThreadingTCPServer):
    """One address for both sites: passes each connection on to where it leads at that moment."""

    daemon_threads = True

    def __init__(self, leads_to: str) -> None:
        super().__init__(("127.0.0.1", 0), Passage)
        self.leads_to = leads_to

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.server_address[1]}"


class Passage(socketserver.BaseRequestHandler):
    """One connection through the gate."""

    def handle(self) -> None:
        """Carry bytes both ways until one side ends."""
        gate = self.server
        assert isinstance(gate, Gate)
        host, _, port = gate.leads_to.partition(":")
        try:
            with socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S) as beyond:
                back = threading.Thread(target=self._carry, args=(beyond, self.request), daemon=True)
                back.start()
                self._carry(self.request, beyond)
        except ConnectionRefusedError:
            return  # there is nobody: the client tries again

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass  # the other direction has ended
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
