"""Partitions that change brokers: asking for it, seeing how far it is, calling it off.

For `ops`. Kafka adds the new copies first, lets them catch up, and takes the old ones away when all
new ones are in sync, so a partition never has fewer copies in sync than it had. Asking again for what
is under way, or done, changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition

_NONE_TO_CANCEL = "NO_REASSIGNMENT_IN_PROGRESS"


@dataclass(frozen=True)
class UnderWay:
    """A partition that is being moved."""

    replicas: tuple[int, ...]  # all that have or get a copy now
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def under_way(cluster: Cluster) -> dict[TopicPartition, UnderWay]:
    """All partitions that are being moved."""
    request = ListPartitionReassignmentsRequest(timeout_ms=_timeout_ms(cluster), topics=None)

    def judge(answer: ListPartitionReassignmentsResponse) -> None:
        codes.check(answer.error_code, answer.error_message, "reading the reassignments", cluster.where)

    answer = cluster.ask(request, ListPartitionReassignmentsResponse, judge)
    return {
        (topic.name, part.partition_index): UnderWay(
            tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
        )
        for topic in answer.topics
        for part in topic.partitions
    }


def begin(cluster: Cluster, wanted: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Ask for other brokers, or another order of them, for partitions."""
    refused = _alter(cluster, {place: list(brokers) for place, brokers in wanted.items()})
    for (topic, index), (code, message) in refused.items():
        what = f"moving {topic}-{index} to {', '.join(map(str, wanted[topic, index]))}"
        codes.check_change(code, message, what, cluster.where)


def cancel(cluster: Cluster, places: Iterable[TopicPartition]) -> None:
    """Have partitions stay with, or go back to, the brokers that they were on."""
    refused = _alter(cluster, dict.fromkeys(places))
    for (topic, index), (code, message) in refused.items():
        if codes.name_of(code) != _NONE_TO_CANCEL:  # it came to its end meanwhile
            what = f"cancelling the move of {topic}-{index}"
            codes.check_change(code, message, what, cluster.where)


def _alter(
    cluster: Cluster, wanted: Mapping[TopicPartition, list[int] | None]
) -> dict[TopicPartition, tuple[int, str | None]]:
    """Ask the controller; gives those that it refused, with the reason."""
    if not wanted:
        return {}
    kind = AlterPartitionReassignmentsRequest.ReassignableTopic
    by_topic: dict[str, list[AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition]]
    by_topic = defaultdict(list)
    for (topic, index), brokers in wanted.items():
        by_topic[topic].append(kind.ReassignablePartition(partition_index=index, replicas=brokers))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=_timeout_ms(cluster),
        topics=[kind(name=topic, partitions=parts) for topic, parts in by_topic.items()],
    )

    def judge(answer: AlterPartitionReassignmentsResponse) -> None:
        codes.check_change(answer.error_code, answer.error_message, "moving partitions", cluster.where)

    answer = cluster.ask(request, AlterPartitionReassignmentsResponse, judge, repeatable=True)
    return {
        (topic.name, part.partition_index): (part.error_code, part.error_message)
        for topic in answer.responses
        for part in topic.partitions
        if part.error_code != codes.NONE
    }


def _timeout_ms(cluster: Cluster) -> int:
    """How long the broker may work: a little less than we wait, so that its own answer comes first."""
    return int(cluster.patience.request_s * 900)
