"""High watermarks of many partitions, asked once of all their leaders at the same time.

Clients that wait for the standby ask every few milliseconds; they want what is known now, and a
broker or a topic in trouble must not keep them from the rest. So nothing is tried again here:
each partition gets its answer or the reason why there is none, and the caller asks again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kafka.protocol.consumer.offsets import ListOffsetsResponse

from twinlog.errors import KafkaError, TwinlogError
from twinlog.wire import codes
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import Connection, Pending
from twinlog.wire.deadlines import Deadline
from twinlog.wire.offsets import End, TopicPartition, request_for

Answers = dict[TopicPartition, int | TwinlogError]
_Topics = dict[str, list[int]]


def watermarks(
    cluster: Cluster, partitions: Iterable[TopicPartition], end: End = End.HIGH_WATERMARK
) -> Answers:
    """The high watermark (or another end) of each partition, or why it is not known.

    Raises if nobody can be reached.
    """
    deadline = Deadline(cluster.patience.request_s)
    led, found = _by_leader(cluster, partitions)
    asked: list[tuple[Connection, Pending[ListOffsetsResponse], _Topics]] = []
    from_leaders: Answers = {}
    for leader, topics in led.items():
        try:
            connection = cluster.broker(leader)
            sent = connection.send(request_for(topics, end), ListOffsetsResponse, deadline)
            asked.append((connection, sent, topics))
        except TwinlogError as error:
            from_leaders |= _for_each(topics, error)
    for connection, sent, topics in asked:
        try:
            from_leaders |= _read(connection.receive(sent, deadline), cluster.where)
        except TwinlogError as error:
            from_leaders |= _for_each(topics, error)
    if any(isinstance(answer, TwinlogError) for answer in from_leaders.values()):
        cluster.forget()  # who leads, or how to reach it, may have changed
    return found | from_leaders


def _by_leader(cluster: Cluster, partitions: Iterable[TopicPartition]) -> tuple[dict[int, _Topics], Answers]:
    led: dict[int, _Topics] = defaultdict(lambda: defaultdict(list))
    without: Answers = {}
    unknown: dict[str, KafkaError] = {}
    for topic, partition in sorted(partitions):
        if topic in unknown:
            without[(topic, partition)] = unknown[topic]
            continue
        try:
            led[cluster.leader(topic, partition)][topic].append(partition)
        except KafkaError as error:
            without[(topic, partition)] = error
            if error.code != codes.name_of(codes.LEADER_NOT_AVAILABLE):
                unknown[topic] = error  # the topic itself: no need to ask for each of its partitions
    return led, without


def _read(answer: ListOffsetsResponse, where: str) -> Answers:
    found: Answers = {}
    for told in answer.topics:
        for part in told.partitions:
            what = f"asking for the end of {told.name}-{part.partition_index}"
            wrong = part.error_code != codes.NONE
            found[(told.name, part.partition_index)] = (
                codes.error_for(part.error_code, None, what, where) if wrong else part.offset
            )
    return found


def _for_each(topics: _Topics, error: TwinlogError) -> Answers:
    return {(topic, partition): error for topic, partitions in topics.items() for partition in partitions}
