"""Elections: having partitions led by the broker that stands first among their replicas, or by any at all.

For `twinlog elect` and moves of partitions. After restarts a few brokers lead most partitions; Kafka
moves leaders back by itself every five minutes unless told not to. Asking for what is the case already
does no harm. An election that a replica out of sync may win loses records; it is for partitions
whose last copy in sync went with a disk, when the alternative is to lose them all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kafka.protocol.admin.topics import ElectLeadersRequest, ElectLeadersResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition

_PREFERRED, _UNCLEAN = 0, 1
_NOT_NEEDED = "ELECTION_NOT_NEEDED"


def elect_preferred(cluster: Cluster, places: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
    """Hold the elections; gives Kafka's name for why a partition's leader did not move, or nothing."""
    return _elect(cluster, places, _PREFERRED)


def elect_survivors(cluster: Cluster, places: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
    """Let partitions without a leader be led by any live replica, with what that one has."""
    return _elect(cluster, places, _UNCLEAN)


def _elect(
    cluster: Cluster, places: Iterable[TopicPartition], kind_of_election: int
) -> dict[TopicPartition, str]:
    wanted: dict[str, list[int]] = defaultdict(list)
    for topic, index in places:
        wanted[topic].append(index)
    if not wanted:
        return {}
    kind = ElectLeadersRequest.TopicPartitions
    request = ElectLeadersRequest(
        election_type=kind_of_election,
        topic_partitions=[kind(topic=topic, partitions=indexes) for topic, indexes in wanted.items()],
        timeout_ms=int(cluster.patience.request_s * 900),
    )

    def judge(answer: ElectLeadersResponse) -> None:
        codes.check(answer.error_code, None, "electing leaders", cluster.where)

    answer = cluster.ask(request, ElectLeadersResponse, judge, repeatable=True)
    return {
        (topic.topic, part.partition_id): _reason(part.error_code)
        for topic in answer.replica_election_results
        for part in topic.partition_result
    }


def _reason(code: int) -> str:
    name = codes.name_of(code)
    return "" if code == codes.NONE or name == _NOT_NEEDED else name
