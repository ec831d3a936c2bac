"""A task connects while others hold its partitions, says so, and begins on terms that it is given then."""

from __future__ import annotations

import queue
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.running.wire.scripted_broker import listening
from twinlog.mirror.holder import Terms
from twinlog.pipeline.exchange import Conversation, Exchange
from twinlog.pipeline.ledger import Task
from twinlog.pipeline.task import Prepared, run_task, terms_as_json
from twinlog.wire.access import Access, Protocol

WAIT_S = 20.0
NOWHERE = Access(("127.0.0.1:1",), Protocol.PLAINTEXT)
TRACKS = [["orders", 0, False, False], ["orders", 1, False, False]]


def given(terms: Terms, tracks: list[Any]) -> dict[str, Any]:
    return {"terms": terms_as_json(terms), "tracks": tracks}


def speak_something_else(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


@pytest.fixture
def stranger() -> Iterator[Access]:
    """Somebody who is no broker, which is noticed at once."""
    with listening(speak_something_else) as address:
        yield Access((str(address),), Protocol.PLAINTEXT)


def test_task_says_when_it_is_ready_and_ends_when_it_is_not_wanted_any_more(stranger: Access) -> None:
    heard: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def drive(conversation: Conversation) -> None:
        heard.put(conversation.hear(WAIT_S))
        conversation.say({"prepare": given(Terms(stranger, stranger, 1 << 62), TRACKS)})
        heard.put(conversation.hear(WAIT_S))
        conversation.say({"wait": True})
        conversation.say({"over": True})

    exchange = Exchange(drive)
    try:
        run_task(exchange.ticket, Task(3, 1, 0))
    finally:
        exchange.close()
    assert heard.get(timeout=WAIT_S) == {"hello": [3, 1, 0]}
    assert heard.get(timeout=WAIT_S) == {"ready": True}


def test_task_begins_with_what_it_prepared_only_if_it_is_given_just_that() -> None:
    exchange = Exchange(lambda conversation: None)
    terms = Terms(NOWHERE, NOWHERE, 1 << 62)
    prepared = Prepared(Conversation.with_driver(exchange.ticket), given(terms, TRACKS))
    try:
        handed_over = [[topic, partition, compacted, True] for topic, partition, compacted, _ in TRACKS]
        assert prepared.fits(given(terms, handed_over))
        other = replace(terms, standby=replace(NOWHERE, bootstrap=("127.0.0.1:2",)))
        assert not prepared.fits(given(other, TRACKS))
        assert not prepared.fits(given(terms, TRACKS[:1]))
        assert not prepared.fits(given(terms, [*TRACKS, ["orders", 2, False, True]]))
        assert not prepared.fits(given(terms, [["orders", 0, True, True], TRACKS[1]]))
    finally:
        prepared.holder.close()
        exchange.close()
