"""Writes salvaged records to their topic again, each at most once.

For `twinlog salvage apply`. They become ordinary records at the end of the partition that they came
from, with their own time and a header that says where they had been. A batch of them is announced in
the salvage topic, written, and noted as written. Whoever finds an announcement without its note looks
for the batch in the topic, by producer and sequence, and only if it is not there writes it, under the same
name: should the first one still arrive, the broker takes it for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from twinlog.traffic import stock
from twinlog.traffic.salvaged import Note, Salvaged, Word, salvage_topic
from twinlog.traffic.shelf import (
    APPLY_ID,
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


def apply(cluster: Cluster, topic: str, chosen: Choice = is_committed) -> list[Applied]:
    """Write the chosen records of a topic again, as far as they were not written again before."""
    partitions = stock.partitions_of(cluster, topic)
    limit = configs.describe(cluster, Kind.TOPIC, topic, [stock.LIMIT])[stock.LIMIT].value
    full_bytes = min(FULL_BYTES, int(limit or 0) // 2)  # the other half is for what batches add
    workers = [_Worker(cluster, topic, number, chosen, full_bytes) for number in range(partitions)]
    return [again_until_settled(cluster, worker.run) for worker in workers]


class _Worker:
    """One partition; `run` may be called again and again."""

    def __init__(self, cluster: Cluster, topic: str, partition: int, chosen: Choice, full_bytes: int) -> None:
        self._cluster = cluster
        self._place: TopicPartition = (topic, partition)
        self._salvage: TopicPartition = (salvage_topic(topic), partition)
        self._chosen = chosen
        self._full_bytes = full_bytes
        self._before: int | None = None  # how many were applied when this began

    def run(self) -> Applied:
        shelf = Shelf(self._cluster, self._salvage)
        applied = set(stock.applied_places(self._read(shelf)))
        if self._before is None:
            self._before = len(applied)
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
            if not self._chosen(one):
                left += 1
                continue
            if waiting and (size_bytes + len(one.rest) > self._full_bytes or len(waiting) >= FULL_RECORDS):
                self._write(shelf, waiting)
                waiting, size_bytes = [], 0
            waiting.append(one)
            size_bytes += len(one.rest)
            applied.add(one.place)
        if waiting:
            self._write(shelf, waiting)
        return Applied(*self._place, len(applied), len(applied) - self._before, left)

    def _read(self, shelf: Shelf) -> Iterator[Salvaged | Note]:
        return stock.read(shelf, self._salvage[0], self._cluster.where)

    def _records(self, shelf: Shelf) -> Iterator[Salvaged]:
        return (one for one in self._read(shelf) if isinstance(one, Salvaged))

    def _unclear(self, shelf: Shelf) -> Note | None:
        """What was announced and not noted as written."""
        notes = [one for one in self._read(shelf) if isinstance(one, Note)]
        return notes[-1] if notes and notes[-1].word is Word.APPLYING else None

    def _write(self, shelf: Shelf, records: Sequence[Salvaged]) -> None:
        places = tuple(one.place for one in records)
        sequence = next_in_chain(self._cluster, self._place, APPLY_ID)
        end = offsets.log_ends(self._cluster, [self._place])[self._place]
        note = Note(Word.APPLYING, places, end, sequence)
        shelf.append([note.encoded()])
        self._send(shelf, note, records)

    def _finish(self, shelf: Shelf, note: Note) -> None:
        if self._is_written(note):
            shelf.append([replace(note, word=Word.APPLIED).encoded()])
            return
        wanted = set(note.places)
        self._send(shelf, note, [one for one in self._records(shelf) if one.place in wanted])

    def _is_written(self, note: Note) -> bool:
        end = offsets.log_ends(self._cluster, [self._place])[self._place]
        return any(
            (batch.header.producer_id, batch.header.base_sequence) == (APPLY_ID, note.sequence)
            for batch in batches(self._cluster, self._place, note.end, end)
        )

    def _send(self, shelf: Shelf, note: Note, records: Sequence[Salvaged]) -> None:
        batch = make_batch([Item(one.timestamp_ms, one.again()) for one in records], APPLY_ID, note.sequence)
        append(self._cluster, self._place, batch)
        shelf.append([replace(note, word=Word.APPLIED).encoded()])
