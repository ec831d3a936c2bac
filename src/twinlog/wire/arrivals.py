"""Joining and leaving groups of the newer protocol (KIP-848) in a member's name.

The mirror makes groups exist at the standby with it; `departures` takes members out of groups. Nothing is
read in the groups: a member is there for a moment and is assigned nothing that it would keep.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from twinlog.wire import codes, groups, heartbeats
from twinlog.wire.cluster import Cluster
from twinlog.wire.connection import RawRequest
from twinlog.wire.deadlines import Deadline
from twinlog.wire.versions import Range

_HEARTBEAT = Range(heartbeats.VERSION, heartbeats.VERSION)


def prime(cluster: Cluster, names: Iterable[str]) -> tuple[str, ...]:
    """Make groups of the newer protocol exist, without members (KIP-848); gives those that were made.

    A consumer of such a group that moves here from another cluster asks for its group at once, and gives
    up for good when there is none; committing offsets makes one of the classic protocol, which is none.
    Offsets that are there stay. A group that has members is not disturbed, only joined and left. Brokers
    before Kafka 4.0 have no such groups.
    """
    wanted = tuple(names)

    def attempt() -> tuple[str, ...]:
        made: list[str] = []
        for coordinator, theirs in groups.by_coordinator(cluster, wanted).items():
            if not cluster.broker(coordinator).knows(heartbeats.API_KEY, _HEARTBEAT):
                continue
            made += theirs
            for name in theirs:
                member = str(uuid4())
                for epoch in (heartbeats.JOIN, heartbeats.LEAVE):
                    heartbeat(cluster, coordinator, name, member, epoch)
        return tuple(made)

    return cluster.retry(attempt, repeatable=True)


def heartbeat(cluster: Cluster, coordinator: int, name: str, member: str, epoch: int) -> None:
    """Join or leave a group of the newer protocol in a member's name; one attempt, for use inside `retry`."""
    request = RawRequest(
        heartbeats.NAME,
        heartbeats.API_KEY,
        heartbeats.VERSION,
        [heartbeats.encode(name, member, epoch)],
        heartbeats.decode,
    )
    connection, deadline = cluster.broker(coordinator), Deadline(cluster.patience.request_s)
    answer = connection.receive(connection.send_raw(request, deadline), deadline)
    codes.check(answer.code, answer.message, f"joining or leaving group '{name}'", cluster.where)
