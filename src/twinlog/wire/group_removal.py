"""Taking groups, and offsets of groups, away.

Used by the group commands. A group that has members is not deleted, and an offset of a topic that a
member subscribes to is not forgotten: Kafka refuses both. What is gone already is no problem.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kafka.protocol.admin.groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafka.protocol.consumer.group import OffsetDeleteRequest, OffsetDeleteResponse

from twinlog.wire import codes, groups
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition


def delete(cluster: Cluster, name: str) -> None:
    """Delete a group with all that it has committed."""

    def attempt() -> None:
        for coordinator, names in groups.by_coordinator(cluster, [name]).items():
            request = DeleteGroupsRequest(groups_names=names)
            answer = cluster.once(request, DeleteGroupsResponse, broker_id=coordinator)
            for result in answer.results:
                if not groups.is_missing(result.error_code):
                    what = f"deleting group '{name}'"
                    codes.check(result.error_code, None, what, cluster.where)

    cluster.retry(attempt, repeatable=True)


def forget(cluster: Cluster, name: str, places: Iterable[TopicPartition]) -> None:
    """Forget what a group has committed for these partitions."""
    wanted: dict[str, list[int]] = defaultdict(list)
    for topic, index in places:
        wanted[topic].append(index)
    what = f"forgetting offsets of group '{name}'"
    kind = OffsetDeleteRequest.OffsetDeleteRequestTopic

    def attempt() -> None:
        for coordinator in groups.by_coordinator(cluster, [name]):
            request = OffsetDeleteRequest(
                group_id=name,
                topics=[
                    kind(
                        name=topic,
                        partitions=[
                            kind.OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                        ],
                    )
                    for topic, indexes in wanted.items()
                ],
            )
            answer = cluster.once(request, OffsetDeleteResponse, broker_id=coordinator)
            codes.check(answer.error_code, None, what, cluster.where)
            for topic in answer.topics:
                for part in topic.partitions:
                    codes.check(part.error_code, None, what, cluster.where)

    cluster.retry(attempt, repeatable=True)
