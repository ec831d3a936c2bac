"""A limit on bytes per second, shared by the threads of a holder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BURST_S = 0.1  # how much of a second's share may go at once


class Pace:
    """Lets bytes through at a rate; without a rate, all at once."""

    def __init__(
        self,
        bytes_per_s: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self._bytes_per_s = bytes_per_s
        self._clock = clock
        self._wait = wait if wait is not None else threading.Event().wait
        self._lock = threading.Lock()
        self._paid_until = clock()

    def spend(self, count: int) -> None:
        """Wait until so many bytes have been paid for."""
        if self._bytes_per_s is None:
            return
        with self._lock:
            now = self._clock()
            self._paid_until = max(self._paid_until, now - BURST_S) + count / self._bytes_per_s
            ahead_s = self._paid_until - now
        if ahead_s > 0:
            self._wait(ahead_s)
