"""What waits for an answer and what goes together, with a sender that answers when the test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import cast

import pytest

from twinlog.errors import KafkaError
from twinlog.ordering import posting as module
from twinlog.ordering.posting import Posted, Posting
from twinlog.ordering.support import Unavailable
from twinlog.wire.deadlines import Deadline
from twinlog.wire.driver import Failed, Receipt, Sender

_WAIT_S = 10.0
_SILENCE = Failed("no answer in time", "is the site up?", False)
_TOO_LARGE = Failed("it is too large", "", True)


class Driver:
    """A sender without a broker."""

    def __init__(self) -> None:
        self.requests: list[list[Posted]] = []
        self.has_given_up = False
        self.is_closed = False
        self.refusal: KafkaError | None = None
        self.served = threading.Event()
        self.on_close: Callable[[], object] = lambda: None

    def queue_together(
        self, topic: str, partition: int, key: bytes, values: Sequence[bytes], receipts: Sequence[Posted]
    ) -> list[Receipt]:
        if self.refusal is not None:
            raise self.refusal
        assert (topic, partition, key) == ("foo", 0, b"0")
        assert [one.value for one in receipts] == list(values)
        fits = [one for one in receipts if len(one.value) < 100]
        self.requests.append(fits)
        return [one for one in receipts if one not in fits]

    def failure(self, error: object, message: object) -> Failed:
        assert isinstance(error, Failed)
        return error

    def serve(self, timeout_s: float) -> None:
        self.served.wait(0.01)

    def close(self) -> None:
        self.is_closed = True
        self.on_close()

    def answer(self, place: int, failed: Failed | None = None) -> None:
        """Answer every record of a request."""
        for offset, posted in enumerate(self.requests[place], 10 * place):
            posted.told(failed, _Message(offset))

    @property
    def sent(self) -> list[list[bytes]]:
        return [[one.value for one in request] for request in self.requests]


class _Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def offset(self) -> int:
        return self._offset

    def partition(self) -> int:
        return 0


class Line:
    """A Posting over drivers of the test."""

    def __init__(self) -> None:
        self.drivers: list[Driver] = []
        self.posting = Posting("foo", 0, self._new)

    def _new(self) -> Sender:
        self.drivers.append(Driver())
        return cast(Sender, self.drivers[-1])

    @property
    def driver(self) -> Driver:
        return self.drivers[-1]


@pytest.fixture
def line() -> Line:
    return Line()


def test_lone_record_goes_at_once_and_tells_its_offset(line: Line) -> None:
    future = line.posting.post(b"a")
    assert line.driver.sent == [[b"a"]]
    line.driver.answer(0)
    assert future.result(0.0) == 0
    line.posting.close()


def test_records_that_come_meanwhile_go_together_in_order(line: Line) -> None:
    told: list[tuple[str, object]] = []
    first = line.posting.post(b"a")
    later = line.posting.post(b"b")
    line.posting.post_together([b"c", b"d"], [lambda end, n=n: told.append((n, end)) for n in "cd"])  # type: ignore[misc]
    assert line.driver.sent == [[b"a"]]
    line.driver.answer(0)
    assert first.result(0.0) == 0
    assert line.driver.sent == [[b"a"], [b"b", b"c", b"d"]]
    assert not later.done()
    line.driver.answer(1)
    assert (later.result(0.0), told) == (10, [("c", None), ("d", None)])
    line.posting.close()


def test_log_does_not_answer_fails_what_waits_behind_it_too(line: Line) -> None:
    first, second = line.posting.post(b"a"), line.posting.post(b"b")
    line.driver.answer(0, _SILENCE)
    for future in (first, second):
        with pytest.raises(Unavailable, match="cannot enqueue: no answer in time"):
            future.result(0.0)
    assert line.driver.sent == [[b"a"]]
    line.posting.post(b"c")
    assert line.driver.sent == [[b"a"], [b"c"]]
    line.posting.close()


def test_record_is_refused_for_itself_lets_others_go(line: Line) -> None:
    first, second = line.posting.post(b"a"), line.posting.post(b"b")
    line.driver.answer(0, _TOO_LARGE)
    with pytest.raises(Unavailable, match="too large"):
        first.result(0.0)
    line.driver.answer(1)
    assert second.result(0.0) == 10
    line.posting.close()


def test_driver_does_not_take_a_record_tells_it_and_sends_the_rest(line: Line) -> None:
    line.posting.post(b"a")
    big, small = line.posting.post(bytes(100)), line.posting.post(b"b")
    line.driver.answer(0)
    with pytest.raises(Unavailable, match="no room for it, or it is too large"):
        big.result(0.0)
    line.driver.answer(1)
    assert small.result(0.0) == 10
    line.posting.close()


def test_driver_takes_nothing_tells_all_and_waits_for_nothing(line: Line) -> None:
    line.driver.refusal = KafkaError("the producer is closed")
    with pytest.raises(Unavailable, match="the producer is closed"):
        line.posting.post(b"a").result(0.0)
    line.driver.refusal = None
    line.posting.post(b"b")
    assert line.driver.sent == [[b"b"]]
    line.posting.close()


def test_driver_has_given_up_is_replaced_and_what_waits_fails(line: Line) -> None:
    line.posting.post(b"a")
    waiting = line.posting.post(b"b")
    given_up = line.driver
    given_up.has_given_up = True
    with pytest.raises(Unavailable, match="the producer has ended"):
        waiting.result(_WAIT_S)
    deadline, pause = Deadline(_WAIT_S), threading.Event()
    while len(line.drivers) < 2 or cast(object, line.posting.sender) is given_up:
        assert not deadline.passed
        pause.wait(0.01)
    line.posting.post(b"c")
    assert (given_up.is_closed, line.driver.sent) == (True, [[b"c"]])
    line.posting.close()


def test_driver_is_replaced_sends_what_came_meanwhile(line: Line) -> None:
    line.posting.post(b"a")
    given_up, late = line.driver, list[Future[int]]()
    given_up.on_close = lambda: late.append(line.posting.post(b"b"))  # nothing is answered any more
    given_up.has_given_up = True
    deadline, pause = Deadline(_WAIT_S), threading.Event()
    while len(line.drivers) < 2 or not line.driver.sent:
        assert not deadline.passed
        pause.wait(0.01)
    line.driver.answer(0)
    assert (line.driver.sent, late[0].result(_WAIT_S)) == ([[b"b"]], 0)
    line.posting.close()


def test_too_much_waits_is_turned_away(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING_BYTES", 2)
    for _ in range(4):
        line.posting.post(b"a")
    with pytest.raises(Unavailable, match="too much waits"):
        line.posting.post(b"b")
    line.posting.close()
