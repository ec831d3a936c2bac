"""How tasks talk to their driver: lines of JSON over TLS.

The driver's certificate is made anew for each run, and tasks trust that one alone; a task proves
with a token that it is one of the driver's. Both travel with the task itself. A conversation that
ends without a farewell means that the task is lost.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME = "twinlog-exchange"
LASTS = timedelta(days=3650)
CONNECT_TIMEOUT_S = 10.0
LONGEST_LINE = 16 << 20


@dataclass(frozen=True)
class Ticket:
    """What a task needs to reach its driver."""

    host: str
    port: int
    certificate_pem: str
    token: str

    def as_json(self) -> dict[str, Any]:
        """As it travels with the task."""
        return asdict(self)


class Lost(OSError):
    """The other end is gone."""


class Conversation:
    """One end of the exchange between a task and its driver."""

    def __init__(self, channel: ssl.SSLSocket) -> None:
        self._channel = channel
        self._file = channel.makefile("rb")

    @classmethod
    def with_driver(cls, ticket: Ticket) -> Self:
        """Reach the driver and prove that it sent us."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=ticket.certificate_pem)
        plain = socket.create_connection((ticket.host, ticket.port), timeout=CONNECT_TIMEOUT_S)
        conversation = cls(context.wrap_socket(plain, server_hostname=NAME))
        conversation.say({"token": ticket.token})
        return conversation

    def say(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self._channel.sendall(json.dumps(message).encode() + b"\n")

    def hear(self, timeout_s: float) -> dict[str, Any]:
        """Wait for one message."""
        self._channel.settimeout(timeout_s)
        line = self._file.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise Lost("the other end is gone")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._channel.close()


class Exchange:
    """The driver's end: answers each task in a thread of its own."""

    def __init__(self, answer: Callable[[Conversation], None], host: str = "127.0.0.1") -> None:
        key, certificate = _self_signed()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile(mode="w", suffix=".pem") as file:  # 0600, and gone at once
            file.write(key + certificate)
            file.flush()
            self._context.load_cert_chain(file.name)
        self._answer = answer
        self._socket = socket.create_server((host, 0))
        self._closed = False
        port = self._socket.getsockname()[1]
        self.ticket = Ticket(host, port, certificate, secrets.token_hex(16))
        threading.Thread(target=self._accept, name="exchange", daemon=True).start()

    def close(self) -> None:
        """Take no more tasks."""
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), name="exchange-task", daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(CONNECT_TIMEOUT_S)
        try:
            conversation = Conversation(self._context.wrap_socket(plain, server_side=True))
            token = str(conversation.hear(CONNECT_TIMEOUT_S).get("token"))
        except (OSError, ValueError):
            plain.close()
            return
        try:
            if hmac.compare_digest(token, self.ticket.token):
                self._answer(conversation)
        finally:
            conversation.close()


def _self_signed() -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + LASTS)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem.decode(), certificate.public_bytes(serialization.Encoding.PEM).decode()
