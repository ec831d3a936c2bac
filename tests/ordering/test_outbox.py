"""Messages on their way to the log: what comes together goes together, and nothing waits for more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from twinlog.ordering.broadcast import TOGETHER, Channel, Outbox
from twinlog.ordering.posting import Tell
from twinlog.ordering.processing import Ready
from twinlog.ordering.support import Unavailable


class Log:
    """A channel that keeps what it is given."""

    def __init__(self, trouble: str = "") -> None:
        self.batches: list[list[bytes]] = []
        self._trouble = trouble

    def order(self, batch: Sequence[tuple[Ready, Tell]]) -> None:
        if self._trouble:
            raise Unavailable(self._trouble)
        self.batches.append([ready.envelope for ready, _ in batch])
        for _, tell in batch:
            tell(None)


class Loop:
    """Keeps what is to be called in the next turn."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def turn(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


def _add(outbox: Outbox, log: Log, name: bytes, ends: list[object]) -> None:
    outbox.add(cast(Channel, log), Ready(name, 0), ends.append)


def test_messages_of_one_turn_go_in_one_call_and_in_order() -> None:
    loop, one, other, ends = Loop(), Log(), Log(), list[object]()
    outbox = Outbox(loop.calls.append)
    for name in (b"1", b"2", b"3"):
        _add(outbox, one, name, ends)
    _add(outbox, other, b"x", ends)
    assert one.batches == []
    loop.turn()
    assert (one.batches, other.batches) == ([[b"1", b"2", b"3"]], [[b"x"]])
    assert ends == [None] * 4


def test_many_messages_do_not_wait_for_the_end_of_the_turn() -> None:
    loop, log, ends = Loop(), Log(), list[object]()
    outbox = Outbox(loop.calls.append)
    for _ in range(TOGETHER + 1):
        _add(outbox, log, b"x", ends)
    assert [len(batch) for batch in log.batches] == [TOGETHER]
    loop.turn()
    assert [len(batch) for batch in log.batches] == [TOGETHER, 1]
    assert loop.calls == []


def test_channel_that_takes_nothing_fails_all_that_was_to_go() -> None:
    loop, log, ends = Loop(), Log("it has been halted"), list[object]()
    outbox = Outbox(loop.calls.append)
    _add(outbox, log, b"1", ends)
    _add(outbox, log, b"2", ends)
    loop.turn()
    assert [str(end) for end in ends] == ["it has been halted"] * 2
