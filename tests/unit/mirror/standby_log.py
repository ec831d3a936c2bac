"""A partition of the standby as a broker keeps it: its log, its producers, its replicas. No I/O.

The rules are those of Kafka's ProducerAppendInfo and ProducerStateManager. Of a producer the broker
remembers the epoch and the last five batches: one of them that comes again is answered with the
offset that it had, any other must be the next in sequence; a higher epoch begins at 0, a lower one
is refused; of a producer it does not know it takes anything. It forgets producers by the time in
their last record. A leader that follows another has all that was acknowledged, and maybe more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.unit.mirror.active_log import NOW_MS, YOUNG_MS
from twinlog.mirror.compare import Seen, seen
from twinlog.wire.batches import Header, next_sequence, read
from twinlog.wire.producers import ProducerState

OK, NOT_LEADER, OUT_OF_ORDER, INVALID_EPOCH = 0, 6, 45, 47
REMEMBERED = 5


class Known(NamedTuple):
    """A batch that the broker remembers."""

    first_sequence: int
    last_sequence: int
    base_offset: int


@dataclass
class Producer:
    """What the broker remembers of a producer."""

    epoch: int
    timestamp_ms: int
    batches: deque[Known] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def last_sequence(self) -> int:
        """The last sequence, or -1."""
        return self.batches[-1].last_sequence if self.batches else -1


class Written(NamedTuple):
    """A batch or a marker in the log."""

    first: int
    length: int
    producer_id: int
    epoch: int
    sequence: int  # -1 of a marker
    timestamp_ms: int


class StandbyLog:
    """One partition; `look` is told of everything that is appended: an offset, and what readers see there."""

    def __init__(self, look: Callable[[int, Seen | None], None]) -> None:
        self.leader = 0
        self.log: list[Seen | None] = []
        self.high_watermark = 0
        self._look = look
        self._written: list[Written] = []
        self._producers: dict[int, Producer] = {}

    @property
    def end(self) -> int:
        """The leader's log end."""
        return len(self.log)

    def append(self, view: memoryview) -> tuple[int, int]:
        """Append a batch: a code and its base offset."""
        header = read(view).header
        code, known = self._judge(header)
        if known is not None:
            return OK, known.base_offset
        if code != OK:
            return code, -1
        first = self.end
        # Batches come without a position: their records are numbered from 0.
        self._write(
            [record for _, record in seen(read(view))],
            Written(
                first,
                header.record_count,
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.max_timestamp_ms,
            ),
        )
        return OK, first

    def mark(self, producer_id: int, epoch: int) -> int:
        """Append an abort marker."""
        producer = self._producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            return INVALID_EPOCH
        self._write([None], Written(self.end, 1, producer_id, epoch, -1, NOW_MS))
        return OK

    def describe(self) -> dict[int, ProducerState]:
        """What DescribeProducers tells."""
        return {
            producer_id: ProducerState(one.epoch, one.last_sequence, one.timestamp_ms, -1, -1)
            for producer_id, one in self._producers.items()
        }

    def replicate(self) -> None:
        """Let the other replicas have all of it."""
        self.high_watermark = self.end

    def forget(self, which: Callable[[int], bool]) -> None:
        """Forget producers whose last record is old, those that are meant."""
        for producer_id, producer in list(self._producers.items()):
            if producer.timestamp_ms < YOUNG_MS and which(producer_id):
                del self._producers[producer_id]

    def change_leader(self, keep: int) -> None:
        """Another replica leads, and has so much more than what is replicated for sure."""
        self.leader += 1
        end = min(self.end, self.high_watermark + keep)
        # A batch is replicated whole.
        self._written = [one for one in self._written if one.first + one.length <= end]
        del self.log[sum(one.length for one in self._written) :]
        self._producers.clear()
        for one in self._written:
            self._remember(one)

    def _judge(self, header: Header) -> tuple[int, Known | None]:
        producer = self._producers.get(header.producer_id)
        if header.producer_id < 0 or producer is None:
            return OK, None
        if header.producer_epoch < producer.epoch:
            return INVALID_EPOCH, None
        first = header.base_sequence
        if header.producer_epoch > producer.epoch:
            return (OK if first == 0 else OUT_OF_ORDER), None
        last = next_sequence(first, header.record_count - 1)
        for known in producer.batches:
            if (known.first_sequence, known.last_sequence) == (first, last):
                return OK, known
        in_order = first == (next_sequence(producer.last_sequence, 1) if producer.batches else 0)
        return (OK if in_order else OUT_OF_ORDER), None

    def _write(self, content: list[Seen] | list[None], written: Written) -> None:
        for record in content:
            self._look(self.end, record)
            self.log.append(record)
        self._written.append(written)
        self._remember(written)

    def _remember(self, one: Written) -> None:
        if one.producer_id < 0:
            return
        producer = self._producers.get(one.producer_id)
        if producer is None or producer.epoch != one.epoch:
            producer = self._producers[one.producer_id] = Producer(one.epoch, one.timestamp_ms)
        producer.timestamp_ms = one.timestamp_ms
        if one.sequence >= 0:
            last = next_sequence(one.sequence, one.length - 1)
            producer.batches.append(Known(one.sequence, last, one.first))
