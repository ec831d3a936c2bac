"""One write under way, as the caller holds it: it ends with an outcome, and is used like a Future.

A Producer makes one for each record, and has a kind of its own for that (`kind_of`): who sends is the same
for all of its writes, and a field that nobody has set yet reads as nothing known, so a new one is an empty
object and no more. A constructor of our own would cost as much as all else that a record costs here. With
acks="all" it ends when the driver has told where the record is, and its outcome is made when it is asked
for: most programs send a million records and look at a few, and an object less for each is one less for the
garbage collector to look at. What few writes need (callbacks, an end that is not Done) is kept apart. All
writes of a producer wait at one place, because a lock for each would cost more than the record. Callbacks
run in the producer's threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from twinlog.client.outcomes import Done, NotDone, Outcome, Unknown
from twinlog.wire.driver import LOG, Sender


class _More:
    """What few writes need."""

    __slots__ = ("callbacks", "outcome")

    def __init__(self) -> None:
        self.callbacks: list[Callable[[Sent], None]] = []
        self.outcome: Outcome | None = None


class Sent:
    """A write; `result` waits for its outcome."""

    __slots__ = ("more", "offset", "partition")

    sender: ClassVar[Sender]
    partition: int
    offset: int  # -1, or what the driver told; set after the partition: whoever sees it sees both
    more: _More | None

    if not TYPE_CHECKING:  # else any name would pass for a field

        def __getattr__(self, name: str) -> Any:
            """What is not known yet; only called for fields that nobody has set."""
            try:
                return _UNKNOWN[name]
            except KeyError:
                raise AttributeError(f"a write has no '{name}'") from None

    def done(self) -> bool:
        """True if it has ended."""
        return self.offset >= 0 or (self.more is not None and self.more.outcome is not None)

    def result(self, timeout: float | None = None) -> Outcome:
        """Its outcome; waits for it, and raises TimeoutError after so many seconds."""
        if not self.done():
            sender = self.sender
            with sender.answered:
                sender.waiters += 1
                sender.wanted.set()
                try:
                    has_ended = sender.answered.wait_for(self.done, timeout)
                finally:
                    sender.waiters -= 1
            if not has_ended:
                raise TimeoutError(f"the write has not ended after {timeout} s")
        if self.offset >= 0:
            return Done(self.partition, self.offset)
        assert self.more is not None and self.more.outcome is not None
        return self.more.outcome

    def add_done_callback(self, callback: Callable[[Sent], None]) -> None:
        """Call a function with this write when it has ended, at once if it has."""
        with self.sender.answered:
            self.sender.has_listeners = True
            if self.more is None:
                self.more = _More()
            self.more.callbacks.append(callback)
        if self.done():  # perhaps before it had callbacks
            self._call(self.more)

    def told(self, error: Any, message: Any) -> None:
        """What librdkafka says of the record."""
        offset = message.offset() if error is None else None
        if offset is None:
            self.end(failure(self.sender, error, message))
        else:
            self.partition = message.partition()
            self.offset = offset
            # Asked in this order: a field that nobody has set is slow to read, and most writes have no more.
            if self.sender.has_listeners and self.more is not None:
                self._call(self.more)

    __call__ = told  # given to the driver as it is: a bound method would be one more object for each record

    def end(self, outcome: Outcome) -> None:
        """It has ended otherwise than by an offset that the driver told."""
        with self.sender.answered:
            if self.more is None:
                self.more = _More()
            self.more.outcome = outcome
        self._call(self.more)

    def _call(self, more: _More) -> None:
        while more.callbacks:
            try:
                callback = more.callbacks.pop(0)
            except IndexError:  # another thread has called it
                return
            try:
                callback(self)
            except Exception:  # as a Future does: a thread that others rely on must not end by it
                LOG.exception("a callback of a write failed")


_UNKNOWN: Mapping[str, Any] = {"offset": -1, "partition": -1, "more": None}


def kind_of(sender: Sender) -> type[Sent]:
    """The writes of one sender."""
    return type("Sent", (Sent,), {"__slots__": (), "__module__": Sent.__module__, "sender": sender})


def failure(sender: Sender, error: Any, message: Any) -> NotDone | Unknown:
    """The outcome of a record that librdkafka has given up, or of which it says no offset."""
    failed = sender.failure(error, message)
    kind = NotDone if failed.is_certain else Unknown
    return kind(failed.reason, failed.hint)
