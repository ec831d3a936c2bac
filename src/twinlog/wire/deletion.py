"""Deleting the oldest records of partitions, so that a twin's log starts where the other's does.

Asked of each partition's leader; done when all live replicas have moved their log start. Doing it twice
does no harm: a log start never goes back. Topics that are only compacted refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka.protocol.admin.topics import DeleteRecordsRequest, DeleteRecordsResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition, by_leader


def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Delete all records before an offset of each partition; gives where each log starts now."""
    return cluster.retry(lambda: _ask_leaders(cluster, before), repeatable=True)


def _ask_leaders(cluster: Cluster, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    starts: dict[TopicPartition, int] = {}
    kind = DeleteRecordsRequest.DeleteRecordsTopic
    for leader, topics in by_leader(cluster, before).items():
        request = DeleteRecordsRequest(
            topics=[
                kind(
                    name=topic,
                    partitions=[
                        kind.DeleteRecordsPartition(partition_index=index, offset=before[(topic, index)])
                        for index in indexes
                    ],
                )
                for topic, indexes in topics.items()
            ],
            timeout_ms=int(cluster.patience.request_s * 900),  # the broker's answer comes before our timeout
        )
        answer = cluster.once(request, DeleteRecordsResponse, broker_id=leader)
        for told in answer.topics:
            for part in told.partitions:
                what = f"deleting records of {told.name}-{part.partition_index}"
                codes.check(part.error_code, None, what, cluster.where)
                starts[(told.name, part.partition_index)] = part.low_watermark
    return starts
