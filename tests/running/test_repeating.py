"""Threads that take turns until the end."""

from __future__ import annotations

import threading
import time

from twinlog.repeating import Repeating

WAIT_S = 10.0
LONG_S = 600.0


class Counting(Repeating):
    """Two threads, one with a short rhythm and one with a long one."""

    def __init__(self, *, hangs: threading.Event | None = None, end_timeout_s: float = WAIT_S) -> None:
        self.counts = {"often": 0, "seldom": 0}
        self.enough = threading.Event()
        self.hangs = hangs
        threads = {"often": self._often, "seldom": self._seldom}
        super().__init__(threads, end_timeout_s=end_timeout_s)

    def _often(self) -> None:
        for _ in self.turns(0.01):
            self.counts["often"] += 1
            if self.counts["often"] == 3:
                self.enough.set()

    def _seldom(self) -> None:
        for _ in self.turns(LONG_S):
            self.counts["seldom"] += 1
            if self.hangs is not None:
                self.hangs.wait(LONG_S)


def test_each_thread_keeps_its_own_rhythm_and_none_goes_on_after_the_end() -> None:
    with Counting() as counting:
        assert counting.enough.wait(WAIT_S)
    after = dict(counting.counts)
    assert after["seldom"] == 1
    assert not {"often", "seldom"} & {thread.name for thread in threading.enumerate()}
    assert counting.counts == after


def test_thread_that_hangs_is_waited_for_only_so_long() -> None:
    released = threading.Event()
    begun = time.monotonic()
    with Counting(hangs=released, end_timeout_s=0.2) as counting:
        assert counting.enough.wait(WAIT_S)
    assert time.monotonic() - begun < WAIT_S
    released.set()
