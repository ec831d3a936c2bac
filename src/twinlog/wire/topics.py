"""Topics: what there is, and making, widening and deleting them.

Used by `ops` for plan and apply and by `sites` for readiness. Making and deleting return only
when every live broker knows: a client that asks any broker right afterwards sees the result.
Making a topic is never repeated by itself after a lost answer: the topic may be there already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata.metadata import MetadataRequest, MetadataResponse

from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.failures import ConnectionFailed
from twinlog.wire.operations import Operation

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
    )
else:
    # Made of their schemas here: in their own place fourteen others would be made with them, at every list.
    class DescribeTopicPartitionsRequest(ApiMessage):
        """As in kafka.protocol.admin.topics."""

    class DescribeTopicPartitionsResponse(ApiMessage):
        """As in kafka.protocol.admin.topics."""


NO_LEADER = -1
_PAGE_PARTITIONS = 2000
_LEFT_TO_KAFKA = -1


@dataclass(frozen=True)
class Partition:
    """One partition: who leads it and who has it. `elr`: replicas that may lead without loss."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()

    @property
    def has_leader(self) -> bool:
        """True if some broker takes writes for it."""
        return self.leader != NO_LEADER


@dataclass(frozen=True)
class TopicState:
    """A topic as it is at a cluster. `allowed`: what the asker may do with it, where that was said."""

    name: str
    id: UUID
    internal: bool
    partitions: tuple[Partition, ...]
    allowed: frozenset[Operation] | None = None

    @property
    def replication(self) -> int:
        """Copies of the partition that has fewest."""
        return min((len(partition.replicas) for partition in self.partitions), default=0)


@dataclass(frozen=True)
class NewTopic:
    """A topic to make: by numbers, or with `assignment` as the brokers of each partition."""

    name: str
    partitions: int = _LEFT_TO_KAFKA
    replication: int = _LEFT_TO_KAFKA
    assignment: tuple[tuple[int, ...], ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def partition_count(self) -> int:
        """How many partitions it will have; -1 if Kafka's default decides."""
        return len(self.assignment) or self.partitions


def describe(cluster: Cluster, names: Sequence[str] | None = None) -> tuple[TopicState, ...]:
    """All topics, or the named ones that exist, in the order of names."""
    if names is not None and not names:
        return ()
    found = cluster.retry(lambda: _read(cluster, names))
    return tuple(sorted(found, key=lambda topic: topic.name))


def create(cluster: Cluster, topic: NewTopic, *, validate_only: bool = False) -> None:
    """Make a topic and wait until every broker knows it and every partition has a leader."""
    from kafka.protocol.admin.topics import CreateTopicsRequest, CreateTopicsResponse  # noqa: PLC0415

    what = f"creating topic '{topic.name}'"
    kind = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            kind(
                name=topic.name,
                num_partitions=_LEFT_TO_KAFKA if topic.assignment else topic.partitions,
                replication_factor=_LEFT_TO_KAFKA if topic.assignment else topic.replication,
                assignments=[
                    kind.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                    for index, brokers in enumerate(topic.assignment)
                ],
                configs=[
                    kind.CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()
                ],
            )
        ],
        timeout_ms=_timeout_ms(cluster),
        validate_only=validate_only,
    )

    def judge(answer: CreateTopicsResponse) -> None:
        for result in answer.topics:
            codes.check_change(result.error_code, result.error_message, what, cluster.where)

    cluster.ask(request, CreateTopicsResponse, judge)
    if not validate_only:
        with _done(what):
            wait_until_known(cluster, topic.name, topic.partition_count)


def add_partitions(
    cluster: Cluster, name: str, total: int, assignment: Sequence[Sequence[int]] | None = None
) -> None:
    """Widen a topic to `total` partitions (`assignment`: brokers of each new one) and wait for leaders."""
    from kafka.protocol.admin.topics import (  # noqa: PLC0415
        CreatePartitionsRequest,
        CreatePartitionsResponse,
    )

    what = f"widening topic '{name}' to {total} partitions"
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    placed = None
    if assignment is not None:
        placed = [kind.CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignment]
    request = CreatePartitionsRequest(
        topics=[kind(name=name, count=total, assignments=placed)],
        timeout_ms=_timeout_ms(cluster),
        validate_only=False,
    )

    def judge(answer: CreatePartitionsResponse) -> None:
        for result in answer.results:
            codes.check_change(result.error_code, result.error_message, what, cluster.where)

    cluster.ask(request, CreatePartitionsResponse, judge)
    with _done(what):
        wait_until_known(cluster, name, total)


def delete(cluster: Cluster, name: str) -> None:
    """Delete a topic with all its records and wait until no broker knows it."""
    from kafka.protocol.admin.topics import DeleteTopicsRequest, DeleteTopicsResponse  # noqa: PLC0415

    what = f"deleting topic '{name}'"
    request = DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=_timeout_ms(cluster)
    )

    def judge(answer: DeleteTopicsResponse) -> None:
        for result in answer.responses:
            if result.error_code == codes.UNKNOWN_TOPIC_OR_PARTITION:
                continue  # gone already, which is all that was wanted
            codes.check_change(result.error_code, result.error_message, what, cluster.where)

    cluster.ask(request, DeleteTopicsResponse, judge)
    with _done(what):
        cluster.wait_until(lambda: _still_known(cluster, name), what)


