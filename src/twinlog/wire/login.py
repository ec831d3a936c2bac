"""Logging in with a user name and a password (SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512).

Called by `connection` between the greeting and the first real request. A password goes over the
wire only with PLAIN, which is there for clusters that exist already; no message repeats it.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from twinlog.errors import KafkaError, UsageError
from twinlog.wire import codes
from twinlog.wire.access import Access, Mechanism
from twinlog.wire.scram import ScramClient, ScramRefused

Answer = TypeVar("Answer", bound="ApiMessage")  # quoted: the class itself has no truth value


class Exchange(Protocol):
    """Something that carries a request to the broker and its answer back."""

    def __call__(self, request: ApiMessage, answer: type[Answer], /) -> Answer:
        """Send and wait."""


def log_in(access: Access, where: str, exchange: Exchange) -> None:
    """Prove who we are, and let the broker prove (with SCRAM) that it knows the password too."""
    mechanism, user = access.mechanism, access.username
    if mechanism is None:
        raise UsageError(
            f"{access.protocol} needs a mechanism", where=where, hint="is sasl.mechanism missing?"
        )
    _agree_on(mechanism, where, exchange)
    what = f"logging in as '{user}'"

    def step(message: bytes) -> bytes:
        answer = exchange(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse)
        codes.check(answer.error_code, answer.error_message, what, where)
        return bytes(answer.auth_bytes)

    if mechanism is Mechanism.PLAIN:
        step(f"\0{user}\0{access.password}".encode())
        return
    client = ScramClient(user, access.password, mechanism)
    try:
        client.verify(step(client.answer(step(client.first()))))
    except ValueError as error:
        why = str(error) if isinstance(error, ScramRefused) else "the server's message cannot be read"
        raise KafkaError(
            f"{what}: {why}",
            code="SASL_AUTHENTICATION_FAILED",
            where=where,
            hint="is this really a broker of the site?",
        ) from error


def _agree_on(mechanism: Mechanism, where: str, exchange: Exchange) -> None:
    answer = exchange(SaslHandshakeRequest(mechanism=mechanism.value), SaslHandshakeResponse)
    taken = ", ".join(answer.mechanisms)
    message = f"this listener takes {taken}" if taken else None
    codes.check(answer.error_code, message, f"logging in with {mechanism}", where)
