"""The controllers' quorum and the features that a cluster has switched on.

Used for status, for readiness (a site is not up before its quorum has a leader), for replacing a voter
and at the end of an upgrade. Lag is counted in records of the metadata log behind its leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from kafka.protocol.admin.cluster import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafka.protocol.metadata.api_versions import ApiVersionsRequest, ApiVersionsResponse

from twinlog import __version__
from twinlog.wire import codes
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import Cluster

METADATA_TOPIC = "__cluster_metadata"
METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"


@dataclass(frozen=True)
class Replica:
    """A node's copy of the metadata log. Times are None where the leader has not heard of it."""

    id: int
    directory: UUID
    end_offset: int
    lag_records: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True)
class Quorum:
    """The quorum as its leader sees it."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[Replica, ...]
    observers: tuple[Replica, ...]
    addresses: Mapping[int, tuple[HostPort, ...]]  # of the voters, where Kafka tells


@dataclass(frozen=True)
class Features:
    """Feature levels that hold for the whole cluster; `epoch` grows with every change."""

    epoch: int
    levels: Mapping[str, int]


def describe(cluster: Cluster) -> Quorum:
    """Ask the quorum's leader, through any broker, how the quorum is."""
    topic = DescribeQuorumRequest.TopicData
    request = DescribeQuorumRequest(
        topics=[topic(topic_name=METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])]
    )
    what = "asking for the state of the quorum"

    def judge(answer: DescribeQuorumResponse) -> None:
        codes.check(answer.error_code, answer.error_message, what, cluster.where)
        partition = answer.topics[0].partitions[0]
        codes.check(partition.error_code, partition.error_message, what, cluster.where)

    answer = cluster.ask(request, DescribeQuorumResponse, judge)
    partition = answer.topics[0].partitions[0]
    ends = {state.replica_id: state.log_end_offset for state in partition.current_voters}
    end = ends.get(partition.leader_id, partition.high_watermark)

    def replica(state: DescribeQuorumResponse.TopicData.PartitionData.ReplicaState) -> Replica:
        return Replica(
            state.replica_id,
            state.replica_directory_id,
            state.log_end_offset,
            max(0, end - state.log_end_offset),
            _time(state.last_fetch_timestamp),
            _time(state.last_caught_up_timestamp),
        )

    return Quorum(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(replica(state) for state in partition.current_voters),
        tuple(replica(state) for state in partition.observers),
        {
            node.node_id: tuple(HostPort(listener.host, listener.port) for listener in node.listeners)
            for node in answer.nodes
        },
    )


def features(cluster: Cluster) -> Features:
    """The features that are switched on, such as metadata.version and kraft.version."""
    request = ApiVersionsRequest(client_software_name="twinlog", client_software_version=__version__)

    def judge(answer: ApiVersionsResponse) -> None:
        codes.check(answer.error_code, None, "asking for the features", cluster.where)

    answer = cluster.ask(request, ApiVersionsResponse, judge)
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    return Features(answer.finalized_features_epoch, levels)


def raise_feature(cluster: Cluster, name: str, level: int) -> None:
    """Let a feature have a higher level from now on; one that has it already is no error."""
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level)
    request = UpdateFeaturesRequest(
        timeout_ms=int(cluster.patience.request_s * 900), feature_updates=[update], validate_only=False
    )

    def judge(answer: UpdateFeaturesResponse) -> None:
        codes.check_change(
            answer.error_code, answer.error_message, f"raising {name} to {level}", cluster.where
        )

    cluster.ask(request, UpdateFeaturesResponse, judge)


def _time(timestamp_ms: int) -> int | None:
    return timestamp_ms if timestamp_ms >= 0 else None
