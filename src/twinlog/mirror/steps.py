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
from twinlog.wire.batches import NO_SEQUENCE, Batch, Header, UnreadableBatch, checksum_is_right
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
    sequence: int = NO_SEQUENCE  # of the first record, in its chain

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
FIRST_LINK_ID = 1 << 62  # no broker gives such an id to a producer: those from here on are the links' own
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
            if gap_from < copy.first:
                yield Fill(gap_from, copy.first - gap_from)
            yield copy
            gap_from = copy.end
    if gap_from < end:
        yield Fill(gap_from, end - gap_from)


def _copies(batch: Batch, position: int, keep_identity: bool) -> Iterator[Copy]:
    header = batch.header
    whole = not header.is_thinned and header.base_offset >= position
    chain, sequence = None, NO_SEQUENCE
    # A part of a batch has no sequence of its own, so it goes under the link's name.
    if keep_identity and whole and _is_somebodys(header):
        chain, sequence = Chain(header.producer_id, header.producer_epoch), header.base_sequence
    newest_ms = header.max_timestamp_ms
    if whole and not header.is_log_append_time and not header.has_delete_horizon:
        # A batch that gets the link's name gets a new checksum with it, which must not hide damage.
        if not checksum_is_right(batch):
            raise UnreadableBatch(f"the batch at offset {header.base_offset} is damaged")
        yield Copy(batch.view, header.base_offset, header.record_count, newest_ms, chain, sequence)
        return
    # Times of the log's own are kept by encoding anew; the records and their sequence are the same.
    for first, encoded, count in runs(batch, position):
        yield Copy(memoryview(encoded), first, count, newest_ms, chain, sequence)


def _is_somebodys(header: Header) -> bool:
    """True if a producer wrote it that may come back, and not a link, when the sites had other roles."""
    return 0 <= header.producer_id < FIRST_LINK_ID and not header.is_transactional
