"""Threads that do something again and again, from `with` to its end: the base of whoever looks after sites.

The gate's standings, the manager's canaries and the mirror's chores are such. Each thread is a function
that takes its `turns`. Its end is waited for, so that nothing is done any more behind it, but not for ever:
a thread that hangs keeps no program from ending.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Self

END_TIMEOUT_S = 10.0


class Repeating:
    """Some threads by name, begun and ended together."""

    def __init__(
        self, threads: Mapping[str, Callable[[], None]], *, end_timeout_s: float = END_TIMEOUT_S
    ) -> None:
        self._ended = threading.Event()
        self._end_timeout_s = end_timeout_s
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True) for name, target in threads.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        end = time.monotonic() + self._end_timeout_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def turns(self, every_s: float) -> Iterator[None]:
        """A turn every so many seconds, counted from the beginning of the one before, until the end."""
        while not self._ended.is_set():
            begun = time.monotonic()
            yield
            self._ended.wait(max(0.0, begun + every_s - time.monotonic()))
