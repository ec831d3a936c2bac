"""Excerpts: a little of many partitions, each from an offset of its own, fetched at once.

For commands that have to look at a record here and there: what a group reads next and when that was
written, or the newest commits. Every leader is asked before the first answer is awaited. What does
not fit into a fetch is simply not in the answer; the caller asks again for what it misses.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.wire import codes, fetch_bytes
from twinlog.wire.batches import split
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import Connection, Pending, RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetch_bytes import LAST_EPOCH, NO_SESSION, FetchAnswer, Fetched, FetchLimits
from twinlog.wire.offsets import TopicPartition, by_leader
from twinlog.wire.recode import entries
from twinlog.wire.topic_keys import TopicKeys
from twinlog.wire.versions import Range

_BY_NAME = Range(12, 12)
_SMALL_BYTES, _LARGE_BYTES = 16 * 1024, 1024 * 1024
_MOST_BYTES = 50 * 1024 * 1024
_GONE = ("OFFSET_OUT_OF_RANGE", "UNKNOWN_TOPIC_OR_PARTITION")


def fetch(
    cluster: Cluster, positions: Mapping[TopicPartition, int], *, partition_bytes: int = _LARGE_BYTES
) -> dict[TopicPartition, Fetched]:
    """What stands at these positions; a partition whose offset is gone is left out."""
    limits = FetchLimits(
        max_wait_ms=0, max_bytes=_MOST_BYTES, partition_max_bytes=partition_bytes, read_committed=False
    )
    return cluster.retry(lambda: _ask_leaders(cluster, positions, limits))


def times_ms(cluster: Cluster, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """When the record at each position was written, or the next one where it is gone; left out if none is."""
    found: dict[TopicPartition, int] = {}
    left = dict(positions)
    # Most batches are small. One that is not is left out of the first answer and comes in the next.
    for partition_bytes in (_SMALL_BYTES, _LARGE_BYTES):
        for place, fetched in fetch(cluster, left, partition_bytes=partition_bytes).items():
            written_ms = _first_time_ms(fetched, left[place])
            if written_ms is not None:
                found[place] = written_ms
        left = {place: offset for place, offset in left.items() if place not in found}
        if not left:
            break
    return found


def _first_time_ms(fetched: Fetched, offset: int) -> int | None:
    for batch in split(fetched.records):
        if batch.header.is_control or batch.header.last_offset < offset:
            continue
        for entry in entries(batch):
            if entry.offset >= offset:
                return entry.timestamp_ms
    return None


def _ask_leaders(
    cluster: Cluster, positions: Mapping[TopicPartition, int], limits: FetchLimits
) -> dict[TopicPartition, Fetched]:
    deadline = Deadline(cluster.patience.request_s)
    asked: list[tuple[Connection, Pending[FetchAnswer]]] = []
    for leader, topics in by_leader(cluster, positions).items():
        wanted = {
            (topic, index): positions[(topic, index)]
            for topic, indexes in topics.items()
            for index in indexes
        }
        connection = cluster.broker(leader)
        asked.append((connection, _send(connection, wanted, limits, deadline)))
    found: dict[TopicPartition, Fetched] = {}
    for connection, pending in asked:
        answer = connection.receive(pending, deadline)
        codes.check(answer.code, None, "reading records", cluster.where)
        for fetched in answer.fetched:
            if codes.name_of(fetched.code) in _GONE:
                continue
            what = f"reading records of {fetched.topic}-{fetched.partition}"
            codes.check(fetched.code, None, what, cluster.where)
            found[(fetched.topic, fetched.partition)] = fetched
    return found


def _send(
    connection: Connection, wanted: Mapping[TopicPartition, int], limits: FetchLimits, deadline: Deadline
) -> Pending[FetchAnswer]:
    version = connection.agree(fetch_bytes.NAME, fetch_bytes.API_KEY, _BY_NAME)
    keys = TopicKeys()
    body = fetch_bytes.encode(version, keys, limits, (NO_SESSION, LAST_EPOCH), wanted)
    request = RawRequest(
        fetch_bytes.NAME,
        fetch_bytes.API_KEY,
        version,
        [body],
        lambda frame: fetch_bytes.decode(frame, keys),
    )
    return connection.send_raw(request, deadline)
