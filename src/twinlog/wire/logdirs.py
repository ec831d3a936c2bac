"""Log directories: how much each partition takes on each disk of each broker, and what is left.

Used for status and for the check that retention fits the volume. A directory that is offline is
part of the answer, with Kafka's name for the reason; only a broker that cannot be asked raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka.protocol.admin.cluster import DescribeLogDirsRequest, DescribeLogDirsResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster


@dataclass(frozen=True)
class LogDir:
    """One directory of one broker. Totals are those of its volume; None where Kafka cannot tell."""

    broker_id: int
    path: str
    problem: str  # Kafka's name for what is wrong with it; empty if nothing is
    total_bytes: int | None
    usable_bytes: int | None
    size_bytes: Mapping[tuple[str, int], int]  # by topic and partition

    @property
    def used_bytes(self) -> int:
        """What all partitions in it take together."""
        return sum(self.size_bytes.values())


def describe(cluster: Cluster, broker_ids: Sequence[int] | None = None) -> tuple[LogDir, ...]:
    """The directories of all live brokers, or of the named ones."""
    ids = [broker.id for broker in cluster.brokers()] if broker_ids is None else broker_ids
    return tuple(found for broker_id in ids for found in _of_broker(cluster, broker_id))


def _of_broker(cluster: Cluster, broker_id: int) -> list[LogDir]:
    def judge(answer: DescribeLogDirsResponse) -> None:
        what = f"reading the log directories of broker {broker_id}"
        codes.check(answer.error_code, None, what, cluster.where)

    request = DescribeLogDirsRequest(topics=None)
    answer = cluster.ask(request, DescribeLogDirsResponse, judge, broker_id=broker_id)
    return [
        LogDir(
            broker_id,
            result.log_dir,
            codes.name_of(result.error_code) if result.error_code != codes.NONE else "",
            _known(result.total_bytes),
            _known(result.usable_bytes),
            {
                (topic.name, partition.partition_index): partition.partition_size
                for topic in result.topics
                for partition in topic.partitions
                if not partition.is_future_key  # a copy that is still moving in from another directory
            },
        )
        for result in answer.results
    ]


def _known(count: int) -> int | None:
    return count if count >= 0 else None
