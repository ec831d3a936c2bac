"""Which batches of a chunk a reader is shown. Pure.

A chunk is what one read-committed fetch brought for one partition: batches, and the aborted
transactions that reach into it. Markers are never shown, nor is what an aborted transaction wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinlog.wire.batches import Batch, ControlType, control_type, split


def judged(records: memoryview, aborted: Sequence[tuple[int, int]]) -> Iterator[tuple[Batch, bool]]:
    """Every batch with whether it is shown; an aborted transaction is (first offset, producer id)."""
    waiting = sorted(aborted)
    cancelled: set[int] = set()  # producers inside an aborted transaction
    for batch in split(records):
        header = batch.header
        while waiting and waiting[0][0] <= header.last_offset:
            cancelled.add(waiting.pop(0)[1])
        if header.is_control:
            if control_type(batch) is ControlType.ABORT:
                cancelled.discard(header.producer_id)
            yield batch, False
        else:
            yield batch, not (header.is_transactional and header.producer_id in cancelled)
