"""Whose turn it is in a rolling restart, or why nobody's. Pure.

Called by `rolling` before every restart. Brokers go first, in the order of ids, then controllers, and of
those the one that leads goes last: each change of leader costs a moment. Nobody's turn comes while a
partition lacks a copy or a controller is behind, because the next restart would then take a second one away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twinlog.sites.layout import Kind


@dataclass(frozen=True)
class Member:
    """A node that is still to be restarted."""

    id: int
    kind: Kind


@dataclass(frozen=True)
class Copies:
    """The copies of one partition."""

    name: str  # "orders-0"
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    minimum: int = 1


@dataclass(frozen=True)
class Seen:
    """A site between two restarts."""

    leader: int  # the controller that leads
    voters: frozenset[int]
    behind: frozenset[int]  # voters that do not follow
    partitions: tuple[Copies, ...]


@dataclass(frozen=True)
class Turn:
    """Who is next; without anybody, what is waited for."""

    node: int | None
    why: str


def order(left: Iterable[Member], leader: int) -> list[Member]:
    """Brokers, then controllers, the leading one last."""
    return sorted(left, key=lambda node: (node.kind is Kind.CONTROLLER, node.id == leader, node.id))


def next_turn(left: Iterable[Member], seen: Seen) -> Turn:
    """Who may be restarted now."""
    waiting = order(left, seen.leader)
    if not waiting:
        return Turn(None, unwell(seen))
    node = waiting[0]
    why = unwell(seen)
    if not why:
        why = needed(node.id, seen) if node.kind is Kind.BROKER else _needed_voter(node.id, seen)
    return Turn(None, why) if why else Turn(node.id, f"{node.kind} {node.id} is next")


def unwell(seen: Seen) -> str:
    """What a site lacks; empty if nothing."""
    for partition in seen.partitions:
        lacking = sorted(set(partition.replicas) - set(partition.in_sync))
        if lacking:
            return f"{partition.name} waits for broker {lacking[0]}"
    if seen.leader < 0:
        return "the quorum has no leader"
    if seen.behind:
        return f"controller {min(seen.behind)} does not follow the quorum's leader"
    return ""


def needed(broker: int, seen: Seen) -> str:
    """A partition that would fall below its minimum without this broker; empty if none would."""
    for partition in seen.partitions:
        left = [replica for replica in partition.in_sync if replica != broker]
        # A topic with one copy cannot be kept writable; its broker's restart is a short pause.
        if broker in partition.in_sync and len(partition.replicas) > 1 and len(left) < partition.minimum:
            copies = len(partition.in_sync)
            return f"{partition.name} has {copies} copies in sync and needs {partition.minimum}"
    return ""


def _needed_voter(controller: int, seen: Seen) -> str:
    # A quorum of one has its pause; more can always do without one while all others follow.
    following = seen.voters - seen.behind - {controller}
    if len(seen.voters) > 1 and len(following) * 2 <= len(seen.voters):
        return f"without controller {controller} the quorum would have no majority"
    return ""
