"""Groups whose coordinator moves while their offsets are being set, which a real one does when it likes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse
from kafka.protocol.metadata import FindCoordinatorResponse, MetadataResponse

from tests.running.wire import scripted_broker as broker
from twinlog.errors import KafkaError, UnknownOutcome
from twinlog.wire import groups
from twinlog.wire.access import Access, Protocol
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.groups import Committed

FIND_COORDINATOR, OFFSET_COMMIT = 10, 8
KNOWN = {FIND_COORDINATOR: (0, 6), OFFSET_COMMIT: (2, 10)}
NOT_COORDINATOR, LOADING, UNKNOWN_MEMBER = 16, 14, 25
OFFSETS = {"stock": {("orders", 0): Committed(5, "words")}}


class Coordinator:
    """A broker that coordinates all groups and answers commits with codes from a list."""

    def __init__(self, codes: list[int], known: dict[int, tuple[int, int]] | None = None) -> None:
        self.codes = codes
        self.known = known if known is not None else KNOWN
        self.commits: list[Any] = []
        self.address = HostPort("127.0.0.1", 1)

    def __call__(self, connection: socket.socket) -> None:
        broker.greet(connection, self.known)
        while True:
            frame = broker.read_frame(connection)
            key, version, number = (
                int.from_bytes(frame[0:2], "big"),
                int.from_bytes(frame[2:4], "big"),
                int.from_bytes(frame[4:8], "big"),
            )
            if key == OFFSET_COMMIT:
                self.commits.append(OffsetCommitRequest.decode(frame, version=version, header=True))
                if not self.codes:
                    return
                broker.answer(connection, _committed(self.codes.pop(0)), version, number)
            else:
                answer = self._metadata() if key == broker.METADATA else _coordinators()
                broker.answer(connection, answer, version, number)

    def _metadata(self) -> MetadataResponse:
        here = MetadataResponse.MetadataResponseBroker(
            node_id=1, host=self.address.host, port=self.address.port, rack=None
        )
        return MetadataResponse(brokers=[here], cluster_id="scripted", controller_id=1, topics=[])


def _coordinators() -> FindCoordinatorResponse:
    kind = FindCoordinatorResponse.Coordinator
    return FindCoordinatorResponse(
        coordinators=[kind(key="stock", node_id=1, host="", port=0, error_code=0, error_message=None)]
    )


def _committed(code: int) -> OffsetCommitResponse:
    kind = OffsetCommitResponse.OffsetCommitResponseTopic
    part = kind.OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(topics=[kind(name="orders", partitions=[part])])


@contextmanager
def cluster_of(coordinator: Coordinator) -> Iterator[Cluster]:
    with broker.listening(coordinator) as address:
        coordinator.address = address
        access = Access((str(address),), Protocol.PLAINTEXT)
        with Cluster(access, patience=Patience(total_s=5.0, pauses_s=(0.01,))) as cluster:
            yield cluster


def test_a_coordinator_that_moves_is_looked_up_again() -> None:
    coordinator = Coordinator([NOT_COORDINATOR, LOADING, 0])
    with cluster_of(coordinator) as cluster:
        assert groups.commit(cluster, OFFSETS) == {"stock": {("orders", 0): 0}}
    assert len(coordinator.commits) == 3


def test_offsets_go_without_member_and_leader_epoch() -> None:
    coordinator = Coordinator([0])
    with cluster_of(coordinator) as cluster:
        groups.commit(cluster, OFFSETS)
    (commit,) = coordinator.commits
    assert (commit.group_id, commit.member_id, commit.generation_id_or_member_epoch) == ("stock", "", -1)
    ((part,),) = [topic.partitions for topic in commit.topics]
    assert (part.committed_offset, part.committed_leader_epoch, part.committed_metadata) == (5, -1, "words")


def test_a_group_that_refuses_is_told_by_code_and_asked_once() -> None:
    coordinator = Coordinator([UNKNOWN_MEMBER])
    with cluster_of(coordinator) as cluster:
        assert groups.commit(cluster, OFFSETS) == {"stock": {("orders", 0): UNKNOWN_MEMBER}}
    assert len(coordinator.commits) == 1


def test_a_commit_without_an_answer_is_not_repeated() -> None:
    coordinator = Coordinator([])
    with cluster_of(coordinator) as cluster, pytest.raises(UnknownOutcome):
        groups.commit(cluster, OFFSETS)
    assert len(coordinator.commits) == 1


def test_a_broker_that_is_too_old_for_many_groups_is_named() -> None:
    coordinator = Coordinator([0], {FIND_COORDINATOR: (0, 3), OFFSET_COMMIT: (2, 8)})
    too_old = pytest.raises(KafkaError, match="FindCoordinatorRequest cannot be sent")
    with cluster_of(coordinator) as cluster, too_old:
        groups.commit(cluster, OFFSETS)
