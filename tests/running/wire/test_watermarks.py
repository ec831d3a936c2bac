"""Watermarks of many partitions from a broker that does not answer for all of them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

import pytest
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from tests.running.wire import scripted_broker as broker
from twinlog.errors import KafkaError
from twinlog.wire.access import Access, Protocol
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.failures import ConnectionFailed
from twinlog.wire.watermarks import watermarks

LIST_OFFSETS, METADATA = 2, 3
UNKNOWN_TOPIC, NOT_LEADER = 3, 6
GOOD, MOVED, GONE = ("orders", 0), ("orders", 1), ("gone", 0)
QUICK = Patience(connect_s=2.0, request_s=2.0, total_s=2.0)


class Broker:
    """A broker that leads topic `orders` and knows no other; `ends` are a code and an offset each."""

    def __init__(self, ends: Mapping[int, tuple[int, int]]) -> None:
        self.ends = ends
        self.asked: list[list[int]] = []
        self.looked_for: list[str] = []
        self.port = 0

    def script(self, connection: socket.socket) -> None:
        broker.greet(connection, {LIST_OFFSETS: (1, 10)})
        while True:
            frame = broker.read_frame(connection)
            key, version = (int.from_bytes(frame[at : at + 2], "big") for at in (0, 2))
            number = int.from_bytes(frame[4:8], "big")
            if key == METADATA:
                request = MetadataRequest.decode(frame, version=version, header=True)
                answer: Any = self._metadata([topic.name for topic in request.topics])
            else:
                assert key == LIST_OFFSETS
                request = ListOffsetsRequest.decode(frame, version=version, header=True)
                answer = self._offsets(request)
            broker.answer(connection, answer, version, number)

    def _metadata(self, names: list[str]) -> MetadataResponse:
        self.looked_for += names
        kind = MetadataResponse.MetadataResponseTopic
        topics = [
            kind(
                error_code=0 if name == "orders" else UNKNOWN_TOPIC,
                name=name,
                partitions=[
                    kind.MetadataResponsePartition(
                        error_code=0,
                        partition_index=index,
                        leader_id=1,
                        leader_epoch=0,
                        replica_nodes=[1],
                        isr_nodes=[1],
                        offline_replicas=[],
                    )
                    for index in (self.ends if name == "orders" else ())
                ],
            )
            for name in names
        ]
        here = MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        return MetadataResponse(brokers=[here], cluster_id="x", controller_id=1, topics=topics)

    def _offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        self.asked.append([part.partition_index for topic in request.topics for part in topic.partitions])
        return ListOffsetsResponse(
            topics=[
                kind(
                    name=topic.name,
                    partitions=[
                        kind.ListOffsetsPartitionResponse(
                            partition_index=part.partition_index,
                            error_code=self.ends[part.partition_index][0],
                            timestamp=-1,
                            offset=self.ends[part.partition_index][1],
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def test_each_partition_gets_its_answer_or_its_reason() -> None:
    scripted = Broker({0: (0, 42), 1: (NOT_LEADER, -1)})
    with broker.listening(scripted.script) as address:
        scripted.port = address.port
        with Cluster(Access((str(address),), Protocol.PLAINTEXT), patience=QUICK) as cluster:
            found = watermarks(cluster, [GOOD, MOVED, GONE, ("gone", 1)])
            assert found[GOOD] == 42
            assert _code(found[MOVED]) == "NOT_LEADER_OR_FOLLOWER"
            assert _code(found[GONE]) == _code(found[("gone", 1)]) == "UNKNOWN_TOPIC_OR_PARTITION"
            assert scripted.asked == [[0, 1]]  # one request for all that it leads
            assert scripted.looked_for.count("gone") == 1
            # What was believed about leaders is asked anew after an answer that denies it.
            scripted.ends = {0: (0, 43), 1: (0, 7)}
            assert watermarks(cluster, [GOOD, MOVED]) == {GOOD: 43, MOVED: 7}
            assert scripted.looked_for.count("orders") == 2


def test_a_site_that_nobody_answers_for_is_an_error() -> None:
    with (
        Cluster(Access(("127.0.0.1:1",), Protocol.PLAINTEXT), patience=QUICK) as cluster,
        pytest.raises(ConnectionFailed),
    ):
        watermarks(cluster, [GOOD])


def _code(answer: object) -> str:
    assert isinstance(answer, KafkaError)
    return answer.code
