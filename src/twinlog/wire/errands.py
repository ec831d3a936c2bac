"""Calls of a driver that take no time limit, made in a thread of their own so that the caller has one.

`Receiver` commits with it: librdkafka waits for a site that is gone as long as a group's session lasts.
One call at a time, in the order in which they were asked for; one that the caller has stopped waiting for
goes on, and the next waits for it, because an older commit must not arrive behind a newer one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Answer = TypeVar("Answer")


class Errands:
    """Runs calls one at a time; belongs to one thread."""

    def __init__(self) -> None:
        self._under_way: threading.Thread | None = None

    def run(self, call: Callable[[], Answer], timeout_s: float) -> Answer:
        """What the call returns or raises; TimeoutError when that is not known in time."""
        deadline = time.monotonic() + timeout_s
        if not self._is_idle(timeout_s):
            raise TimeoutError("the one before has not ended")
        future: Future[Answer] = Future()
        self._begin(lambda: _do(call, future))
        return future.result(max(0.0, deadline - time.monotonic()))

    def last(self, call: Callable[[], object]) -> None:
        """Make the last call: now, or, if one is still under way, when that has ended and in its stead."""
        before = self._under_way
        if before is None or self._is_idle(0.0):
            call()
        else:
            self._begin(lambda: _do_after(before, call))

    def _is_idle(self, timeout_s: float) -> bool:
        if self._under_way is None:
            return True
        self._under_way.join(timeout_s)
        return not self._under_way.is_alive()

    def _begin(self, work: Callable[[], object]) -> None:
        # A process that ends does not wait for it.
        self._under_way = threading.Thread(target=work, name="twinlog-errand", daemon=True)
        self._under_way.start()


def _do(call: Callable[[], Answer], future: Future[Answer]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:  # whatever it is belongs to who asked
        future.set_exception(error)


def _do_after(before: threading.Thread, call: Callable[[], object]) -> None:
    before.join()
    call()
