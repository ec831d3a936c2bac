"""Connections to brokers that do what real ones do only on bad days."""

from __future__ import annotations

import queue
import socket
import time

import pytest
from kafka.protocol.admin import CreateTopicsRequest, CreateTopicsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from tests.running.wire import scripted_broker as broker
from twinlog.errors import KafkaError, UnknownOutcome
from twinlog.wire.access import Access, Protocol
from twinlog.wire.addresses import HostPort
from twinlog.wire.connection import Connection
from twinlog.wire.deadlines import Deadline
from twinlog.wire.failures import ConnectionFailed

PLAINTEXT = Access(("unused:1",), Protocol.PLAINTEXT)
UNSUPPORTED_VERSION = 35


def connect(address: HostPort, timeout_s: float = 5.0) -> Connection:
    return Connection(address, PLAINTEXT, timeout_s=timeout_s)


def ask_metadata(connection: Connection) -> MetadataResponse:
    return connection.call(MetadataRequest(topics=[]), MetadataResponse)


def test_an_old_broker_is_greeted_again_in_a_version_that_it_knows() -> None:
    versions = []

    def old_broker(connection: socket.socket) -> None:
        for code in (UNSUPPORTED_VERSION, 0):
            _, version, number = broker.read_request(connection)
            versions.append(version)
            response = broker.known_apis(code)
            for key in response.api_keys:
                key.max_version = 1 if key.api_key == broker.API_VERSIONS else key.max_version
            broker.answer(connection, response, 0 if code else version, number)
        _, version, number = broker.read_request(connection)
        broker.answer(connection, broker.metadata("old"), version, number)

    with broker.listening(old_broker) as address, connect(address) as connection:
        assert ask_metadata(connection).cluster_id == "old"
    assert versions == [4, 1]


def test_requests_in_flight_are_answered_in_the_order_of_sending() -> None:
    def slow_broker(connection: socket.socket) -> None:
        broker.greet(connection)
        requests = [broker.read_request(connection) for _ in range(5)]
        for _, version, number in requests:
            broker.answer(connection, broker.metadata(f"answer {number}"), version, number)

    with broker.listening(slow_broker) as address, connect(address) as connection:
        deadline = Deadline(5.0)
        sent = [connection.send(MetadataRequest(topics=[]), MetadataResponse, deadline) for _ in range(5)]
        answers = [connection.receive(pending, deadline).cluster_id for pending in sent]
    assert answers == [f"answer {pending.number}" for pending in sent]


def test_an_answer_that_is_read_out_of_order_is_refused() -> None:
    def patient_broker(connection: socket.socket) -> None:
        broker.greet(connection)
        connection.recv(1_000_000)

    with broker.listening(patient_broker) as address, connect(address) as connection:
        deadline = Deadline(5.0)
        connection.send(MetadataRequest(topics=[]), MetadataResponse, deadline)
        second = connection.send(MetadataRequest(topics=[]), MetadataResponse, deadline)
        with pytest.raises(RuntimeError, match="order"):
            connection.receive(second, deadline)


def hang_up_after_one_request(connection: socket.socket) -> None:
    broker.greet(connection)
    broker.read_request(connection)


def test_a_write_that_is_not_answered_has_an_unknown_outcome() -> None:
    with broker.listening(hang_up_after_one_request) as address, connect(address) as connection:
        with pytest.raises(UnknownOutcome, match="CreateTopicsRequest was sent and not answered"):
            connection.call(CreateTopicsRequest(topics=[]), CreateTopicsResponse)
        assert not connection.is_open


def test_a_read_that_is_not_answered_may_be_tried_again() -> None:
    with (
        broker.listening(hang_up_after_one_request) as address,
        connect(address) as connection,
        pytest.raises(ConnectionFailed, match="closed the connection") as caught,
    ):
        ask_metadata(connection)
    assert caught.value.retriable
    assert "is SASL missing?" in caught.value.hint


@pytest.mark.parametrize(("is_answered", "how"), [(True, "closed"), (False, "reset")])
def test_a_connection_that_ends_with_a_request_in_flight_is_reset(is_answered: bool, how: str) -> None:
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()

    def patient_broker(connection: socket.socket) -> None:
        broker.greet(connection)
        _, version, number = broker.read_request(connection)
        if is_answered:
            broker.answer(connection, broker.metadata("m"), version, number)
        try:
            ended.put("closed" if connection.recv(1) == b"" else "more came")
        except ConnectionResetError:
            ended.put("reset")

    with broker.listening(patient_broker) as address:
        with connect(address) as connection:
            deadline = Deadline(5.0)
            pending = connection.send(MetadataRequest(topics=[]), MetadataResponse, deadline)
            if is_answered:
                connection.receive(pending, deadline)
        assert ended.get(timeout=5.0) == how


def test_a_write_on_a_closed_connection_is_not_done() -> None:
    def greet_only(connection: socket.socket) -> None:
        broker.greet(connection)
        connection.recv(1)

    with broker.listening(greet_only) as address, connect(address) as connection:
        connection.close()
        with pytest.raises(ConnectionFailed):
            connection.call(CreateTopicsRequest(topics=[]), CreateTopicsResponse)


def test_a_request_that_the_broker_does_not_know_is_not_sent() -> None:
    def greet_only(connection: socket.socket) -> None:
        broker.greet(connection)
        connection.recv(1)

    with broker.listening(greet_only) as address, connect(address) as connection:
        assert not connection.supports(ProduceRequest)
        with pytest.raises(KafkaError, match="does not know it") as caught:
            connection.call(ProduceRequest(topic_data=[]), ProduceResponse)
        assert caught.value.code == "UNSUPPORTED_VERSION"
        assert connection.is_open


def test_a_silent_listener_is_waited_for_no_longer_than_the_timeout() -> None:
    def silent(connection: socket.socket) -> None:
        while connection.recv(1_000_000):
            pass

    started = time.monotonic()
    silence = pytest.raises(ConnectionFailed, match="no answer in time during the greeting")
    with broker.listening(silent) as address, silence:
        connect(address, timeout_s=0.2)
    assert time.monotonic() - started < 2.0


@pytest.mark.parametrize(
    ("bytes_sent", "what"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x50", "answers with TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not an answer of Kafka"),
        (b"\0\0\0\x08\0\0\0\x63\0\0\0\0", "not an answer of Kafka"),
        (b"\0\0\0\x05\0\0\0\x01\0", "not an answer of Kafka"),
    ],
)
def test_a_listener_that_speaks_something_else_is_named(bytes_sent: bytes, what: str) -> None:
    def stranger(connection: socket.socket) -> None:
        connection.recv(4)
        connection.sendall(bytes_sent)
        connection.recv(1_000_000)

    with broker.listening(stranger) as address, pytest.raises(ConnectionFailed, match=what) as caught:
        connect(address)
    assert not caught.value.retriable
    assert caught.value.hint


def test_a_port_where_nothing_listens_asks_whether_the_site_is_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionFailed, match="nothing listens there") as caught:
        connect(HostPort("127.0.0.1", port))
    assert caught.value.retriable
    assert caught.value.hint == "is the site up? twinlog status"


def test_a_listener_that_hangs_up_at_once_asks_whether_tls_is_missing() -> None:
    with broker.listening(lambda connection: None) as address, pytest.raises(ConnectionFailed) as caught:
        connect(address)
    assert "is TLS missing?" in caught.value.hint
