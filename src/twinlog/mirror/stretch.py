"""Reads a stretch of one partition, from an offset to another, as a read-committed reader sees it.

For looking at what is there (the start check, `link verify`), not for the mirror's own way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from twinlog.errors import SiteError
from twinlog.mirror.compare import Seen, seen
from twinlog.mirror.visibility import judged
from twinlog.wire import codes
from twinlog.wire.batches import Batch
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetching import Fetched, FetchLimits, FetchSession

TIMEOUT_S = 15.0
_LIMITS = FetchLimits(max_wait_ms=200, max_bytes=8 << 20, partition_max_bytes=8 << 20)


def chunks(
    cluster: Cluster, ids: Mapping[str, UUID], topic: str, partition: int, first: int, end: int
) -> Iterator[Fetched]:
    """What fetches from `first` bring, until `end` is reached."""
    key, position = (topic, partition), first
    session = FetchSession(cluster.broker(cluster.leader(topic, partition)), _LIMITS, ids=ids)
    empty = 0
    try:
        while position < end:
            session.want(key, position)
            session.send(Deadline(TIMEOUT_S))
            for fetched in session.receive(Deadline(TIMEOUT_S)):
                what = f"reading {topic}-{partition} at offset {position}"
                codes.check(fetched.code, None, what, cluster.where)
                ends = [batch.header.next_offset for batch, _ in judged(fetched.records, ())]
                if ends and ends[-1] > position:
                    yield fetched
                    position, empty = ends[-1], 0
            empty += 1
            if empty > 3:
                raise SiteError(
                    f"{topic}-{partition} ends at offset {position} for readers, not at {end}",
                    where=cluster.where,
                    hint="is a transaction open? twinlog link status",
                )
    finally:
        session.end(Deadline(TIMEOUT_S))


def batches(
    cluster: Cluster, ids: Mapping[str, UUID], topic: str, partition: int, first: int, end: int
) -> Iterator[Batch]:
    """Every batch in the stretch that a reader is shown."""
    for fetched in chunks(cluster, ids, topic, partition, first, end):
        for batch, shown in judged(fetched.records, fetched.aborted):
            if shown and batch.header.base_offset < end and batch.header.next_offset > first:
                yield batch


def records(
    cluster: Cluster, ids: Mapping[str, UUID], topic: str, partition: int, first: int, end: int
) -> dict[int, Seen]:
    """Every record in the stretch that a reader is shown, by offset."""
    return {
        offset: record
        for batch in batches(cluster, ids, topic, partition, first, end)
        for offset, record in seen(batch)
        if first <= offset < end
    }
