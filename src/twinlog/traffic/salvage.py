"""Salvage: what only a returned site has is brought to `<topic>.salvage` at the active.

The traffic manager calls `collect` when a lost site has come back and its clients are still kept out;
the logs of both sites are equal up to the promotion points. Everything behind them at the returned site
is either salvaged, or at the active already, or nothing that a reader would have seen; the tallies say
how much of each. Killed at any moment and run again, it finds what is salvaged and goes on. Nobody but
administrators may read a salvage topic, and nothing in it ever expires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from twinlog.errors import SiteError
from twinlog.traffic import stock
from twinlog.traffic.fates import Fate, Identity, Tail, Tally, identity_of
from twinlog.traffic.salvaged import Salvaged, salvage_topic
from twinlog.traffic.shelf import Shelf, again_until_settled, batches
from twinlog.wire import offsets, topics
from twinlog.wire.batches import NO_SEQUENCE, Batch, Header, next_sequence
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.recode import entries

LISTED = 20
FULL_BYTES, FULL_RECORDS = 512 << 10, 1000  # when a batch is written
SALVAGED_FATES = (Fate.PLAIN, Fate.COMMITTED, Fate.OPEN)


@dataclass(frozen=True)
class Collected:
    """What was found in the tails, partition by partition, and the first records that were salvaged."""

    tallies: tuple[Tally, ...]
    first: tuple[Salvaged, ...] = ()

    @property
    def records(self) -> int:
        """How many records are in salvage because of it."""
        return sum(tally.salvaged for tally in self.tallies)

    def as_json(self) -> dict[str, Any]:
        """The same for reports; no record's contents."""
        return {
            "records": self.records,
            "partitions": [tally.as_json() for tally in self.tallies if tally.length],
            "first": [
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "offset": one.offset,
                    "timestamp_ms": one.timestamp_ms,
                    "transaction": None if one.fate is Fate.PLAIN else str(one.fate),
                }
                for one in self.first
            ],
        }


def collect(
    source: Cluster,
    target: Cluster,
    points: Mapping[TopicPartition, int],
    term: int,
    *,
    deny_others: bool = True,
    listed: int = LISTED,
) -> Collected:
    """Salvage the tails of a returned site behind these points; `term` is the one that began there.

    `deny_others` gives the topics a rule that keeps all users out, whatever patterns their rights have;
    not where administrators are no super users, as it would keep them out too.
    """
    known = {topic.name: topic for topic in topics.describe(source, sorted({name for name, _ in points}))}
    places = [
        (topic, partition)
        for topic, partition in sorted(points)
        if topic in known and partition < len(known[topic].partitions)
    ]
    ends = _settled_ends(source, places)
    starts = offsets.start_offsets(source, places)
    tallies: list[Tally] = []
    first: list[Salvaged] = []
    for place in places:
        job = _Job(
            source=source,
            target=target,
            place=place,
            partitions=len(known[place[0]].partitions),
            point=points[place],
            start=starts[place],
            end=ends[place],
            term=term,
            deny_others=deny_others,
            listed=listed,
        )
        tally, found = again_until_settled([source, target], job.run)
        tallies.append(tally)
        first += found[: listed - len(first)]
    return Collected(tuple(tallies), tuple(first))


