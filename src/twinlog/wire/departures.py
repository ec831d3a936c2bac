"""Takes members out of groups in which they cannot be any more: their site was closed to them.

A coordinator remembers members over a restart and waits for them for a whole session, and a group that
has members takes no offsets from outside. Where it is certain that nobody is connected, they are made
to leave, as they would have done themselves. A member that is there after all joins again.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka.protocol.consumer.group import LeaveGroupRequest, LeaveGroupResponse

from twinlog.errors import KafkaError
from twinlog.wire import arrivals, codes, groups, heartbeats
from twinlog.wire.cluster import Cluster
from twinlog.wire.groups import Group
from twinlog.wire.members import Member

CONSUMER = "consumer"  # groups of the newer protocol (KIP-848)
SHARE = "share"  # whose members nobody can make leave
_MANY_MEMBERS = 3  # of LeaveGroup: earlier versions take one
_GONE = ("UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND")


def expel(cluster: Cluster, is_meant: Callable[[str], bool]) -> tuple[str, ...]:
    """Have every member leave the groups that are meant; returns the groups that had some."""

    def attempt() -> tuple[str, ...]:
        found = {
            one.name: one for one in groups.list_groups(cluster) if one.has_members and is_meant(one.name)
        }
        theirs = groups.describe(cluster, (name for name, one in found.items() if one.type != SHARE))
        for coordinator, names in groups.by_coordinator(cluster, theirs).items():
            for name in names:
                _leave(cluster, coordinator, found[name], theirs[name].members)
        return tuple(found)

    return cluster.retry(attempt, repeatable=True)


def _leave(cluster: Cluster, coordinator: int, group: Group, members: tuple[Member, ...]) -> None:
    if group.type == CONSUMER:
        for member in members:
            try:
                arrivals.heartbeat(cluster, coordinator, group.name, member.id, heartbeats.LEAVE)
            except KafkaError as error:
                if error.code not in _GONE:
                    raise
        return
    request = LeaveGroupRequest(
        group_id=group.name,
        members=[
            LeaveGroupRequest.MemberIdentity(
                member_id=member.id,
                group_instance_id=member.instance_id or None,
                reason="its site was closed",
            )
            for member in members
        ],
    )
    answer = cluster.once(request, LeaveGroupResponse, broker_id=coordinator, min_version=_MANY_MEMBERS)
    what = f"taking members out of group '{group.name}'"
    for code in (answer.error_code, *(one.error_code for one in answer.members)):
        if codes.name_of(code) not in _GONE:
            codes.check(code, None, what, cluster.where)
