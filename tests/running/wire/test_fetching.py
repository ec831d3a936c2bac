"""Fetch sessions with a broker that loses them, never gives one, or answers late."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse

from tests.running.wire import scripted_broker as broker
from twinlog.errors import KafkaError
from twinlog.wire.access import Access, Protocol
from twinlog.wire.connection import Connection
from twinlog.wire.deadlines import Deadline
from twinlog.wire.failures import ConnectionFailed
from twinlog.wire.fetching import FetchLimits, FetchSession

FETCH = 1
BY_NAME, BY_ID = (4, 12), (13, 18)
SESSION_LOST, EPOCH_WRONG, SERVER_ERROR = 70, 71, -1
A, B, C = ("a", 0), ("a", 1), ("b", 0)
Answer = Callable[[Any, int], FetchResponse]


class Asked:
    """What a scripted broker was asked, request by request."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    @property
    def sessions(self) -> list[tuple[int, int]]:
        """Id and epoch of each request."""
        return [(request.session_id, request.session_epoch) for request in self.requests]

    def positions(self, number: int) -> dict[tuple[str, int], int]:
        """The positions in a request."""
        return {
            (topic.topic, part.partition): part.fetch_offset
            for topic in self.requests[number].topics
            for part in topic.partitions
        }

    def forgotten(self, number: int) -> list[tuple[str, int]]:
        """The partitions that a request gives up."""
        return [
            (topic.topic, part)
            for topic in self.requests[number].forgotten_topics_data
            for part in topic.partitions
        ]


@contextmanager
def session_with(answer: Answer, versions: tuple[int, int] = BY_NAME) -> Iterator[tuple[FetchSession, Asked]]:
    """A session with a broker that answers each request as told, by its number."""
    asked = Asked()

    def script(connection: socket.socket) -> None:
        broker.greet(connection, {FETCH: versions})
        while True:
            frame = broker.read_frame(connection)
            version, number = int.from_bytes(frame[2:4], "big"), int.from_bytes(frame[4:8], "big")
            request = FetchRequest.decode(frame, version=version, header=True)
            asked.requests.append(request)
            broker.answer(connection, answer(request, len(asked.requests) - 1), version, number)

    ids = {"a": UUID(int=1), "b": UUID(int=2)} if versions == BY_ID else None
    access = Access(("unused:1",), Protocol.PLAINTEXT)
    with broker.listening(script) as address, Connection(address, access, timeout_s=5.0) as connection:
        yield FetchSession(connection, FetchLimits(), ids=ids), asked


def respond(code: int = 0, session_id: int = 9, places: tuple[tuple[str, int], ...] = ()) -> FetchResponse:
    kind = FetchResponse.FetchableTopicResponse
    return FetchResponse(
        error_code=code,
        session_id=session_id,
        responses=[
            kind(
                topic=topic,
                topic_id=UUID(int=1 if topic == "a" else 2),
                partitions=[kind.PartitionData(partition_index=index, high_watermark=3, records=b"")],
            )
            for topic, index in places
        ],
    )


def turn(session: FetchSession) -> list[tuple[str, int]]:
    deadline = Deadline(5.0)
    session.send(deadline)
    return [(one.topic, one.partition) for one in session.receive(deadline)]


def test_after_the_first_fetch_only_changes_are_sent() -> None:
    with session_with(lambda request, number: respond()) as (session, asked):
        for place in (A, B, C):
            session.want(place, 5)
        turn(session)
        session.want(B, 6)
        session.want(C, 5)
        session.forget(A)
        turn(session)
        turn(session)
    assert asked.sessions == [(0, 0), (9, 1), (9, 2)]
    assert asked.positions(0) == {A: 5, B: 5, C: 5}
    assert (asked.positions(1), asked.forgotten(1)) == ({B: 6}, [A])
    assert (asked.positions(2), asked.forgotten(2)) == ({}, [])


def test_a_single_fetch_may_wait_for_another_time_than_the_session_does() -> None:
    with session_with(lambda request, number: respond()) as (session, asked):
        session.want(A, 5)
        turn(session)
        session.send(Deadline(5.0), max_wait_ms=20)
        session.receive(Deadline(5.0))
        turn(session)
    usual_ms = FetchLimits().max_wait_ms
    assert [request.max_wait_ms for request in asked.requests] == [usual_ms, 20, usual_ms]


def test_what_was_forgotten_and_wanted_again_in_one_turn_is_not_forgotten() -> None:
    with session_with(lambda request, number: respond()) as (session, asked):
        session.want(A, 5)
        turn(session)
        session.forget(A)
        session.want(A, 7)
        session.want(B, 1)
        session.forget(B)
        turn(session)
    assert (asked.positions(1), asked.forgotten(1)) == ({A: 7}, [])


