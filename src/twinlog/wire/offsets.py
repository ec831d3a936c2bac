"""Where partitions begin and end.

Asked of each partition's leader. There are three ends, each at most as far as the one before: the
end of the leader's own log, where the next record will stand; the high watermark, below which every
record is on all in-sync replicas; the last stable offset, below which no transaction is open.
The mirror goes by the first one at the standby: a high watermark may lag behind an append.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum

from kafka.protocol.consumer.offsets import ListOffsetsRequest, ListOffsetsResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster

TopicPartition = tuple[str, int]
_LATEST, _EARLIEST = -1, -2
_CONSUMER, _DEBUGGER = -1, -2  # who asks: to consumers the log ends at the high watermark


class End(Enum):
    """Which end of a partition is asked for: by whom, with which isolation, and what."""

    START = (_CONSUMER, 0, _EARLIEST)
    LOG_END = (_DEBUGGER, 0, _LATEST)
    HIGH_WATERMARK = (_CONSUMER, 0, _LATEST)
    LAST_STABLE = (_CONSUMER, 1, _LATEST)


def start_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The first offset of each partition that is still kept."""
    return _offsets(cluster, partitions, End.START)


def log_ends(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where each partition's next record will stand, whether the ones before it are replicated or not."""
    return _offsets(cluster, partitions, End.LOG_END)


def end_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The end of each partition as consumers see it: the high watermark."""
    return _offsets(cluster, partitions, End.HIGH_WATERMARK)


def last_stable_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The end of each partition as consumers with read_committed see it."""
    return _offsets(cluster, partitions, End.LAST_STABLE)


def offsets_at(cluster: Cluster, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
    """The first offset of each partition whose record bears this time or a later one; None if none does."""
    return cluster.retry(lambda: _ask_by_time(cluster, times_ms))


def by_leader(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[int, dict[str, list[int]]]:
    """Partitions by the broker that leads them and by topic; one attempt, for use inside `retry`."""
    led: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, partition in partitions:
        led[cluster.leader(topic, partition)][topic].append(partition)
    return led


def _offsets(cluster: Cluster, partitions: Iterable[TopicPartition], end: End) -> dict[TopicPartition, int]:
    places = tuple(partitions)
    return cluster.retry(lambda: _ask_leaders(cluster, places, end))


def _ask_leaders(
    cluster: Cluster, partitions: tuple[TopicPartition, ...], end: End
) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for leader, topics in by_leader(cluster, partitions).items():
        answer = cluster.once(request_for(topics, end), ListOffsetsResponse, broker_id=leader)
        for told in answer.topics:
            for part in told.partitions:
                what = f"asking for offsets of {told.name}-{part.partition_index}"
                codes.check(part.error_code, None, what, cluster.where)
                found[(told.name, part.partition_index)] = part.offset
    return found


def _ask_by_time(
    cluster: Cluster, times_ms: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    found: dict[TopicPartition, int | None] = {}
    kind = ListOffsetsRequest.ListOffsetsTopic
    for leader, topics in by_leader(cluster, times_ms).items():
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=0,
            topics=[
                kind(
                    name=topic,
                    partitions=[
                        kind.ListOffsetsPartition(
                            partition_index=index,
                            current_leader_epoch=-1,
                            timestamp=times_ms[(topic, index)],
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in topics.items()
            ],
        )
        answer = cluster.once(request, ListOffsetsResponse, broker_id=leader)
        for told in answer.topics:
            for part in told.partitions:
                what = f"asking for an offset by time of {told.name}-{part.partition_index}"
                codes.check(part.error_code, None, what, cluster.where)
                found[(told.name, part.partition_index)] = part.offset if part.offset >= 0 else None
    return found


def request_for(topics: dict[str, list[int]], end: End) -> ListOffsetsRequest:
    """The question for one end of partitions of one leader."""
    replica_id, isolation_level, timestamp = end.value
    kind = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[
            kind(
                name=topic,
                partitions=[
                    kind.ListOffsetsPartition(
                        partition_index=partition, current_leader_epoch=-1, timestamp=timestamp
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in topics.items()
        ],
    )
