"""Appending to a broker that reads slowly, answers late, or hangs up."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from tests.running.wire import scripted_broker as broker
from twinlog.errors import UnknownOutcome
from twinlog.wire.access import Access, Protocol
from twinlog.wire.appending import LEADER_ONLY, MOST_IN_FLIGHT, Appended, Appender
from twinlog.wire.connection import Connection
from twinlog.wire.deadlines import Deadline

PRODUCE = 0


@contextmanager
def appender_to(serve: Callable[[socket.socket], None], acks: int = -1) -> Iterator[Appender]:
    """An appender to a broker that runs a script after the greeting."""

    def script(connection: socket.socket) -> None:
        broker.greet(connection, {PRODUCE: (3, 13)})
        serve(connection)

    access = Access(("unused:1",), Protocol.PLAINTEXT)
    with broker.listening(script) as address, Connection(address, access, timeout_s=5.0) as connection:
        yield Appender(connection, acks=acks)


def read_produce(connection: socket.socket) -> tuple[int, Any]:
    """The next request's number, and itself."""
    frame = broker.read_frame(connection)
    version, number = int.from_bytes(frame[2:4], "big"), int.from_bytes(frame[4:8], "big")
    return number, ProduceRequest.decode(frame, version=version, header=True)


def accept(connection: socket.socket, number: int, base_offset: int) -> None:
    kind = ProduceResponse.TopicProduceResponse
    part = kind.PartitionProduceResponse(index=0, error_code=0, base_offset=base_offset)
    response = ProduceResponse(responses=[kind(name="orders", partition_responses=[part])])
    broker.answer(connection, response, 12, number)


def test_requests_in_flight_are_answered_in_order_and_are_no_more_than_five() -> None:
    def slow(connection: socket.socket) -> None:
        requests = [read_produce(connection)[0] for _ in range(MOST_IN_FLIGHT)]
        for offset, number in enumerate(requests):
            accept(connection, number, offset)

    deadline = Deadline(5.0)
    with appender_to(slow) as appender:
        for _ in range(MOST_IN_FLIGHT):
            appender.send([("orders", 0, b"batch")], deadline)
        with pytest.raises(RuntimeError, match="too many"):
            appender.send([("orders", 0, b"batch")], deadline)
        for offset in range(MOST_IN_FLIGHT):
            assert appender.receive(deadline) == [Appended("orders", 0, 0, offset, "")]
        assert appender.in_flight == 0
        with pytest.raises(RuntimeError, match="no request in flight"):
            appender.receive(deadline)


def test_more_batches_than_the_socket_takes_at_once_arrive_whole() -> None:
    got: list[Any] = []

    def slow(connection: socket.socket) -> None:
        number, request = read_produce(connection)
        got.append(request)
        accept(connection, number, 0)

    batches = [("orders", index, memoryview(bytes([index % 256]) * (index * 100))) for index in range(700)]
    deadline = Deadline(20.0)
    with appender_to(slow) as appender:
        appender.send(batches, deadline)
        appender.receive(deadline)
    ((topic,),) = [request.topic_data for request in got]
    assert [(topic.name, part.index, part.records) for part in topic.partition_data] == [
        (name, index, bytes(batch)) for name, index, batch in batches
    ]


def test_acks_and_a_timeout_before_our_own_are_sent() -> None:
    got: list[Any] = []

    def note(connection: socket.socket) -> None:
        number, request = read_produce(connection)
        got.append(request)
        accept(connection, number, 0)

    with appender_to(note, LEADER_ONLY) as appender:
        appender.send([("orders", 0, b"batch")], Deadline(10.0))
        appender.receive(Deadline(5.0))
    assert (got[0].acks, got[0].transactional_id) == (1, None)
    assert 8000 < got[0].timeout_ms <= 9000


def test_a_write_without_an_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="without an answer"), appender_to(lambda connection: None, 0):
        pass


def test_a_request_that_is_not_answered_has_an_unknown_outcome() -> None:
    def hang_up(connection: socket.socket) -> None:
        read_produce(connection)

    with appender_to(hang_up) as appender:
        appender.send([("orders", 0, b"batch")], Deadline(5.0))
        with pytest.raises(UnknownOutcome, match="ProduceRequest was sent and not answered"):
            appender.receive(Deadline(5.0))
        assert not appender.connection.is_open