@contextmanager
def _done(what: str) -> Iterator[None]:
    """While brokers are asked whether they know of a change: one that does not answer has not undone it."""
    try:
        yield
    except ConnectionFailed as error:
        said = f"{what} is done, and whether every broker knows it is not known: {error.what}"
        raise ConnectionFailed(said, retriable=error.retriable, where=error.where, hint=error.hint) from error


def wait_until_known(cluster: Cluster, name: str, partitions: int = _LEFT_TO_KAFKA) -> None:
    """Wait until every live broker knows a topic, with a leader for each of its partitions."""
    cluster.wait_until(lambda: _not_known(cluster, name, partitions), f"waiting for topic '{name}'")


def _not_known(cluster: Cluster, name: str, partitions: int) -> str:
    for broker in cluster.brokers():
        code, led = _seen_by(cluster, broker.id, name)
        if code == codes.UNKNOWN_TOPIC_OR_PARTITION:
            return f"broker {broker.id} does not know it yet"
        if code not in (codes.NONE, codes.LEADER_NOT_AVAILABLE):
            raise codes.error_for(code, None, f"looking for topic '{name}'", cluster.where)
        if not led or not all(led) or len(led) < partitions:
            return f"broker {broker.id} sees {sum(led)} partitions with a leader"
    return ""


def _still_known(cluster: Cluster, name: str) -> str:
    for broker in cluster.brokers():
        code, _ = _seen_by(cluster, broker.id, name)
        if code != codes.UNKNOWN_TOPIC_OR_PARTITION:
            return f"broker {broker.id} still knows it"
    return ""


def _seen_by(cluster: Cluster, broker_id: int, name: str) -> tuple[int, list[bool]]:
    """What one broker says of a topic: its code, and for each partition whether it has a leader."""
    answer = cluster.once(_metadata_of([name]), MetadataResponse, broker_id=broker_id)
    (topic,) = answer.topics
    return topic.error_code, [partition.leader_id != NO_LEADER for partition in topic.partitions]


def _read(cluster: Cluster, names: Sequence[str] | None) -> list[TopicState]:
    if cluster.any_broker().supports(DescribeTopicPartitionsRequest):
        return _read_pages(cluster, names)
    return _read_metadata(cluster, names)


def _read_pages(cluster: Cluster, names: Sequence[str] | None) -> list[TopicState]:
    """Read through DescribeTopicPartitions (KIP-966), which alone knows the eligible leaders."""
    found: dict[str, TopicState] = {}
    cursor = None
    while True:
        wanted = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in sorted(names or ())]
        request = DescribeTopicPartitionsRequest(
            topics=wanted, response_partition_limit=_PAGE_PARTITIONS, cursor=cursor
        )
        answer = cluster.once(request, DescribeTopicPartitionsResponse)
        for topic in answer.topics:
            if topic.error_code == codes.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            codes.check(topic.error_code, None, f"describing topic '{topic.name}'", cluster.where)
            name = topic.name or ""
            # A topic that did not fit on the page before comes again with its next partitions.
            earlier = found[name].partitions if name in found else ()
            found[name] = TopicState(
                name,
                topic.topic_id,
                topic.is_internal,
                earlier
                + tuple(
                    Partition(
                        partition.partition_index,
                        partition.leader_id,
                        partition.leader_epoch,
                        tuple(partition.replica_nodes),
                        tuple(partition.isr_nodes),
                        tuple(partition.eligible_leader_replicas or ()),
                        tuple(partition.offline_replicas),
                    )
                    for partition in topic.partitions
                ),
                _operations(topic.topic_authorized_operations),
            )
        if answer.next_cursor is None:
            return list(found.values())
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )


def _read_metadata(cluster: Cluster, names: Sequence[str] | None) -> list[TopicState]:
    """Read through Metadata, for clusters that are older than Kafka 3.8."""
    answer = cluster.once(_metadata_of(names), MetadataResponse)
    found = []
    for topic in answer.topics:
        if topic.error_code == codes.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        codes.check(topic.error_code, None, f"describing topic '{topic.name}'", cluster.where)
        partitions = tuple(
            Partition(
                partition.partition_index,
                partition.leader_id,
                partition.leader_epoch,
                tuple(partition.replica_nodes),
                tuple(partition.isr_nodes),
                offline=tuple(partition.offline_replicas),
            )
            for partition in sorted(topic.partitions, key=lambda one: one.partition_index)
        )
        found.append(TopicState(topic.name or "", topic.topic_id, topic.is_internal, partitions))
    return found


def _operations(bits: int) -> frozenset[Operation] | None:
    """The operations of a bit field; none are said by the smallest number."""
    return None if bits < 0 else frozenset(one for one in Operation if bits >> one & 1)


def _metadata_of(names: Sequence[str] | None) -> MetadataRequest:
    wanted = None
    if names is not None:
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def _timeout_ms(cluster: Cluster) -> int:
    """How long the broker may work: a little less than we wait, so that its own answer comes first."""
    return int(cluster.patience.request_s * 900)
