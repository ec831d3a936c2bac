"""Tasks reach their driver, strangers do not, and a lost end is noticed."""

from __future__ import annotations

import queue
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace

import pytest

from twinlog.pipeline.exchange import Conversation, Exchange, Lost

WAIT_S = 10.0


class Echo:
    """A driver that says back what it hears."""

    def __init__(self) -> None:
        self.ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.exchange = Exchange(self.answer)

    def answer(self, conversation: Conversation) -> None:
        try:
            while True:
                conversation.say(conversation.hear(WAIT_S))
        except OSError as error:
            self.ended.put(type(error).__name__)


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.exchange.close()


def test_a_task_is_heard_and_answered(echo: Echo) -> None:
    conversation = Conversation.with_driver(echo.exchange.ticket)
    conversation.say({"hello": [1, 2, 3], "text": "ü" * 100_000})
    assert conversation.hear(WAIT_S)["hello"] == [1, 2, 3]
    conversation.close()
    assert echo.ended.get(timeout=WAIT_S) == "Lost"


def test_a_stranger_without_the_token_is_not_answered(echo: Echo) -> None:
    conversation = Conversation.with_driver(replace(echo.exchange.ticket, token="guess"))
    with pytest.raises(OSError):
        conversation.say({"hello": []})
        conversation.hear(WAIT_S)


def test_a_driver_with_another_certificate_is_not_trusted(echo: Echo) -> None:
    other = Exchange(lambda conversation: None)
    try:
        ticket = replace(echo.exchange.ticket, certificate_pem=other.ticket.certificate_pem)
        with pytest.raises(ssl.SSLCertVerificationError):
            Conversation.with_driver(ticket)
    finally:
        other.close()


def test_a_port_scan_does_no_harm(echo: Echo) -> None:
    ticket = echo.exchange.ticket
    with socket.create_connection((ticket.host, ticket.port)) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
    conversation = Conversation.with_driver(ticket)
    conversation.say({"still": "there"})
    assert conversation.hear(WAIT_S) == {"still": "there"}
    conversation.close()


def test_a_driver_that_is_gone_is_noticed(echo: Echo) -> None:
    closing = Exchange(lambda conversation: None)
    conversation = Conversation.with_driver(closing.ticket)
    with pytest.raises(Lost):
        conversation.hear(WAIT_S)
    closing.close()