def _settled_ends(source: Cluster, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Where the logs end, when all that is in them can be read."""
    ends: dict[TopicPartition, int] = {}

    def missing() -> str:
        ends.update(offsets.log_ends(source, places))
        readable = offsets.end_offsets(source, places)
        behind = [place for place in places if readable[place] < ends[place]]
        return f"{behind[0][0]}-{behind[0][1]} is not on all its replicas" if behind else ""

    source.wait_until(missing, "waiting for the returned site's logs")
    return ends


@dataclass(frozen=True)
class _Job:
    """The tail of one partition; it may be run again and again."""

    source: Cluster
    target: Cluster
    place: TopicPartition
    partitions: int
    point: int
    start: int
    end: int
    term: int
    deny_others: bool
    listed: int

    def run(self) -> tuple[Tally, list[Salvaged]]:
        tally = Tally(*self.place, self.point, max(self.point, self.end))
        found: list[Salvaged] = []
        if not tally.length:
            return tally, found
        tail = Tail()
        for batch in self._tail():
            tail.note(batch)
        present = self._present(tail.identities)
        writer = _Writer(self)
        for record, is_new in self._sorted(tail, present, writer.done, tally):
            if is_new:
                writer.add(record)
            if len(found) < self.listed:
                found.append(record)
        writer.flush()
        if not tally.adds_up:
            raise SiteError(
                f"{tally.topic}-{tally.partition}: of {tally.length} offsets not all are accounted for",
                where=self.source.where,
                hint="is somebody writing there? twinlog status",
            )
        return tally, found

    def _tail(self) -> Iterator[Batch]:
        return batches(self.source, self.place, max(self.point, self.start), self.end)

    def _present(self, identities: set[Identity]) -> set[Identity]:
        """Batches of the tail that the active has too, read in its log: brokers forget, and skip nothing."""
        if not identities:
            return set()
        end = offsets.end_offsets(self.target, [self.place])[self.place]
        first = max(self.point, offsets.start_offsets(self.target, [self.place])[self.place])
        there = (identity_of(batch.header) for batch in batches(self.target, self.place, first, end))
        return {identity for identity in there if identity in identities}

    def _sorted(
        self, tail: Tail, present: set[Identity], done: frozenset[int], tally: Tally
    ) -> Iterator[tuple[Salvaged, bool]]:
        """The records to salvage, each with whether it is not there yet; the rest is only counted."""
        position = self.point
        for batch in self._tail():
            first = max(batch.header.base_offset, self.point)
            behind = min(batch.header.next_offset, self.end)
            tally.empty += first - position
            position = behind
            fate, is_present = tail.fate(batch.header), identity_of(batch.header) in present
            wanted = fate in SALVAGED_FATES and not is_present
            taken = 0
            for record in self._records(batch, fate) if wanted or done else ():
                # What was salvaged stays so, also if its transaction was aborted meanwhile.
                if wanted or record.offset in done:
                    taken += 1
                    tally.open += record.is_open
                    tally.new += record.offset not in done
                    yield record, record.offset not in done
            tally.count(fate, is_present, taken, behind - first)
        tally.empty += self.end - position

    def _records(self, batch: Batch, fate: Fate) -> Iterator[Salvaged]:
        for entry in entries(batch) if fate is not Fate.CONTROL else ():
            if self.point <= entry.offset < self.end:
                yield Salvaged(
                    *self.place,
                    entry.offset,
                    entry.timestamp_ms,
                    self.term,
                    bytes(entry.rest),
                    fate,
                    _producer(batch.header, entry.offset),
                )


def _producer(header: Header, offset: int) -> tuple[int, int, int]:
    sequence = NO_SEQUENCE
    if header.is_idempotent:
        sequence = next_sequence(header.base_sequence, offset - header.base_offset)
    return header.producer_id, header.producer_epoch, sequence


class _Writer:
    """Puts records of one partition into its salvage topic, which is made when the first one comes."""

    def __init__(self, job: _Job) -> None:
        self._job = job
        self._place = (salvage_topic(job.place[0]), job.place[1])
        self._shelf: Shelf | None = None
        self._waiting: list[bytes] = []
        self._bytes = 0
        self.done: frozenset[int] = frozenset()
        if topics.describe(job.target, [self._place[0]]):
            self._open()

    def add(self, record: Salvaged) -> None:
        """Put a record there, soon."""
        content = record.encoded()
        if self._waiting and self._bytes + len(content) > FULL_BYTES:
            self.flush()
        self._waiting.append(content)
        self._bytes += len(content)
        if len(self._waiting) >= FULL_RECORDS:
            self.flush()

    def flush(self) -> None:
        """Have all that was added on every in-sync replica."""
        if not self._waiting:
            return
        if self._shelf is None:
            self._open()
        assert self._shelf is not None
        self._shelf.append(self._waiting)
        self._waiting, self._bytes = [], 0

    def _open(self) -> None:
        job = self._job
        # Also where it is there: who made it may have been killed before it was kept from others.
        stock.ensure_topic(job.target, job.place[0], job.partitions, deny_others=job.deny_others)
        self._shelf = Shelf(job.target, self._place)
        self.done = frozenset(
            found.offset
            for found in stock.read(self._shelf, self._place[0], job.target.where)
            if isinstance(found, Salvaged) and (found.topic, found.term) == (job.place[0], job.term)
        )
