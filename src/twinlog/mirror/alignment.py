"""The way up to where the active's log begins, for a twin that is not there yet. Pure.

A short way is filled like any gap. A long one goes by batches of a million empty records each;
they are as old as can be, so that the first real record begins a segment of its own, and are
deleted as soon as the standby's log start follows the active's.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinlog.mirror.steps import Copy, Fill, Step
from twinlog.mirror.twin import Twin
from twinlog.wire.recode import MOST_NULLS, null_batch

SHORT = 20_000
ENOUGH_BYTES = 4 << 20
OLD_MS = 0


def piece(twin: Twin, end: int, *, compacted: bool) -> Iterator[Step]:
    """The next steps towards `end`, as many as may wait in memory."""
    first = twin.planned
    # A compacted topic takes no record without a key, and would show one with a key to its readers.
    if end - first <= SHORT or compacted:
        yield Fill(first, end - first)
        return
    room = ENOUGH_BYTES - twin.queued_bytes
    while first < end and room > 0:
        count = min(MOST_NULLS, end - first)
        batch = memoryview(null_batch(count, OLD_MS))
        yield Copy(batch, first, count, OLD_MS, None)
        first += count
        room -= len(batch)
