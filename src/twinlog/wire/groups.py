"""Groups of consumers: which there are, who is in them, and the offsets that they committed.

Each group belongs to a coordinator among the brokers, which is looked up and asked; when it has just
moved, the question is put again. The mirror copies offsets with `committed` and `commit`, always
without a leader epoch: a site's epochs mean nothing at the other, and a consumer that is given
one from the future never gets going. A group that has members refuses offsets from outside.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafka.protocol.admin.groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafka.protocol.consumer.group import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

from twinlog.wire import codes, members
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.members import Described, Member, Membership
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.versions import Range

# What consumers with read=twin call themselves: they join a group when the standby answers, and not before.
TWIN_READER = "twinlog-read-twin"
EMPTY, DEAD = "Empty", "Dead"  # states without members, in all types of groups
_GROUP_KEY = 0
_NO_MEMBER, _NO_GENERATION, _NO_LEADER_EPOCH, _NO_OFFSET = "", -1, -1, -1
_BY_NAME = 9  # of OffsetFetch and OffsetCommit: later versions name topics by id (KIP-848)
_MANY_KEYS, _MANY_GROUPS = 4, 8  # of FindCoordinator and OffsetFetch: earlier ones take one at a time
_DESCRIBE_CONSUMERS = Range(members.VERSION, members.VERSION)
_DESCRIBE_SHARES = Range(members.SHARE_VERSION, members.SHARE_VERSION)
_COORDINATOR_MOVED = (
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
)


@dataclass(frozen=True, order=True)
class Group:
    """A group as its coordinator lists it. `type` is "classic", "consumer", "share" or "streams"."""

    name: str
    state: str
    type: str
    protocol_type: str

    @property
    def has_members(self) -> bool:
        """True if somebody is in it, or on the way in or out."""
        return self.state not in (EMPTY, DEAD)


class Committed(NamedTuple):
    """What a group has committed for a partition."""

    offset: int
    metadata: str = ""


def list_groups(cluster: Cluster) -> tuple[Group, ...]:
    """All groups of the cluster, in the order of names."""
    return cluster.retry(lambda: _list(cluster))


def describe(cluster: Cluster, names: Iterable[str]) -> dict[str, Membership]:
    """The members of groups; streams groups are left out, like those that are not there."""
    wanted = tuple(names)
    return cluster.retry(lambda: _describe(cluster, wanted))


def committed(cluster: Cluster, names: Iterable[str]) -> dict[str, dict[TopicPartition, Committed]]:
    """All that groups have committed; a group that is not there has committed nothing."""
    wanted = tuple(names)
    return cluster.retry(lambda: _committed(cluster, wanted))


def commit(
    cluster: Cluster, offsets: Mapping[str, Mapping[TopicPartition, Committed]]
) -> dict[str, dict[TopicPartition, int]]:
    """Set offsets of groups without members; gives a code for each partition of each group.

    Not repeated when an answer is lost: by then somebody else may have moved the group on.
    """
    told: dict[str, dict[TopicPartition, int]] = {}

    def attempt() -> dict[str, dict[TopicPartition, int]]:
        left = tuple(name for name in offsets if name not in told)
        for coordinator, names in by_coordinator(cluster, left).items():
            for name in names:
                told[name] = _commit(cluster, coordinator, name, offsets[name])
        return told

    return cluster.retry(attempt)


def _list(cluster: Cluster) -> tuple[Group, ...]:
    found: list[Group] = []
    for broker in cluster.brokers():  # each one lists the groups that it coordinates
        answer = cluster.once(
            ListGroupsRequest(states_filter=[], types_filter=[]), ListGroupsResponse, broker_id=broker.id
        )
        codes.check(answer.error_code, None, "listing groups", cluster.where)
        found += (
            Group(group.group_id, group.group_state, group.group_type, group.protocol_type)
            for group in answer.groups
        )
    return tuple(sorted(found))


def _describe(cluster: Cluster, names: tuple[str, ...]) -> dict[str, Membership]:
    found: dict[str, Membership] = {}
    for coordinator, theirs in by_coordinator(cluster, names).items():
        found |= _describe_classic(cluster, coordinator, theirs)
        others = [name for name in theirs if name not in found]
        if others and cluster.broker(coordinator).knows(members.API_KEY, _DESCRIBE_CONSUMERS):
            found |= _describe_newer(cluster, coordinator, _of_consumers(others))
        others = [name for name in theirs if name not in found]
        if others and cluster.broker(coordinator).knows(members.SHARE_API_KEY, _DESCRIBE_SHARES):
            found |= _describe_newer(cluster, coordinator, _of_shares(others))
    return found


def _describe_classic(cluster: Cluster, coordinator: int, names: list[str]) -> dict[str, Membership]:
    request = DescribeGroupsRequest(groups=names, include_authorized_operations=False)
    answer = cluster.once(request, DescribeGroupsResponse, broker_id=coordinator)
    found: dict[str, Membership] = {}
    for group in answer.groups:
        if is_missing(group.error_code) or group.group_state == DEAD:
            continue
        what = f"describing group '{group.group_id}'"
        codes.check(group.error_code, group.error_message, what, cluster.where)
        theirs = (
            Member(
                member.member_id,
                member.client_id,
                member.client_host,
                member.group_instance_id or "",
                members.classic_assignment(bytes(member.member_assignment)),
            )
            for member in group.members
        )
        found[group.group_id] = Membership(group.group_state, tuple(theirs), group.protocol_data)
    return found


def _of_consumers(names: list[str]) -> RawRequest[list[Described]]:
    return RawRequest(members.NAME, members.API_KEY, members.VERSION, [members.encode(names)], members.decode)


def _of_shares(names: list[str]) -> RawRequest[list[Described]]:
    body = [members.encode(names)]
    return RawRequest(
        members.SHARE_NAME, members.SHARE_API_KEY, members.SHARE_VERSION, body, members.decode_share
    )


def _describe_newer(
    cluster: Cluster, coordinator: int, request: RawRequest[list[Described]]
) -> dict[str, Membership]:
    connection, deadline = cluster.broker(coordinator), Deadline(cluster.patience.request_s)
    found: dict[str, Membership] = {}
    for group in connection.receive(connection.send_raw(request, deadline), deadline):
        if not is_missing(group.code):
            codes.check(group.code, group.message, f"describing group '{group.name}'", cluster.where)
            found[group.name] = group.membership
    return found


def _committed(cluster: Cluster, names: tuple[str, ...]) -> dict[str, dict[TopicPartition, Committed]]:
    found: dict[str, dict[TopicPartition, Committed]] = {name: {} for name in names}
    kind = OffsetFetchRequest.OffsetFetchRequestGroup
    for coordinator, theirs in by_coordinator(cluster, names).items():
        # Not only stable offsets: one that waits for its transaction's end would hold all others up.
        request = OffsetFetchRequest(
            groups=[kind(group_id=name, topics=None) for name in theirs], require_stable=False
        )
        answer = cluster.once(
            request,
            OffsetFetchResponse,
            broker_id=coordinator,
            min_version=_MANY_GROUPS,
            max_version=_BY_NAME,
        )
        for group in answer.groups:
            what = f"reading the offsets of group '{group.group_id}'"
            if is_missing(group.error_code):
                continue
            codes.check(group.error_code, None, what, cluster.where)
            for topic in group.topics:
                for part in topic.partitions:
                    codes.check(part.error_code, None, what, cluster.where)
                    if part.committed_offset != _NO_OFFSET:
                        found[group.group_id][(topic.name, part.partition_index)] = Committed(
                            part.committed_offset, part.metadata or ""
                        )
    return found


def _commit(
    cluster: Cluster, coordinator: int, name: str, positions: Mapping[TopicPartition, Committed]
) -> dict[TopicPartition, int]:
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    indexes: dict[str, list[int]] = defaultdict(list)
    for topic, index in positions:
        indexes[topic].append(index)
    request = OffsetCommitRequest(
        group_id=name,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id=_NO_MEMBER,
        group_instance_id=None,
        topics=[
            kind(
                name=topic,
                partitions=[
                    kind.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=positions[(topic, index)].offset,
                        committed_leader_epoch=_NO_LEADER_EPOCH,
                        committed_metadata=positions[(topic, index)].metadata,
                    )
                    for index in theirs
                ],
            )
            for topic, theirs in indexes.items()
        ],
    )
    answer = cluster.once(request, OffsetCommitResponse, broker_id=coordinator, max_version=_BY_NAME)
    told: dict[TopicPartition, int] = {}
    for result in answer.topics:
        for part in result.partitions:
            if has_moved(part.error_code):
                what = f"committing offsets of group '{name}'"
                raise codes.error_for(part.error_code, None, what, cluster.where)
            told[(result.name, part.partition_index)] = part.error_code
    return told


def by_coordinator(cluster: Cluster, names: Iterable[str]) -> dict[int, list[str]]:
    """Groups by the broker that coordinates them; one attempt, for use inside `retry`."""
    wanted = list(names)
    if not wanted:
        return {}
    request = FindCoordinatorRequest(key_type=_GROUP_KEY, coordinator_keys=wanted)
    answer = cluster.once(request, FindCoordinatorResponse, min_version=_MANY_KEYS)
    found: dict[int, list[str]] = defaultdict(list)
    for one in answer.coordinators:
        what = f"finding the coordinator of group '{one.key}'"
        codes.check(one.error_code, one.error_message, what, cluster.where)
        found[one.node_id].append(one.key)
    return found


def is_missing(code: int) -> bool:
    """True for the code that says that there is no such group."""
    return codes.name_of(code) == "GROUP_ID_NOT_FOUND"


def has_moved(code: int) -> bool:
    """True for codes that say that another broker coordinates the group, or will in a moment."""
    return codes.name_of(code) in _COORDINATOR_MOVED
