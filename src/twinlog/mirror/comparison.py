"""The logs of one partition, compared as they are read. Pure.

`verify` feeds it what it fetched of both sides, in any order and in pieces of any size. Whole batches
are compared first: the same place, count and times and the same bytes mean the same records, packed
or not. Where batches differ they are unpacked and records are compared, because batches are only
packaging. Everything below `position` has been compared; what only one side has brought yet waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from twinlog.mirror.compare import Seen, first_difference, seen
from twinlog.mirror.missing import Missing, Side
from twinlog.mirror.outline import NOTHING, outline
from twinlog.mirror.visibility import judged
from twinlog.wire.batches import (
    CODEC_BITS,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    Batch,
    Header,
    records_section,
)

MOST_DIFFERENCES = 10  # of one partition: by then it is clear that it differs
_MATTERS = CODEC_BITS | LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT  # how the rest of a batch is read


class Found(NamedTuple):
    """A difference: where, what, and each side's record in a few words."""

    offset: int
    what: str
    active: str
    standby: str


class _Log:
    """What was read of one side and not compared yet."""

    def __init__(self, position: int) -> None:
        self.read_to = position  # all below was read
        self.unpacked_to = position  # all below is in `records`, or was compared
        self.batches: deque[Batch] = deque()
        self.records: dict[int, Seen] = {}
        self.waiting_bytes = 0
        self.taken_bytes = 0

    def pop(self) -> Batch:
        """The next batch, which is then no longer waiting."""
        batch = self.batches.popleft()
        self.waiting_bytes -= len(batch.view)
        self.taken_bytes += len(batch.view)
        self.unpacked_to = batch.header.next_offset
        return batch

    def unpack(self) -> None:
        """Take the next batch apart; where none is left, nothing stands up to where was read."""
        if self.batches:
            self.records.update(seen(self.pop()))
        else:
            self.unpacked_to = self.read_to

    def cut(self, first: int, end: int) -> dict[int, Seen]:
        """Take the records of a stretch."""
        below = {offset: record for offset, record in self.records.items() if first <= offset < end}
        self.records = {offset: record for offset, record in self.records.items() if offset >= end}
        return below


class Comparison:
    """One partition from an offset to another; with `missing`, of a compacted topic."""

    def __init__(self, first: int, end: int, missing: Missing | None = None) -> None:
        self.first = first
        self.end = end
        self.position = first
        self.offsets = 0
        self.records = 0  # at the active, as is the next
        self.bytes = 0
        self.found: list[Found] = []
        self.missing = missing
        self._logs = {side: _Log(first) for side in Side}

    @property
    def is_over(self) -> bool:
        """True when all was compared, or enough is known."""
        return self.position >= self.end or len(self.found) >= MOST_DIFFERENCES

    @property
    def equal_to(self) -> int:
        """Below this offset the logs are known to be equal; a later comparison may begin here."""
        doubtful = [found.offset for found in self.found]
        if self.missing is not None and (first := self.missing.first_offset) is not None:
            doubtful.append(first)
        return min([self.position, *doubtful])

    def next_offset(self, side: Side) -> int:
        """From where on this side is to be read."""
        return self._logs[side].read_to

    def has_all(self, side: Side) -> bool:
        """True when nothing more is needed of this side."""
        return self._logs[side].read_to >= self.end

    def waiting_bytes(self, side: Side) -> int:
        """What was read of this side and waits for the other one."""
        return self._logs[side].waiting_bytes

    def offer(self, side: Side, records: memoryview, aborted: Sequence[tuple[int, int]]) -> bool:
        """Take what a fetch from `next_offset` brought; False if that was nothing new."""
        log = self._logs[side]
        before = log.read_to
        for batch, shown in judged(records, aborted):
            if batch.header.next_offset <= log.read_to:
                continue  # a fetch begins with the batch that its offset falls into
            log.read_to = batch.header.next_offset
            if shown and batch.header.base_offset < self.end:
                log.batches.append(batch)
                log.waiting_bytes += len(batch.view)
        return log.read_to > before

    def begin_at(self, offset: int) -> None:
        """Drop what waits, and go on here or behind it: a connection broke, or a log's start has moved."""
        self.position = max(self.position, offset)
        self._logs = {side: _Log(self.position) for side in Side}

    def advance(self) -> int:
        """Compare as far as both sides were read; gives how many offsets that were."""
        before = self.position
        while not self.is_over and all(log.read_to > self.position for log in self._logs.values()):
            if not self._take_equal_batches():
                self._take_records()
        active = self._logs[Side.ACTIVE]
        self.bytes += active.taken_bytes
        active.taken_bytes = 0
        self.offsets += self.position - before
        return self.position - before

    def settle(self) -> None:
        """Call what is still missing without an explanation a difference; for the end."""
        if self.missing is None:
            return
        room = MOST_DIFFERENCES - len(self.found)
        for side, offset, there in self.missing.unexplained()[:room]:
            what = f"the {side.value} lacks a record and has no newer one of its key"
            active, standby = (NOTHING, there) if side is Side.ACTIVE else (there, NOTHING)
            self.found.append(Found(offset, what, active, standby))

    # Batches

    def _take_equal_batches(self) -> bool:
        active, standby = self._logs[Side.ACTIVE], self._logs[Side.STANDBY]
        if active.records or standby.records or not active.batches or not standby.batches:
            return False
        first, second = active.batches[0], standby.batches[0]
        if not _same(first, second):
            return False
        active.pop()
        standby.pop()
        if self.missing:
            for _, record in seen(first):
                for side in Side:
                    self.missing.holds(side, record)
        self.records += first.header.record_count
        self.position = min(self.end, first.header.next_offset)
        return True

    # Records

    def _take_records(self) -> None:
        for log in self._logs.values():
            if log.unpacked_to <= self.position:
                log.unpack()
        end = min(self.end, *(log.unpacked_to for log in self._logs.values()))
        active, standby = (self._logs[side].cut(self.position, end) for side in Side)
        self.position = max(self.position, end)
        self.records += len(active)
        if active != standby or self.missing:
            if self.missing is not None:
                self._explain(self.missing, active, standby)
            self._differ(active, standby)

    def _explain(self, missing: Missing, active: dict[int, Seen], standby: dict[int, Seen]) -> None:
        records = {Side.ACTIVE: active, Side.STANDBY: standby}
        for offset in sorted(active.keys() | standby.keys()):
            for side in Side:
                if (record := records[side].get(offset)) is not None:
                    missing.holds(side, record)
                else:
                    missing.lacks(side, offset, records[side.other][offset])

    def _differ(self, active: dict[int, Seen], standby: dict[int, Seen]) -> None:
        compacted = self.missing is not None
        while len(self.found) < MOST_DIFFERENCES:
            difference = first_difference(active, standby, compacted=compacted)
            if difference is None:
                return
            offset, what = difference
            here, there = active.pop(offset, None), standby.pop(offset, None)
            self.found.append(Found(offset, what, outline(here), outline(there)))


def _same(first: Batch, second: Batch) -> bool:
    """True if both hold the same records, without looking at any."""
    return (
        _shape(first.header) == _shape(second.header)
        # As bytes, because comparing views goes element by element and is ten times as slow.
        and bytes(records_section(first.view)) == bytes(records_section(second.view))
    )


def _shape(header: Header) -> tuple[int, ...]:
    return (
        header.base_offset,
        header.last_offset_delta,
        header.record_count,
        header.base_timestamp_ms,
        header.max_timestamp_ms,
        header.attributes & _MATTERS,
    )
