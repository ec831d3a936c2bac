"""What partitions remember of their producers (DescribeProducers, KIP-664).

Asked of each partition's leader, or of one broker that has a replica. The mirror reads here where its
own chain of sequences stands, and tells by a transaction that stays open who holds a partition's last
stable offset back; moves see to it that no site remembers what is no longer so. Brokers forget a producer
some time after its last record, by the time that the record bears.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka.protocol.admin.transactions import DescribeProducersRequest, DescribeProducersResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition, by_leader


@dataclass(frozen=True)
class ProducerState:
    """One producer at one partition; -1 means that there is none, as after nothing but a marker."""

    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int


def describe(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, dict[int, ProducerState]]:
    """The producers that each partition remembers, by producer id."""
    places = tuple(partitions)
    return cluster.retry(lambda: _ask_leaders(cluster, places))


def describe_at(
    cluster: Cluster, broker_id: int, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, dict[int, ProducerState]]:
    """The same as one broker knows it of partitions that it leads or follows; a single attempt."""
    indexes: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        indexes[topic].append(partition)
    return _ask(cluster, broker_id, indexes)


def _ask_leaders(
    cluster: Cluster, partitions: tuple[TopicPartition, ...]
) -> dict[TopicPartition, dict[int, ProducerState]]:
    found: dict[TopicPartition, dict[int, ProducerState]] = {}
    for leader, topics in by_leader(cluster, partitions).items():
        found |= _ask(cluster, leader, topics)
    return found


def _ask(
    cluster: Cluster, broker_id: int, topics: Mapping[str, list[int]]
) -> dict[TopicPartition, dict[int, ProducerState]]:
    found: dict[TopicPartition, dict[int, ProducerState]] = {}
    kind = DescribeProducersRequest.TopicRequest
    request = DescribeProducersRequest(
        topics=[kind(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()]
    )
    answer = cluster.once(request, DescribeProducersResponse, broker_id=broker_id)
    for told in answer.topics:
        for part in told.partitions:
            what = f"reading the producers of {told.name}-{part.partition_index}"
            codes.check(part.error_code, part.error_message, what, cluster.where)
            found[(told.name, part.partition_index)] = {
                producer.producer_id: ProducerState(
                    producer.producer_epoch,
                    producer.last_sequence,
                    producer.last_timestamp,
                    producer.coordinator_epoch,
                    producer.current_txn_start_offset,
                )
                for producer in part.active_producers
            }
    return found
