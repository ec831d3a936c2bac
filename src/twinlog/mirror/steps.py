"""From what was fetched to what is to be done: copy this batch, fill that gap. Pure.

A chunk is what one fetch brought for one partition, read committed. Every offset from the twin's
position to the chunk's end is covered by exactly one step, in order: a batch that consumers may
see is copied, and offsets that hold nothing to see (markers, aborted transactions, what the
cleaner took) are a gap. What cannot be copied as it stands is encoded anew, run by run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from twinlog.mirror.visibility import judged
from twinlog.wire.batches import Batch, UnreadableBatch, checksum_is_right
from twinlog.wire.recode import runs


class Chain(NamedTuple):
    """A producer in one epoch: the broker takes its batches in the order of their sequence only."""

    producer_id: int
    epoch: int


class Copy(NamedTuple):
    """A batch to append; with a chain it keeps its producer's identity, without one it gets the link's."""

    view: memoryview
    first: int
    length: int
    timestamp_ms: int  # the newest in the batch: the broker forgets producers by it
    chain: Chain | None

    @property
    def end(self) -> int:
        """The offset behind the batch."""
        return self.first + self.length

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return len(self.view)


class Fill(NamedTuple):
    """Offsets that hold nothing for any reader."""

    first: int
    length: int

    @property
    def end(self) -> int:
        """The offset behind the gap."""
        return self.first + self.length

    @property
    def bytes(self) -> int:
        """A gap takes none."""
        return 0


Step = Copy | Fill
MOST_FILLED = 2000  # markers in one request: what takes a broker about a tenth of a second


def plan(
    records: memoryview, aborted: Sequence[tuple[int, int]], position: int, *, keep_identity: bool
) -> Iterator[Step]:
    """The steps from `position` to the end of the chunk; batches are stamped later, in place."""
    gap_from = end = position
    for batch, shown in judged(records, aborted):
        if batch.header.next_offset <= position:
            continue  # a fetch begins with the batch that its position falls into
        end = batch.header.next_offset
        for copy in _copies(batch, position, keep_identity) if shown else ():
            yield from _fills(gap_from, copy.first)
            yield copy
            gap_from = copy.end
    yield from _fills(gap_from, end)


def _fills(first: int, end: int) -> Iterator[Fill]:
    for start in range(first, end, MOST_FILLED):
        yield Fill(start, min(MOST_FILLED, end - start))


def _copies(batch: Batch, position: int, keep_identity: bool) -> Iterator[Copy]:
    header = batch.header
    chain = None
    if keep_identity and header.is_idempotent and not header.is_transactional:
        chain = Chain(header.producer_id, header.producer_epoch)
    whole = not header.is_thinned and header.base_offset >= position
    if whole and not header.is_log_append_time and not header.has_delete_horizon:
        # A batch that gets the link's name gets a new checksum with it, which must not hide damage.
        if not checksum_is_right(batch):
            raise UnreadableBatch(f"the batch at offset {header.base_offset} is damaged")
        yield Copy(batch.view, header.base_offset, header.record_count, header.max_timestamp_ms, chain)
        return
    # Times of the log's own are kept by encoding anew; the records and their sequence are the same.
    # A part of a batch has no sequence of its own, so it goes under the link's name.
    for first, encoded, count in runs(batch, position):
        yield Copy(memoryview(encoded), first, count, header.max_timestamp_ms, chain if whole else None)