@pytest.mark.parametrize("code", [SESSION_LOST, EPOCH_WRONG])
def test_a_session_that_the_broker_lost_is_opened_anew_with_all_that_is_wanted(code: int) -> None:
    def forgetful(request: Any, number: int) -> FetchResponse:
        return respond(code, session_id=0) if number == 2 else respond(session_id=9 + number, places=(A,))

    with session_with(forgetful) as (session, asked):
        session.want(A, 5)
        session.want(B, 5)
        turn(session)
        session.want(B, 6)
        turn(session)
        assert turn(session) == []
        session.want(A, 8)
        assert turn(session) == [A]
        turn(session)
    assert asked.sessions == [(0, 0), (9, 1), (10, 2), (0, 0), (12, 1)]
    assert asked.positions(3) == {A: 8, B: 6}


def test_a_broker_without_room_for_sessions_is_asked_for_everything_least_served_first() -> None:
    with session_with(lambda request, number: respond(session_id=0)) as (session, asked):
        session.want(A, 5)
        session.want(B, 5)
        turn(session)
        session.want(A, 6)
        turn(session)
    assert asked.sessions == [(0, 0), (0, 0)]
    assert list(asked.positions(1).items()) == [(B, 5), (A, 6)]


def test_an_answer_about_a_position_that_is_not_wanted_any_more_is_left_out() -> None:
    with session_with(lambda request, number: respond(places=(A, B, C))) as (session, _):
        for place in (A, B, C):
            session.want(place, 5)
        deadline = Deadline(5.0)
        session.send(deadline)
        session.forget(A)
        session.want(B, 9)
        session.want(C, 5)
        assert [one.topic for one in session.receive(deadline)] == ["b"]
        assert turn(session) == [A, B, C]


def test_an_error_of_the_whole_fetch_is_raised_and_the_session_opened_anew() -> None:
    with session_with(lambda request, number: respond(SERVER_ERROR if number == 1 else 0)) as (
        session,
        asked,
    ):
        session.want(A, 5)
        turn(session)
        with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
            turn(session)
        turn(session)
    assert asked.sessions == [(0, 0), (9, 1), (0, 0)]


def test_the_epoch_of_a_session_begins_again_at_one_after_the_highest() -> None:
    with session_with(lambda request, number: respond()) as (session, asked):
        session.want(A, 5)
        turn(session)
        session._epoch = 2**31 - 1
        turn(session)
        turn(session)
    assert asked.sessions == [(0, 0), (9, 2**31 - 1), (9, 1)]


def test_an_ended_session_is_ended_at_the_broker_too() -> None:
    with session_with(lambda request, number: respond(session_id=9 if number == 0 else 0)) as (
        session,
        asked,
    ):
        session.want(A, 5)
        session.send(Deadline(5.0))
        session.end(Deadline(5.0))
        session.end(Deadline(5.0))
    assert asked.sessions == [(0, 0), (9, -1)]
    assert not session.is_under_way


def test_a_broker_that_knows_no_names_is_asked_by_id() -> None:
    with session_with(lambda request, number: respond(places=(A, C)), BY_ID) as (session, asked):
        session.want(A, 5)
        session.want(C, 5)
        assert turn(session) == [A, C]
    assert [topic.topic_id for topic in asked.requests[0].topics] == [UUID(int=1), UUID(int=2)]


def test_a_broker_that_is_too_old_is_named_at_once() -> None:
    with (
        pytest.raises(KafkaError, match="FetchRequest cannot be sent: the broker knows versions 0 to 11"),
        session_with(lambda request, number: respond(), (0, 11)),
    ):
        pass


def test_two_fetches_at_a_time_are_refused() -> None:
    with session_with(lambda request, number: respond()) as (session, _):
        with pytest.raises(RuntimeError, match="no fetch under way"):
            session.receive(Deadline(5.0))
        session.send(Deadline(5.0))
        with pytest.raises(RuntimeError, match="one fetch at a time"):
            session.send(Deadline(5.0))


def test_a_fetch_that_is_not_answered_may_be_tried_again() -> None:
    late = threading.Event()

    def silent(request: Any, number: int) -> FetchResponse:
        late.wait(5.0)
        return respond()

    with session_with(silent) as (session, _):
        session.want(A, 5)
        session.send(Deadline(5.0))
        with pytest.raises(ConnectionFailed) as caught:
            session.receive(Deadline(0.05))
        late.set()
        assert caught.value.retriable
        assert not session.connection.is_open
