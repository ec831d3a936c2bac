"""One gRPC connection without a socket: its rules, and that nothing a client sends stops it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.ordering import frames
from twinlog.ordering.calls import MESSAGE_LIMIT_BYTES, Session, Stream
from twinlog.ordering.connection import Connection
from twinlog.ordering.frames import Code

REQUEST = frames.header_block([(":method", "POST"), (":path", "/echo"), ("te", "trailers")])


class Echo:
    """Sends every message back."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.events: list[str] = []

    def message(self, raw: bytes) -> None:
        self.stream.send(raw)

    def half_closed(self) -> None:
        self.stream.finish()

    def gone(self) -> None:
        self.events.append("gone")

    def drained(self) -> None:
        self.events.append("drained")


class Client:
    """The other end: writes frames and reads those that come back."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.sessions: list[Echo] = []
        self.connection = Connection(self._open, now_s=lambda: self.now_s)
        self.send(frames.PREFACE + frames.settings([]))

    def _open(self, path: str, stream: Stream) -> Session | None:
        if path != "/echo":
            return None
        self.sessions.append(Echo(stream))
        return self.sessions[-1]

    def send(self, data: bytes) -> list[frames.Frame]:
        """Send bytes; the frames that they are answered with."""
        self.connection.receive(data)
        found, rest = frames.split(self.connection.take(), frames.LARGEST_FRAME_BYTES)
        assert not rest
        return found

    def begin(self, stream_id: int = 1) -> None:
        """Begin a call."""
        self.send(frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, REQUEST))


def grpc_message(content: bytes) -> bytes:
    return b"\x00" + struct.pack(">L", len(content)) + content


def data(content: bytes, stream_id: int = 1, flags: int = 0) -> bytes:
    return frames.frame(frames.DATA, flags, stream_id, content)


def bodies(found: list[frames.Frame]) -> bytes:
    return b"".join(one.payload for one in found if one.kind == frames.DATA)


def ended_with(found: list[frames.Frame]) -> int:
    """The code of the GOAWAY among frames."""
    (last,) = (one for one in found if one.kind == frames.GOAWAY)
    return int.from_bytes(last.payload[4:8], "big")


@given(st.lists(st.binary(max_size=200), max_size=8), st.data())
def test_messages_come_back_however_they_are_cut_into_frames(
    contents: list[bytes], draw: st.DataObject
) -> None:
    client = Client()
    client.begin()
    whole = b"".join(map(grpc_message, contents))
    back = b""
    while whole:
        size = draw.draw(st.integers(1, len(whole)))
        back += bodies(client.send(data(whole[:size])))
        whole = whole[size:]
    assert back == b"".join(map(grpc_message, contents))


@given(st.binary(max_size=400), st.integers(1, 399))
def test_bytes_that_arrive_in_pieces_mean_the_same(content: bytes, cut: int) -> None:
    stream = frames.frame(frames.HEADERS, frames.END_HEADERS, 1, REQUEST) + data(grpc_message(content))
    client = Client()
    back = bodies(client.send(stream[:cut])) + bodies(client.send(stream[cut:]))
    assert back == grpc_message(content)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 255), st.integers(0, 5), st.binary(max_size=40)))
)
def test_no_sequence_of_frames_stops_the_server(sequence: list[tuple[int, int, int, bytes]]) -> None:
    client = Client()
    client.begin()
    for kind, flags, stream_id, payload in sequence:
        client.connection.receive(frames.frame(kind, flags, stream_id, payload))
        client.connection.take()
    if client.connection.is_over:
        assert not client.connection.streams


@given(st.binary(max_size=300))
def test_no_bytes_stop_the_server(raw: bytes) -> None:
    client = Client()
    client.connection.receive(raw)
    client.connection.take()


def test_answers_wait_for_the_window_that_the_client_gives() -> None:
    client = Client()
    client.send(frames.settings([(frames.INITIAL_WINDOW_SIZE, 10)]))
    client.begin()
    found = bodies(client.send(data(grpc_message(b"x" * 20))))
    assert len(found) == 10
    found += bodies(client.send(frames.window_update(1, 100)))
    assert found == grpc_message(b"x" * 20)


def test_held_stream_gets_no_more_leave_until_it_is_released() -> None:
    client = Client()
    client.begin()
    stream = client.sessions[0].stream
    stream.hold()
    big = grpc_message(b"x" * 900_000)
    answers = client.send(data(big)) + client.send(data(big))
    assert not [one for one in answers if one.kind == frames.WINDOW_UPDATE and one.stream_id == 1]
    stream.release()
    (leave,) = (one for one in client.send(b"") if one.kind == frames.WINDOW_UPDATE)
    assert leave.stream_id == 1
    assert frames.read_number(leave.payload) == 2 * len(big)


def test_client_that_sends_more_than_it_may_is_sent_away() -> None:
    client = Client()
    client.begin()
    client.sessions[0].stream.hold()
    answers: list[frames.Frame] = []
    while not client.connection.is_over:
        answers += client.send(data(bytes(1_000_000)))
    assert ended_with(answers) == Code.FLOW_CONTROL_ERROR
    assert client.sessions[0].events[-1] == "gone"


def test_message_over_the_limit_ends_its_call_only() -> None:
    client = Client()
    client.begin()
    announced = b"\x00" + struct.pack(">L", MESSAGE_LIMIT_BYTES + 1)
    answers = client.send(data(announced))
    (trailer,) = (one for one in answers if one.flags & frames.END_STREAM and one.kind == frames.HEADERS)
    assert b"grpc-status\x018" in trailer.payload
    client.begin(3)
    assert bodies(client.send(data(grpc_message(b"x"), 3))) == grpc_message(b"x")


@pytest.mark.parametrize("pings", [4])
def test_client_that_pings_too_often_is_told_to_calm_down(pings: int) -> None:
    client = Client()
    answers: list[frames.Frame] = []
    for _ in range(pings):
        answers += client.send(frames.frame(frames.PING, 0, 0, b"12345678"))
    assert ended_with(answers) == Code.ENHANCE_YOUR_CALM


def test_client_that_pings_once_a_minute_stays() -> None:
    client = Client()
    for _ in range(10):
        (back,) = client.send(frames.frame(frames.PING, 0, 0, b"12345678"))
        assert (back.kind, back.flags, back.payload) == (frames.PING, frames.ACK, b"12345678")
        client.now_s += 60.0


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (frames.frame(frames.HEADERS, frames.END_HEADERS, 2, REQUEST), Code.PROTOCOL_ERROR),
        (frames.frame(frames.HEADERS, frames.END_HEADERS, 1, b"\xff\xff\xff"), Code.COMPRESSION_ERROR),
        (frames.frame(frames.CONTINUATION, 0, 1, b""), Code.PROTOCOL_ERROR),
        (
            frames.frame(frames.HEADERS, 0, 1, b"") + frames.frame(frames.PING, 0, 0, bytes(8)),
            Code.PROTOCOL_ERROR,
        ),
        (frames.frame(frames.DATA, 0, 9, b"x"), Code.PROTOCOL_ERROR),
        (frames.frame(frames.WINDOW_UPDATE, 0, 0, bytes(4)), Code.PROTOCOL_ERROR),
        (frames.frame(frames.SETTINGS, 0, 0, b"x"), Code.FRAME_SIZE_ERROR),
        (frames.frame(frames.PUSH_PROMISE, 0, 1, b""), Code.PROTOCOL_ERROR),
        (struct.pack(">BHBBL", 0xFF, 0xFFFF, 0, 0, 1), Code.FRAME_SIZE_ERROR),
    ],
)
def test_broken_rule_ends_the_connection_with_its_code(raw: bytes, code: Code) -> None:
    assert ended_with(Client().send(raw)) == code


def test_headers_in_several_frames_begin_one_call() -> None:
    client = Client()
    client.send(frames.frame(frames.HEADERS, 0, 1, REQUEST[:5]))
    client.send(frames.frame(frames.CONTINUATION, 0, 1, REQUEST[5:9]))
    client.send(frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, REQUEST[9:]))
    assert bodies(client.send(data(grpc_message(b"x")))) == grpc_message(b"x")


def test_padding_and_priority_are_passed_over() -> None:
    client = Client()
    padded = b"\x03" + bytes(5) + REQUEST + bytes(3)
    flags = frames.END_HEADERS | frames.PADDED | frames.HAS_PRIORITY
    client.send(frames.frame(frames.HEADERS, flags, 1, padded))
    body = b"\x02" + grpc_message(b"x") + bytes(2)
    assert bodies(client.send(data(body, flags=frames.PADDED))) == grpc_message(b"x")


def test_large_answer_for_a_client_with_a_small_window_is_not_copied_for_every_piece() -> None:
    client = Client()
    client.begin()
    stream = client.sessions[0].stream
    answer = bytes(range(256)) * 40_000
    stream.send(answer)
    back = bodies(client.send(b""))
    kept = stream.outgoing[0]
    while len(back) < len(answer):
        leave = frames.window_update(1, 16_384) + frames.window_update(0, 16_384)
        back += bodies(client.send(leave))
        assert not stream.outgoing or stream.outgoing[0] is kept
    assert back == grpc_message(answer)
