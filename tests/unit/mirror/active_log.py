"""A made-up log of the active: real batches of all kinds of producers, and what readers see of it.

Idempotent producers with epochs, plain ones, transactions that interleave, end and are aborted,
records old and young, batches that the cleaner thinned or took. It is read the way the mirror
reads: bytes from a position on, and the aborted transactions that reach into them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from tests.unit.mirror.choices import Choices
from tests.unit.wire import samples
from twinlog.mirror.compare import Seen
from twinlog.wire.batches import CONTROL_BIT, TRANSACTIONAL_BIT, Batch, ControlType, Header
from twinlog.wire.records import Record

NOW_MS = 1_800_000_000_000
YOUNG_MS = NOW_MS - 1_000
OLD_MS = NOW_MS - 30 * 24 * 3600 * 1000
IDEMPOTENT, TRANSACTIONAL, NOBODY = (101, 102), (201, 202), -1


@dataclass
class Producer:
    """A producer as it knows itself."""

    producer_id: int
    epoch: int = 0
    sequence: int = 0
    sent: list[tuple[int, int]] = field(default_factory=list)  # sequence and count, in the present epoch


@dataclass
class Stored:
    """A batch in the log; records that the cleaner took are no longer in it."""

    header: Header
    records: dict[int, Record]

    def take_out(self, offsets: Collection[int]) -> None:
        """What the cleaner does; markers stay."""
        if not self.header.is_control:
            self.records = {o: record for o, record in self.records.items() if o not in offsets}
            self.__dict__.pop("batch", None)

    @cached_property
    def batch(self) -> Batch:
        """The batch as it lies in the log."""
        content = [samples.placed([record], offset)[0] for offset, record in sorted(self.records.items())]
        return samples.lying(content, self.header)


class ActiveLog:
    """The log of one partition at the active."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.stored: list[Stored] = []
        self.aborted: list[tuple[int, int, int]] = []  # first offset, producer, offset of the marker
        self.seen: dict[int, Seen] = {}  # what readers were ever shown
        self._open: dict[int, int] = {}  # the first offset of a producer's transaction

    # Writing

    def write(self, count: int, timestamp_ms: int, producer: Producer | None = None) -> None:
        """Append a batch; of a transactional producer it is part of a transaction."""
        in_transaction = producer is not None and producer.producer_id in TRANSACTIONAL
        records = {
            self.end + delta: Record(b"%d" % (self.end + delta), timestamp_ms, key=b"k")
            for delta in range(count)
        }
        header = Header(
            base_offset=self.end,
            attributes=TRANSACTIONAL_BIT if in_transaction else 0,
            last_offset_delta=count - 1,
            base_timestamp_ms=timestamp_ms,
            max_timestamp_ms=timestamp_ms,
            producer_id=producer.producer_id if producer else NOBODY,
            producer_epoch=producer.epoch if producer else -1,
            base_sequence=producer.sequence if producer else -1,
        )
        if producer is not None:
            if in_transaction:
                self._open.setdefault(producer.producer_id, self.end)
            producer.sent.append((producer.sequence, count))
            producer.sequence += count
        self._store(Stored(header, records))

    def end_transaction(self, producer_id: int, kind: ControlType) -> None:
        """Append the marker that ends a producer's transaction; there may be none."""
        header = Header(
            base_offset=self.end,
            attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
            base_timestamp_ms=NOW_MS,
            max_timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=0,
        )
        key = b"\0\0" + int(kind).to_bytes(2, "big")
        first = self._open.pop(producer_id, None)
        if kind is ControlType.ABORT and first is not None:
            self.aborted.append((first, producer_id, self.end))
        self._store(Stored(header, {self.end: Record(b"\0" * 6, NOW_MS, key=key)}))

    def finish(self) -> None:
        """End all transactions, and remember what readers see from now on."""
        for producer_id in sorted(self._open):
            self.end_transaction(producer_id, ControlType.ABORT)
        for stored in self.stored:
            if stored.header.is_control or self._is_aborted(stored.header):
                continue
            for offset, record in stored.records.items():
                self.seen[offset] = Seen(record.timestamp_ms, samples.rest_of(record))

    def clean(self, offsets: Iterable[int]) -> None:
        """What the cleaner does: take records out, and batches that hold none any more."""
        gone = set(offsets)
        for stored in self.stored:
            if not gone.isdisjoint(stored.records):
                stored.take_out(gone)
        last = self.stored[-1:]  # the end of the log is never cleaned
        self.stored = [one for one in self.stored if one.records or one in last]

    # Reading

    def read(self, position: int, most: int) -> tuple[memoryview, list[tuple[int, int]]]:
        """Batches from a position on, and the aborted transactions that reach into them."""
        found = [one for one in self.stored if one.header.next_offset > position][:most]
        end = found[-1].header.next_offset if found else position
        aborted = [
            (first, producer_id)
            for first, producer_id, marker in self.aborted
            if marker >= position and first < end
        ]
        return memoryview(bytearray(b"".join(one.batch.view for one in found))), aborted

    def shows(self, offset: int) -> bool:
        """True if a reader finds a record there now."""
        return offset in self.seen and any(offset in one.records for one in self.stored)

    def _store(self, stored: Stored) -> None:
        self.stored.append(stored)
        self.end = stored.header.next_offset

    def _is_aborted(self, header: Header) -> bool:
        return header.is_transactional and any(
            producer_id == header.producer_id and first <= header.base_offset < marker
            for first, producer_id, marker in self.aborted
        )


def made_up(choices: Choices, *, batches: int, old: bool, cleaned: bool) -> ActiveLog:
    """A log of so many batches."""
    log = ActiveLog()
    producers = {one: Producer(one) for one in (*IDEMPOTENT, *TRANSACTIONAL)}
    who = IDEMPOTENT[0]
    for _ in range(batches):
        timestamp_ms = OLD_MS if old and choices.one_in(3) else YOUNG_MS
        count = 1 + choices.below(3)
        if choices.one_in(3):
            who = choices.of((NOBODY, *IDEMPOTENT, *TRANSACTIONAL))
        if who == NOBODY:
            log.write(count, timestamp_ms)
            continue
        producer = producers[who]
        if who in TRANSACTIONAL and choices.one_in(3):
            log.end_transaction(who, choices.of((ControlType.COMMIT, ControlType.ABORT)))
            continue
        _change(choices, producer)
        log.write(count, timestamp_ms, producer)
    log.finish()
    if cleaned:
        log.clean(offset for offset in range(log.end) if choices.one_in(5))
    return log


def _change(choices: Choices, producer: Producer) -> None:
    """Now and then a producer begins a new epoch, or its sequence jumps."""
    what = choices.below(12)
    if what == 11:
        producer.epoch += 1
        producer.sequence = 0
        producer.sent.clear()
    elif what == 10:
        producer.sequence += 2  # a batch in between is nowhere: the active had forgotten the producer
    elif what == 9 and producer.sent:
        # The active had forgotten the producer, and it sent again what it had no answer to.
        producer.sequence = producer.sent[-min(len(producer.sent), 1 + choices.below(4))][0]
