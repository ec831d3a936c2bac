"""Writes salvaged records to their topic again, each at most once.

For `twinlog salvage apply`. They become ordinary records at the end of the partition that they came
from, with their own time and a header that says where they had been. A batch of them is announced in
the salvage topic, written, and noted as written; the salvage topic may lie at the standby. Whoever finds
an announcement without its note looks for the batch in the topic, by that header (a mirror may have given
it another name), and only if it is not there writes it, under the same name as announced: should the first
one still arrive, the broker takes it for the same. Each site that keeps salvage has a name of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from twinlog.traffic import stock
from twinlog.traffic.salvaged import APPLIED_HEADER, Note, Salvaged, Word, salvage_topic
from twinlog.traffic.shelf import (
    SALVAGE_ID,
    Item,
    Shelf,
    again_until_settled,
    append,
    batches,
    make_batch,
    next_in_chain,
)
from twinlog.wire import configs, offsets
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Kind
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.recode import entries
from twinlog.wire.record_headers import headers

FULL_BYTES, FULL_RECORDS = 512 << 10, 500
Choice = Callable[[Salvaged], bool]


@dataclass(frozen=True)
class Applied:
    """What became of the salvaged records of one partition."""

    topic: str
    partition: int
    applied: int  # in all
    new: int  # of those, by this run
    left: int  # not chosen


def is_committed(one: Salvaged) -> bool:
    """True unless the record was part of a transaction that nobody committed."""
    return not one.is_open


def apply_id(site: str) -> int:
    """The producer id under which what a site keeps is written again."""
    return SALVAGE_ID + 1 + crc32(site.encode())


def apply(
    keeper: tuple[str, Cluster], active: Cluster, topic: str, chosen: Choice = is_committed
) -> list[Applied]:
    """Write the chosen records of a topic, which a site keeps, again, unless they were before."""
    site, kept = keeper
    partitions = stock.partitions_of(kept, topic)
    limit = configs.describe(active, Kind.TOPIC, topic, [stock.LIMIT])[stock.LIMIT].value
    full_bytes = min(FULL_BYTES, int(limit or 0) // 2)  # the other half is for what batches add
    workers = [
        _Worker(kept, active, (topic, number), chosen, apply_id(site), full_bytes)
        for number in range(partitions)
    ]
    return [again_until_settled([kept, active], worker.run) for worker in workers]


@dataclass
class _Worker:
    """One partition; `run` may be called again and again."""

    kept: Cluster  # where its salvage lies
    active: Cluster
    place: TopicPartition
    chosen: Choice
    producer_id: int
    full_bytes: int
    before: int | None = None  # how many were applied when this began

    @property
    def _salvage(self) -> TopicPartition:
        return salvage_topic(self.place[0]), self.place[1]

    def run(self) -> Applied:
        shelf = Shelf(self.kept, self._salvage)
        applied = set(stock.applied_places(self._read(shelf)))
        if self.before is None:
            self.before = len(applied)
        unclear = self._unclear(shelf)
        if unclear is not None:
            self._finish(shelf, unclear)
            applied.update(unclear.places)
        left = 0
        waiting: list[Salvaged] = []
        size_bytes = 0
        for one in self._records(shelf):
            if one.place in applied:
                continue
            if not self.chosen(one):
                left += 1
                continue
            if waiting and (size_bytes + len(one.rest) > self.full_bytes or len(waiting) >= FULL_RECORDS):
                self._write(shelf, waiting)
                waiting, size_bytes = [], 0
            waiting.append(one)
            size_bytes += len(one.rest)
            applied.add(one.place)
        if waiting:
            self._write(shelf, waiting)
        return Applied(*self.place, len(applied), len(applied) - self.before, left)

    def _read(self, shelf: Shelf) -> Iterator[Salvaged | Note]:
        return stock.read(shelf, self._salvage[0], self.kept.where)

    def _records(self, shelf: Shelf) -> Iterator[Salvaged]:
        return (one for one in self._read(shelf) if isinstance(one, Salvaged))

    def _unclear(self, shelf: Shelf) -> Note | None:
        """What was announced and not noted as written."""
        notes = [one for one in self._read(shelf) if isinstance(one, Note)]
        return notes[-1] if notes and notes[-1].word is Word.APPLYING else None

    def _write(self, shelf: Shelf, records: Sequence[Salvaged]) -> None:
        places = tuple(one.place for one in records)
        sequence = next_in_chain(self.active, self.place, self.producer_id)
        end = offsets.log_ends(self.active, [self.place])[self.place]
        note = Note(Word.APPLYING, places, end, sequence)
        shelf.append([note.encoded()])
        self._send(shelf, note, records)

    def _finish(self, shelf: Shelf, note: Note) -> None:
        wanted = set(note.places)
        records = [one for one in self._records(shelf) if one.place in wanted]
        if self._is_written(note, records[0]):
            shelf.append([replace(note, word=Word.APPLIED).encoded()])
        else:
            self._send(shelf, note, records)

    def _is_written(self, note: Note, first: Salvaged) -> bool:
        end = offsets.log_ends(self.active, [self.place])[self.place]
        return any(
            (APPLIED_HEADER, first.was) in headers(bytes(entry.rest))
            for batch in batches(self.active, self.place, note.end, end)
            if batch.header.producer_id >= SALVAGE_ID and not batch.header.is_control  # ours, or a link's
            for entry in entries(batch)
        )

    def _send(self, shelf: Shelf, note: Note, records: Sequence[Salvaged]) -> None:
        items = [Item(one.timestamp_ms, one.again()) for one in records]
        append(self.active, self.place, make_batch(items, self.producer_id, note.sequence))
        shelf.append([replace(note, word=Word.APPLIED).encoded()])
