"""One write under way, as the caller holds it: it ends with an outcome, and is used like a Future.

A Producer makes one for each record. With acks="all" it ends when the driver has told it, and its
outcome is made when it is asked for: most programs send a million records and look at a few. With
acks="twin" it is kept open until the watch ends it. All writes of a producer wait at one place, because
a lock for each would cost more than the record. Callbacks run in the producer's threads.
"""

from __future__ import annotations

from collections.abc import Callable

from twinlog.client.outcomes import Done, NotDone, Outcome, Unknown
from twinlog.wire.driver import LOG, Receipt, Sender
from twinlog.wire.roles import Standing


class Sent(Receipt):
    """A write; `result` waits for its outcome."""

    __slots__ = ("_callbacks", "_outcome", "standing")

    def __init__(self, sender: Sender) -> None:
        self.sender = sender  # all in one place: a call of the base class costs as much as all of this
        self.partition = -1
        self.offset = -1
        self.failed = None
        self.then = None
        self.standing: Standing | None = None  # for acks=twin: what the standby was before it was sent
        self._outcome: Outcome | None = None
        self._callbacks: list[Callable[[Sent], None]] | None = None

    def done(self) -> bool:
        """True if it has ended."""
        return self._outcome is not None or (
            self.standing is None and (self.offset >= 0 or self.failed is not None)
        )

    def result(self, timeout: float | None = None) -> Outcome:
        """Its outcome; waits for it, and raises TimeoutError after so many seconds."""
        if not self.done():
            answered = self.sender.answered
            with answered:
                if not answered.wait_for(self.done, timeout):
                    raise TimeoutError(f"the write has not ended after {timeout} s")
        if self._outcome is None:
            self._outcome = self._told_outcome()
        return self._outcome

    def add_done_callback(self, callback: Callable[[Sent], None]) -> None:
        """Call a function with this write when it has ended, at once if it has."""
        with self.sender.answered:
            self.sender.has_listeners = True
            if self._callbacks is None:
                self._callbacks = []
                if self.standing is None:
                    self.then = self._call
            self._callbacks.append(callback)
        if self.done():  # perhaps before `then` was set
            self._call()

    def end(self, outcome: Outcome) -> None:
        """It has ended otherwise than by what the driver told."""
        self._outcome = outcome
        self._call()

    def _call(self) -> None:
        self.then = None  # it refers to this write, and may refer to much more
        while self._callbacks:
            try:
                callback = self._callbacks.pop(0)
            except IndexError:  # another thread has called it
                return
            try:
                callback(self)
            except Exception:  # as a Future does: a thread that others rely on must not end by it
                LOG.exception("a callback of a write failed")

    def _told_outcome(self) -> Outcome:
        failed = self.failed
        if failed is None:
            return Done(self.partition, self.offset)
        kind = NotDone if failed.is_certain else Unknown
        return kind(failed.reason, failed.hint)

    @property
    def failure(self) -> Outcome | None:
        """How it ended at the active, if it did not succeed there."""
        return self._told_outcome() if self.failed is not None else None
