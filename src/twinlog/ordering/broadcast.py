"""Broadcast: messages in, an answer to each when the brokers have it.

A session serves one stream in the server's loop. A message is checked at once and handed to the producer;
its answer comes from the producer's thread and goes out in the order of the messages, so one stream keeps
many on their way. Two things make a stream wait: too many unanswered messages, and a channel whose gate is
closed because an old configuration goes through the log again. Nothing here blocks the loop.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Protocol

from twinlog.errors import TwinlogError
from twinlog.ordering import messages
from twinlog.ordering.calls import Stream
from twinlog.ordering.messages import CONFIG, CONFIG_UPDATE, ORDERER_TRANSACTION, Message
from twinlog.ordering.metrics import Figures
from twinlog.ordering.posting import Tell
from twinlog.ordering.processing import Ready
from twinlog.ordering.proto import common_pb2, orderer_pb2
from twinlog.ordering.replies import UNKNOWN, Answer, Replies
from twinlog.ordering.server import Post
from twinlog.ordering.statuses import NAMES, SERVICE_UNAVAILABLE, SUCCESS, Refusal, bad
from twinlog.ordering.support import Unavailable

IN_FLIGHT = 2000  # unanswered messages of one stream
IN_FLIGHT_BYTES = 16 * 1024 * 1024
TOGETHER = 64  # messages of all streams that are sent in one call; checking so many takes a few milliseconds
GATE_TIMEOUT_S = 30.0
_SUCCESS = orderer_pb2.BroadcastResponse(status=common_pb2.SUCCESS).SerializeToString()
_DIRECT = (CONFIG, ORDERER_TRANSACTION)  # only orderers make these
_TYPES = dict(zip(common_pb2.HeaderType.values(), common_pb2.HeaderType.keys(), strict=True))


class Channel(Protocol):
    """A channel as those who write see it."""

    @property
    def channel_id(self) -> str:
        """Its name."""

    @property
    def is_ready(self) -> bool:
        """False while its gate is closed; raises Unavailable if it takes nothing at all."""

    def wait_ready(self, timeout_s: float) -> None:
        """Wait for the gate; raises Unavailable if it stays closed."""

    def normal(self, message: Message) -> Ready:
        """Check a message; raises a refusal."""

    def config_update(self, message: Message) -> Ready:
        """Make the configuration that an update asks for; raises a refusal."""

    def order(self, batch: Sequence[tuple[Ready, Tell]]) -> None:
        """Send messages to the log that came together; raises Unavailable for all of them."""

    def configure(self, ready: Ready) -> Future[int]:
        """Send a configuration to the log; raises Unavailable."""


class Outbox:
    """Checked messages of all streams on their way to the log: what comes together goes together.

    A request costs brokers and orderers more than the records in it, so messages that arrive in one turn of
    the loop are sent in one call, and no message waits for another that has not arrived.
    """

    def __init__(self, soon: Post) -> None:
        self._soon = soon
        self._waiting: dict[Channel, list[tuple[Ready, Tell]]] = {}
        self._count = 0
        self._is_due = False

    def add(self, channel: Channel, ready: Ready, tell: Tell) -> None:
        """Have a message sent soon."""
        self._waiting.setdefault(channel, []).append((ready, tell))
        self._count += 1
        if self._count >= TOGETHER:
            self.flush()
        elif not self._is_due:
            self._is_due = True
            self._soon(self._due)

    def flush(self) -> None:
        """Send what there is."""
        waiting, self._waiting, self._count = self._waiting, {}, 0
        for channel, batch in waiting.items():
            try:
                channel.order(batch)
            except Unavailable as error:
                for _, tell in batch:
                    tell(error)

    def _due(self) -> None:
        self._is_due = False
        self.flush()


@dataclass(frozen=True)
class Desk:
    """What all streams share."""

    find: Callable[[str], Channel]  # the channel, or the system channel for names that nobody knows
    figures: Figures
    post: Post
    outbox: Outbox


class BroadcastSession:
    """One stream."""

    def __init__(self, stream: Stream, desk: Desk) -> None:
        self._stream = stream
        self._desk = desk
        self._replies = Replies()
        self._backlog: deque[bytes] = deque()  # what came while the gate was closed
        self._waits = self._is_due = self._is_held = self._has_ended = self._is_gone = False
        self._is_refused = False  # what follows a refusal is not looked at

    def message(self, raw: bytes) -> None:
        """Another message."""
        if self._is_refused:
            return
        if self._waits:
            self._backlog.append(raw)
        else:
            if self._handle(raw).status:  # known at once, which an acknowledgement never is
                self._send_due()
        if not self._is_held and self._has_more_than(IN_FLIGHT, IN_FLIGHT_BYTES):
            self._is_held = True
            self._stream.hold()

    def half_closed(self) -> None:
        """No more messages come; those that did are answered."""
        self._has_ended = True
        self._send_due()

    def drained(self) -> None:
        """Answers are small; nobody waits for room."""

    def gone(self) -> None:
        """Nobody waits for answers any more; what was sent to the log stays sent."""
        self._is_gone = True
        self._backlog.clear()

    def _handle(self, raw: bytes) -> Answer:
        answer = self._replies.begin(time.perf_counter(), len(raw))
        try:
            message = messages.read(raw)
            answer.kind = _TYPES.get(message.type, UNKNOWN)
            channel = self._desk.find(message.channel_id)
            if channel.channel_id == message.channel_id:  # figures are not kept of names that clients make up
                answer.channel_id = message.channel_id
            if message.type in _DIRECT:
                raise bad("message is of type that cannot be processed directly")
            is_config = message.type == CONFIG_UPDATE
            ready = channel.config_update(message) if is_config else channel.normal(message)
            answer.checked_s = time.perf_counter()
            if channel.is_ready:
                self._send(channel, ready, answer, is_config)
            else:
                self._wait(channel, ready, answer, is_config)
        except Refusal as refusal:
            self._refuse(answer, refusal.status, refusal.info)
        except Unavailable as error:
            self._refuse(answer, SERVICE_UNAVAILABLE, error.what)
        return answer

    def _refuse(self, answer: Answer, status: int, info: str) -> None:
        self._is_refused = True
        answer.info, answer.status = info, status

    def _send(self, channel: Channel, ready: Ready, answer: Answer, is_config: bool) -> None:
        if is_config:
            self._desk.outbox.flush()  # it is ordered behind what came before
            sent = channel.configure(ready)
            sent.add_done_callback(lambda done: self._answered(answer, done.exception()))
        else:
            self._desk.outbox.add(channel, ready, partial(self._answered, answer))

    def _answered(self, answer: Answer, error: BaseException | None) -> None:
        """From the producer's thread: the brokers have it, or will not."""
        if error is None:
            answer.status = SUCCESS
        else:
            info = error.what if isinstance(error, TwinlogError) else "cannot enqueue"
            self._refuse(answer, SERVICE_UNAVAILABLE, info)
        if not self._is_due:
            self._is_due = True
            self._desk.post(self._look_again)

    def _look_again(self) -> None:
        self._is_due = False
        self._send_due()

    def _send_due(self) -> None:
        answers = self._replies.due()
        if answers:
            self._answer(answers)
        if self._is_gone or self._stream.trailer is not None:
            return
        waiting = len(self._replies) + len(self._backlog)
        if self._replies.has_ended or (self._has_ended and waiting == 0):
            self._stream.finish()
        elif self._is_held and not self._has_more_than(IN_FLIGHT // 2, IN_FLIGHT_BYTES // 2):
            self._is_held = False
            self._stream.release()

    def _has_more_than(self, count: int, size_bytes: int) -> bool:
        """True if so much of this stream is on its way that its client should wait."""
        return len(self._replies) + len(self._backlog) > count or self._replies.size_bytes > size_bytes

    def _answer(self, answers: list[Answer]) -> None:
        """Send answers; those that are alike, as almost all are, together."""
        now_s = time.perf_counter()
        for (channel_id, kind, status, info), alike in groupby(answers, key=_likeness):
            took_s = [_took_s(answer, now_s) for answer in alike]
            self._stream.send(_response(status, info), len(took_s))
            self._desk.figures.broadcast(channel_id, kind, status, took_s)

    def _wait(self, channel: Channel, ready: Ready, answer: Answer, is_config: bool) -> None:
        """Let a thread wait for the gate; what this stream sends meanwhile stands in line."""
        self._waits = True

        def wait() -> None:
            try:
                channel.wait_ready(GATE_TIMEOUT_S)
            except Unavailable as error:
                refused = error
                self._desk.post(lambda: self._opened(lambda: _raise(refused), answer))
            else:
                self._desk.post(
                    lambda: self._opened(lambda: self._send(channel, ready, answer, is_config), answer)
                )

        threading.Thread(target=wait, name="gate", daemon=True).start()

    def _opened(self, send: Callable[[], None], answer: Answer) -> None:
        """Go on after the gate, in the loop."""
        self._waits = False
        if self._is_gone:
            return
        try:
            send()
        except Unavailable as error:
            self._refuse(answer, SERVICE_UNAVAILABLE, error.what)
        while self._backlog and not self._waits and not self._is_refused:
            self._handle(self._backlog.popleft())
        self._send_due()


def _raise(error: Unavailable) -> None:
    raise error


def _likeness(answer: Answer) -> tuple[str, str, int, str]:
    return answer.channel_id, answer.kind, answer.status, answer.info


def _took_s(answer: Answer, now_s: float) -> tuple[float, float | None]:
    if not answer.checked_s:
        return now_s - answer.began_s, None
    return answer.checked_s - answer.began_s, now_s - answer.checked_s


def _response(status: int, info: str) -> bytes:
    if status == SUCCESS:
        return _SUCCESS
    return orderer_pb2.BroadcastResponse(status=NAMES[status], info=info).SerializeToString()
