"""Where partitions begin and end.

Asked of each partition's leader. The end is where the next record will stand as consumers see
it (the high watermark), so a record below it is on every in-sync replica.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster

TopicPartition = tuple[str, int]
_LATEST, _EARLIEST = -1, -2


def end_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The end of each partition."""
    return _offsets(cluster, tuple(partitions), _LATEST)


def start_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The first offset of each partition that is still kept."""
    return _offsets(cluster, tuple(partitions), _EARLIEST)


def _offsets(
    cluster: Cluster, partitions: tuple[TopicPartition, ...], timestamp: int
) -> dict[TopicPartition, int]:
    return cluster.retry(lambda: _ask_leaders(cluster, partitions, timestamp))


def _ask_leaders(
    cluster: Cluster, partitions: tuple[TopicPartition, ...], timestamp: int
) -> dict[TopicPartition, int]:
    led: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, partition in partitions:
        led[cluster.leader(topic, partition)][topic].append(partition)
    found: dict[TopicPartition, int] = {}
    for leader, topics in led.items():
        answer = cluster.once(_request(topics, timestamp), ListOffsetsResponse, broker_id=leader)
        for told in answer.topics:
            for part in told.partitions:
                what = f"asking for offsets of {told.name}-{part.partition_index}"
                codes.check(part.error_code, None, what, cluster.where)
                found[(told.name, part.partition_index)] = part.offset
    return found


def _request(topics: dict[str, list[int]], timestamp: int) -> ListOffsetsRequest:
    kind = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
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
