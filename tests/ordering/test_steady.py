"""Records that must get into the log, with producers that the test makes fail."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from twinlog.errors import KafkaError
from twinlog.ordering.retrying import AskedToEnd
from twinlog.ordering.steady import Steady
from twinlog.wire.driver import Failed, NoRoom, Receipt, Sender

_NO_RIGHT = Failed("this user may write to no topic", "", True)
_TOO_LARGE = Failed("it is too large", "", True)
_SILENCE = Failed("no answer in time", "", False)


class Driver:
    """A producer that answers each record as it is told to."""

    def __init__(self, answer: Failed | None, *, gives_up: bool = False, room: int = 100) -> None:
        self.sent: list[tuple[bytes, Receipt]] = []
        self.has_given_up = False
        self._answer = answer
        self._gives_up = gives_up
        self._room = room

    def queue(self, topic: str, value: bytes, *rest: Any) -> None:
        if self.has_given_up:
            raise KafkaError("the producer cannot go on")
        if len(self.sent) >= self._room:
            raise NoRoom("the producer's queue is full")
        self.sent.append((value, rest[-1]))

    def flush(self, timeout_s: float) -> int:
        self.has_given_up = self._gives_up
        for offset, (_, receipt) in enumerate(self.sent):
            if self._answer is None:
                receipt.offset = offset
            else:
                receipt.failed = self._answer
        return 0

    def serve(self, timeout_s: float) -> None:
        """Nothing is answered before it is flushed."""

    def close(self) -> None:
        """There is nothing to end."""


def _steady(*drivers: Driver, halted: threading.Event | None = None) -> Steady:
    line = iter(drivers)
    wait = (halted or threading.Event()).wait
    return Steady("foo", 0, lambda: cast(Sender, next(line)), lambda _: wait(0.0))


def _values(driver: Driver) -> list[bytes]:
    return [value for value, _ in driver.sent]


@pytest.mark.parametrize("failure", [_SILENCE, _NO_RIGHT])
def test_producer_gives_up_writes_everything_again_with_the_next(failure: Failed) -> None:
    first, second = Driver(failure, gives_up=True), Driver(None)
    steady = _steady(first, second)
    for value in (b"a", b"b"):
        steady.post(value)
    assert steady.settle(10.0)
    assert _values(second) == [b"a", b"b"]


def test_record_is_refused_for_itself_is_left_out() -> None:
    driver = Driver(_TOO_LARGE)
    steady = _steady(driver)
    steady.post(b"a")
    assert steady.settle(10.0)


def test_no_room_and_asked_to_end_does_not_wait_for_ever() -> None:
    halted = threading.Event()
    steady = _steady(Driver(None, room=1), halted=halted)
    steady.post(b"a")
    halted.set()
    with pytest.raises(AskedToEnd):
        steady.post(b"b")
