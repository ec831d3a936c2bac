"""Reads stretches of partitions, from an offset to another, as a read-committed reader sees them.

For looking at what is there (the start check, `link verify`), not for the mirror's own way. Stretches
of many partitions are read together, through one session for each broker that leads some of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from uuid import UUID

from twinlog.errors import KafkaError, SiteError, TwinlogError
from twinlog.mirror.compare import Seen, seen
from twinlog.mirror.track import TopicPartition
from twinlog.mirror.visibility import judged
from twinlog.wire import codes
from twinlog.wire.batches import Batch, UnreadableBatch
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetching import Fetched, FetchLimits, FetchSession

TIMEOUT_S = 15.0
MOST_EMPTY = 3  # fetches in a row that brought nothing new
LONG = FetchLimits(max_wait_ms=200, max_bytes=8 << 20, partition_max_bytes=8 << 20)
# Behind a stretch its log may go on for long: what comes of that is fetched for nothing.
SHORT = FetchLimits(max_wait_ms=200, max_bytes=8 << 20, partition_max_bytes=128 << 10)

Stretch = tuple[int, int]  # its first offset, and the one behind its last


def batches(
    cluster: Cluster, ids: Mapping[str, UUID], topic: str, partition: int, first: int, end: int
) -> Iterator[Batch]:
    """Every batch in the stretch that a reader is shown."""
    for _, fetched in _read(cluster, ids, {(topic, partition): (first, end)}, LONG):
        if isinstance(fetched, TwinlogError):
            raise fetched
        yield from _shown(fetched, first, end)


def records(
    cluster: Cluster, ids: Mapping[str, UUID], topic: str, partition: int, first: int, end: int
) -> dict[int, Seen]:
    """Every record in the stretch that a reader is shown, by offset."""
    found: dict[int, Seen] = {}
    for batch in batches(cluster, ids, topic, partition, first, end):
        found.update(_within(batch, first, end))
    return found


def records_of_many(
    cluster: Cluster,
    ids: Mapping[str, UUID],
    stretches: Mapping[TopicPartition, Stretch],
    limits: FetchLimits,
) -> dict[TopicPartition, dict[int, Seen] | TwinlogError]:
    """The same of each of many stretches, or why it could not be read."""
    found: dict[TopicPartition, dict[int, Seen]] = {place: {} for place in stretches}
    troubles: dict[TopicPartition, TwinlogError] = {}
    for place, fetched in _read(cluster, ids, stretches, limits):
        if isinstance(fetched, TwinlogError):
            troubles[place] = fetched
            continue
        try:
            for batch in _shown(fetched, *stretches[place]):
                found[place].update(_within(batch, *stretches[place]))
        except UnreadableBatch as error:
            troubles[place] = error
    return {**found, **troubles}


def _shown(fetched: Fetched, first: int, end: int) -> Iterator[Batch]:
    for batch, shown in judged(fetched.records, fetched.aborted):
        if shown and batch.header.base_offset < end and batch.header.next_offset > first:
            yield batch


def _within(batch: Batch, first: int, end: int) -> Iterator[tuple[int, Seen]]:
    return ((offset, record) for offset, record in seen(batch) if first <= offset < end)


def _read(
    cluster: Cluster,
    ids: Mapping[str, UUID],
    stretches: Mapping[TopicPartition, Stretch],
    limits: FetchLimits,
) -> Iterator[tuple[TopicPartition, Fetched | TwinlogError]]:
    """What fetches bring of each stretch until it ends, or an error instead of the rest of it."""
    by_leader: dict[int, dict[TopicPartition, Stretch]] = defaultdict(dict)
    for place, stretch in stretches.items():
        try:
            by_leader[cluster.leader(*place)][place] = stretch
        except TwinlogError as error:
            yield place, error
    for leader, led in by_leader.items():
        left = {place: stretch for place, stretch in led.items() if stretch[0] < stretch[1]}
        try:
            session = FetchSession(cluster.broker(leader), limits, ids=ids)
            try:
                yield from _read_led(cluster, session, left)
            finally:
                with suppress(TwinlogError):  # it only makes room at the broker
                    session.end(Deadline(TIMEOUT_S))
        except TwinlogError as error:
            for place in left:
                yield place, error


def _read_led(
    cluster: Cluster, session: FetchSession, left: dict[TopicPartition, Stretch]
) -> Iterator[tuple[TopicPartition, Fetched | TwinlogError]]:
    """The same of partitions with one leader; what is done is taken out of `left`."""
    empty = 0
    for place, (first, _) in left.items():
        session.want(place, first)
    while left:
        session.send(Deadline(TIMEOUT_S))
        empty += 1
        for fetched in session.receive(Deadline(TIMEOUT_S)):
            place = (fetched.topic, fetched.partition)
            position, end = left[place]
            try:
                what = f"reading {place[0]}-{place[1]} at offset {position}"
                codes.check(fetched.code, None, what, cluster.where)
                ends = [batch.header.next_offset for batch, _ in judged(fetched.records, ())]
            except KafkaError as error:
                yield place, error
                _finish(session, left, place)
                continue
            if not ends or ends[-1] <= position:
                continue
            yield place, fetched
            empty = 0
            if ends[-1] < end:
                left[place] = (ends[-1], end)
                session.want(place, ends[-1])
            else:
                _finish(session, left, place)
        if empty > MOST_EMPTY:
            for (topic, partition), (position, end) in left.items():
                yield (
                    (topic, partition),
                    SiteError(
                        f"{topic}-{partition} ends at offset {position} for readers, not at {end}",
                        where=cluster.where,
                        hint="is a transaction open? twinlog link status",
                    ),
                )
            return


def _finish(session: FetchSession, left: dict[TopicPartition, Stretch], place: TopicPartition) -> None:
    session.forget(place)
    del left[place]
