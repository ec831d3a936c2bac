"""A write under way, told by hand."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from twinlog import Done, NotDone, Unknown
from twinlog.client.sent import Sent, kind_of
from twinlog.wire.driver import Failed, Sender


class Desk:
    """What a write needs of its Sender."""

    def __init__(self) -> None:
        self.answered = threading.Condition()
        self.has_listeners = False
        self.waiters = 0
        self.wanted = threading.Event()

    def failure(self, error: Any, _: Any) -> Failed:
        return Failed(str(error), "why?", is_certain=error == "too large")


class Message:
    def __init__(self, offset: int | None) -> None:
        self._offset = offset

    def partition(self) -> int:
        return 3

    def offset(self) -> int | None:
        return self._offset


def fresh() -> Sent:
    return kind_of(cast(Sender, Desk()))()


def test_a_write_ends_with_what_it_was_told() -> None:
    sent = fresh()
    assert not sent.done()
    sent.told(None, Message(17))
    assert sent.done() and sent.result() == Done(3, 17)


@pytest.mark.parametrize(("error", "kind"), [("too large", NotDone), ("timed out", Unknown)])
def test_only_a_certain_failure_is_not_done(error: str, kind: type) -> None:
    sent = fresh()
    sent.told(error, Message(None))
    assert isinstance(sent.result(), kind)


def test_an_answer_without_an_offset_is_not_called_done() -> None:
    sent = fresh()
    sent.told(None, Message(None))
    assert isinstance(sent.result(), Unknown)


def test_waiting_ends_with_its_timeout() -> None:
    with pytest.raises(TimeoutError):
        fresh().result(timeout=0.01)


def test_a_callback_is_called_once_whether_it_came_before_or_after_the_end() -> None:
    sent, calls = fresh(), []
    sent.add_done_callback(lambda one: calls.append(("before", one.result())))
    sent.told(None, Message(1))
    sent.add_done_callback(lambda one: calls.append(("after", one.result())))
    assert calls == [("before", Done(3, 1)), ("after", Done(3, 1))]


def test_a_callback_that_raises_does_not_keep_the_next_from_being_called() -> None:
    sent = fresh()
    calls: list[Sent] = []

    def fails(_: Sent) -> None:
        raise ValueError("of the caller's own making")

    sent.add_done_callback(fails)
    sent.add_done_callback(calls.append)
    sent.told(None, Message(1))
    assert calls == [sent]


def test_who_waits_is_woken_by_the_end() -> None:
    sent = fresh()
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append(sent.result(timeout=30)))
    thread.start()
    sent.told(None, Message(5))
    with sent.sender.answered:
        sent.sender.answered.notify_all()
    thread.join(30)
    assert got == [Done(3, 5)]


def test_of_a_write_that_nobody_was_told_of_nothing_is_known() -> None:
    sent = fresh()
    assert (sent.partition, sent.offset, sent.more) == (-1, -1, None)
    with pytest.raises(AttributeError):
        _ = sent.partitions  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        sent.note = "of the caller's own"  # type: ignore[attr-defined]


def test_writes_of_two_senders_are_kept_apart() -> None:
    one, other = fresh(), fresh()
    assert one.sender is not other.sender
    assert isinstance(one, Sent) and isinstance(other, Sent)
    assert not hasattr(one, "__dict__")
