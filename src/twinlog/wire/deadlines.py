"""Deadlines: how long a piece of work may still take, on a clock that never goes back.

Every wait of this package ends at one. A piece of work makes one deadline and hands it down, so
that its parts share the time instead of each having the whole of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]  # seconds, monotonic


class Deadline:
    """A moment after which nobody waits any more."""

    def __init__(self, timeout_s: float, clock: Clock = time.monotonic) -> None:
        self.timeout_s = timeout_s
        self._clock = clock
        self._end = clock() + timeout_s

    def remaining_s(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self._end - self._clock())

    @property
    def passed(self) -> bool:
        """True once no time is left."""
        return self.remaining_s() <= 0.0
