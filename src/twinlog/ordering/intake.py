"""The records that a chain may deal with now: all that came, or those that the standby has too.

With `read: twin` a record waits here until the standby was seen to hold it, so that no block is made of
something that a failover could take back. Reading goes on meanwhile, up to a limit. Belongs to the
chain's thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from twinlog.client.pace import Pace
from twinlog.errors import TwinlogError
from twinlog.wire.tail import Entry

MOST_AT_ONCE = 2000
MOST_HELD_BYTES = 64 * 1024 * 1024

Read = Callable[[int, float], list[Entry]]  # so many records at most, within so many seconds
Covered = Callable[[], int]  # the first offset that the standby lacks


class Intake:
    """One partition's records, each once, in order."""

    def __init__(
        self, first: int, read: Read, wait: Callable[[float], object], covered: Covered | None = None
    ) -> None:
        self.next_offset = first  # behind the last record that came
        self._read_on = read
        self._wait = wait
        self._covered = covered
        self._held: deque[Entry] = deque()
        self._held_bytes = 0
        self._mark = 0
        self._pace = Pace()
        self._pause_s = 0.0
        self.trouble: TwinlogError | None = None  # why the standby does not say what it has

    def take(self, timeout_s: float) -> list[Entry]:
        """Records that may be dealt with, none if there are none in time."""
        if self._covered is None:
            return self._read(timeout_s)
        wait_s = min(timeout_s, self._pause_s) if self._held else timeout_s
        if self._held_bytes < MOST_HELD_BYTES:
            for entry in self._read(wait_s):
                self._held.append(entry)
                self._held_bytes += len(entry[1] or b"")
        else:
            self._wait(wait_s)
        free = self._free()
        if self._held:
            self._ask(self._covered)
            free += self._free()
        return free

    def _read(self, timeout_s: float) -> list[Entry]:
        got = self._read_on(MOST_AT_ONCE, timeout_s)
        if got and got[0][0] < self.next_offset:
            # Reading began again, and what had been fetched before came along.
            got = [entry for entry in got if entry[0] >= self.next_offset]
        if got:
            self.next_offset = got[-1][0] + 1
        return got

    def _free(self) -> list[Entry]:
        free = []
        while self._held and self._held[0][0] < self._mark:
            entry = self._held.popleft()
            self._held_bytes -= len(entry[1] or b"")
            free.append(entry)
        return free

    def _ask(self, covered: Covered) -> None:
        before, began = self._mark, time.monotonic()
        try:
            self._mark = max(before, covered())
            self.trouble = None
        except TwinlogError as error:
            self.trouble = error  # it may come back: what waits goes on waiting
        news = self._held[0][0] < self._mark
        took_s = time.monotonic() - began
        self._pause_s = self._pace.next_pause(
            news=news, trouble=self.trouble is not None, took_s=took_s
        ).most_s
