"""The orderer's port, with gRPC's own client at the other end."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import cast

import grpc
import pytest

from twinlog.ordering.calls import Session, Stream
from twinlog.ordering.connection import Open
from twinlog.ordering.localconfig import Keepalive
from twinlog.ordering.server import Endpoint, Relay, Server

DEADLINE_S = 20.0
METHOD = "/orderer.AtomicBroadcast/Broadcast"


class Echo:
    """Sends every message back, and ends when its client does; `stop` ends it at once."""

    def __init__(self, stream: Stream, heard: list[str]) -> None:
        self._stream = stream
        self._heard = heard

    def message(self, raw: bytes) -> None:
        self._stream.send(raw)
        if raw == b"stop":
            self._stream.finish()

    def half_closed(self) -> None:
        self._heard.append("half closed")
        self._stream.finish()

    def gone(self) -> None:
        self._heard.append("gone")

    def drained(self) -> None:
        pass


@contextmanager
def serving(open_session: Callable[[Relay], Open]) -> Iterator[int]:
    """A server in a thread of its own; gives its port."""
    port: Future[int] = Future()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        server = Server(Endpoint("127.0.0.1", 0, Keepalive()), open_session(Relay(loop)))
        port.set_result(await server.start())
        await stop.wait()
        await server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        yield port.result(DEADLINE_S)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(DEADLINE_S)
        loop.close()


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def channel(heard: list[str]) -> Iterator[grpc.Channel]:
    def echo(path: str, stream: Stream) -> Session | None:
        return Echo(stream, heard) if path == METHOD else None

    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with (
        serving(lambda _: echo) as port,
        grpc.insecure_channel(f"127.0.0.1:{port}", options) as opened,
    ):
        yield opened


def test_messages_come_back_in_order(channel: grpc.Channel) -> None:
    sent = [b"%d" % number for number in range(5000)]
    assert list(channel.stream_stream(METHOD)(iter(sent), timeout=DEADLINE_S)) == sent


@pytest.mark.parametrize("size", [0, 1, 16_379, 16_384, 5_000_000, 30_000_000])
def test_message_of_any_size_comes_back_whole(channel: grpc.Channel, size: int) -> None:
    message = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    (back,) = channel.stream_stream(METHOD)(iter([message]), timeout=DEADLINE_S)
    assert back == message


def test_compressed_message_is_expanded(channel: grpc.Channel) -> None:
    call = channel.stream_stream(METHOD)
    sent = [b"a" * 10_000, b"b"]
    assert list(call(iter(sent), timeout=DEADLINE_S, compression=grpc.Compression.Gzip)) == sent


def test_unknown_method_is_unimplemented(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        list(channel.stream_stream("/orderer.AtomicBroadcast/Other")(iter([b"x"]), timeout=DEADLINE_S))
    assert cast(grpc.Call, caught.value).code() is grpc.StatusCode.UNIMPLEMENTED


def test_stream_that_the_server_ends_ends_well_though_the_client_would_send_more(
    channel: grpc.Channel,
) -> None:
    never = threading.Event()

    def sent() -> Iterator[bytes]:
        yield b"stop"
        never.wait(DEADLINE_S)
        yield b"unread"

    call = channel.stream_stream(METHOD)(sent(), timeout=DEADLINE_S)
    assert list(call) == [b"stop"]
    assert call.code() is grpc.StatusCode.OK
    never.set()


def test_client_that_cancels_is_noticed(channel: grpc.Channel, heard: list[str]) -> None:
    waits = threading.Event()

    def sent() -> Iterator[bytes]:
        yield b"x"
        waits.wait(DEADLINE_S)

    call = channel.stream_stream(METHOD)(sent(), timeout=DEADLINE_S)
    assert next(call) == b"x"
    call.cancel()
    # A stream of its own comes to its end after the first one's is known.
    assert list(channel.stream_stream(METHOD)(iter([b"y"]), timeout=DEADLINE_S)) == [b"y"]
    assert heard[0] == "gone"
    waits.set()


def test_many_streams_share_one_connection(channel: grpc.Channel) -> None:
    calls = [
        channel.stream_stream(METHOD)(iter([b"%d" % number] * 20), timeout=DEADLINE_S)
        for number in range(100)
    ]
    assert [list(call) for call in calls] == [[b"%d" % number] * 20 for number in range(100)]


def test_port_answers_what_is_no_http2_with_an_end() -> None:
    with (
        serving(lambda _: lambda path, stream: None) as port,
        socket.create_connection(("127.0.0.1", port), DEADLINE_S) as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        said = b""
        while piece := client.recv(4096):
            said += piece
    assert b"this is a port for gRPC" in said


def test_call_from_another_thread_fails_and_the_next_is_made_all_the_same() -> None:
    loop, made = asyncio.new_event_loop(), list[str]()
    relay = Relay(loop)
    relay.post(lambda: made.append(str(1 // 0)))
    relay.post(lambda: made.append("next"))
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert made == ["next"]
