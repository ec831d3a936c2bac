"""The orderer's page for those who watch it: `/metrics` for Prometheus, `/healthz` for load balancers.

The process opens one at Operations.ListenAddress. It asks nobody and writes nothing to the log. A client
that says nothing holds up no other.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from twinlog.errors import PrerequisiteError
from twinlog.ordering.metrics import Figures

SILENCE_S = 10.0  # of a client that has connected
Health = Callable[[], Mapping[str, str]]  # what is wrong, by channel


class Page:
    """A port with the figures and the health of an orderer."""

    def __init__(
        self,
        address: str,
        figures: Figures,
        health: Health,
        *,
        tls: ssl.SSLContext | None,
        shows_metrics: bool,
    ) -> None:
        host, _, port = address.rpartition(":")

        class Handler(BaseHTTPRequestHandler):
            timeout = SILENCE_S

            def do_GET(self) -> None:
                if self.path == "/healthz":
                    found = health()
                    content: dict[str, Any] = {"status": "OK" if not found else "Service Unavailable"}
                    if found:
                        failed = [{"component": name, "reason": why} for name, why in sorted(found.items())]
                        content["failed_checks"] = failed
                    self._reply(503 if found else 200, json.dumps(content), "application/json")
                elif self.path == "/metrics" and shows_metrics:
                    self._reply(200, figures.text(), "text/plain; version=0.0.4; charset=utf-8")
                else:
                    self._reply(404, "there are /healthz and /metrics (with Metrics.Provider: prometheus)\n")

            def _reply(self, code: int, text: str, kind: str = "text/plain") -> None:
                raw = text.encode()
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: whoever asks does so every few seconds."""

        try:
            self._server = ThreadingHTTPServer((host.strip("[]") or "0.0.0.0", int(port)), Handler)
        except (OSError, ValueError) as error:
            raise PrerequisiteError(
                f"cannot open the page of metrics and health: {error}",
                where=address,
                hint="is Operations.ListenAddress free, as in 127.0.0.1:8443?",
            ) from None
        if tls is not None:
            # The handshake is the handler's: here a client that says nothing would hold up all others.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, name="operations", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it is."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
