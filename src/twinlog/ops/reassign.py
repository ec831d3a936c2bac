"""Moves partitions between brokers: what is where, the plan, carrying it out, calling it off.

For `twinlog move`, `broker add` and `broker remove`. A move is written down first (`move_journal`), then
begun a few partitions at a time, watched until Kafka has taken the old copies away, and ended with an
election, so that the brokers that stand first lead. Killed at any moment, it is gone on with.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from twinlog.errors import SiteError, UsageError
from twinlog.ops import throttles
from twinlog.ops.assignment import Assignment, Change, Peer, changes
from twinlog.ops.balance import balanced
from twinlog.ops.move_journal import Intended, MoveJournal
from twinlog.ops.pace import Pace
from twinlog.progress import Progress
from twinlog.wire import elections, logdirs, reassignments, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition

AT_ONCE = 50  # partitions: each one more is one more that every broker fetches besides its usual ones
LOOK_AGAIN_S = 0.3
SAY_EVERY_S = 5.0


@dataclass(frozen=True)
class Placement:
    """Where everything is."""

    current: Assignment
    peers: tuple[Peer, ...]  # brokers that live
    size_bytes: dict[TopicPartition, int]


@dataclass(frozen=True)
class Moving:
    """One partition that Kafka is moving now."""

    topic: str
    partition: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    size_bytes: int  # of all new copies, when they are complete
    copied_bytes: int


def observe(cluster: Cluster, names: Sequence[str] | None = None) -> Placement:
    """Where the partitions of these topics, or of all, are."""
    found = topics.describe(cluster, names)
    current = {(topic.name, part.index): part.replicas for topic in found for part in topic.partitions}
    size_bytes = dict.fromkeys(current, 0)
    for directory in logdirs.describe(cluster):
        for place, size in directory.size_bytes.items():
            if place in size_bytes:
                size_bytes[place] = max(size, size_bytes[place])
    peers = tuple(Peer(broker.id, broker.rack) for broker in cluster.brokers())
    return Placement(current, peers, size_bytes)


def plan(placement: Placement, *, without: Collection[int] = ()) -> list[Change]:
    """The changes that spread partitions evenly over the brokers that live, but for those left out."""
    peers = [peer for peer in placement.peers if peer.id not in without]
    try:
        after = balanced(placement.current, peers, placement.size_bytes)
    except UsageError as error:
        if len(peers) < len(placement.peers):
            raise
        raise SiteError(error.what, hint=error.hint) from error  # nobody was left out: brokers are down
    return changes(placement.current, after, placement.size_bytes)


def intended(found: Collection[Change], rate_bytes: int | None) -> Intended:
    """A move that makes these changes."""
    return Intended(
        {change.place: change.before for change in found},
        {change.place: change.after for change in found},
        {change.place: change.size_bytes for change in found},
        rate_bytes,
    )


def refuse_other_moves(cluster: Cluster, journal: MoveJournal) -> None:
    """Raise if partitions are being moved already: a plan of what is on its way would be worth nothing."""
    if journal.read() is not None:
        raise UsageError(
            "a move is unfinished", hint="to go on with it: twinlog move run; to end it: twinlog move cancel"
        )
    if reassignments.under_way(cluster):
        raise UsageError("somebody else is moving partitions here", hint="twinlog move status")


def run(
    cluster: Cluster, journal: MoveJournal, wanted: Intended, progress: Progress, *, at_once: int = AT_ONCE
) -> int:
    """Carry a move out to its end, or go on with it; returns how many partitions it was about."""
    journal.write(wanted)
    due = wanted.changes
    if wanted.rate_bytes is not None:
        throttles.limit(cluster, due, wanted.rate_bytes)
    task = f"moving {len(due)} partition{'' if len(due) == 1 else 's'}"
    progress.begin(task, total=len(due))
    try:
        _carry_out(cluster, journal, due, progress, task, at_once)
    except BaseException:
        # What Kafka copies already it goes on copying, and the limit must hold until then.
        progress.note("the move is unfinished; to go on: twinlog move run; to end it: twinlog move cancel")
        raise
    throttles.lift(cluster, due)
    elections.elect_preferred(cluster, [change.place for change in due])
    journal.end()
    progress.end(task)
    return len(due)


def _carry_out(
    cluster: Cluster,
    journal: MoveJournal,
    due: Sequence[Change],
    progress: Progress,
    task: str,
    at_once: int,
) -> None:
    pause, pace, said_s = threading.Event(), Pace(), time.monotonic()
    left = {change.place: change for change in due}
    while left:
        if journal.read() is None:
            raise SiteError("the move was called off", where=cluster.where, hint="twinlog move plan")
        there = _replicas(cluster, {topic for topic, _ in left})
        moving = reassignments.under_way(cluster)
        for place in [place for place in left if _is_done(left[place], there, place in moving)]:
            del left[place]
            progress.advance(task)
        free = at_once - sum(place in moving for place in left)
        waiting = [place for place in left if place not in moving][: max(0, free)]
        if waiting:
            reassignments.begin(cluster, {place: left[place].after for place in waiting})
        if time.monotonic() - said_s > SAY_EVERY_S:
            said_s = time.monotonic()
            pace.see(said_s, sum(each.size_bytes - each.copied_bytes for each in under_way(cluster)))
            progress.note(f"{len(left)} partitions to go; of those on their way {pace.sentence()}")
        if left:
            pause.wait(LOOK_AGAIN_S)


def _is_done(change: Change, there: Assignment, is_moving: bool) -> bool:
    # A topic that was deleted meanwhile has nothing left to move.
    return not is_moving and there.get(change.place, change.after) == change.after


def _replicas(cluster: Cluster, names: Collection[str]) -> Assignment:
    found = topics.describe(cluster, sorted(names))
    return {(topic.name, part.index): part.replicas for topic in found for part in topic.partitions}


def under_way(cluster: Cluster) -> list[Moving]:
    """What Kafka is moving now, and how much of it is there."""
    moving = reassignments.under_way(cluster)
    if not moving:
        return []
    held: dict[tuple[int, TopicPartition], int] = {}
    for directory in logdirs.describe(cluster):
        for place, size in directory.size_bytes.items():
            held[directory.broker_id, place] = size
    found = []
    for place, each in sorted(moving.items()):
        copied = [held.get((broker, place), 0) for broker in each.adding]
        size = max((held.get((broker, place), 0) for broker in each.replicas), default=0)
        found.append(Moving(*place, each.adding, each.removing, size * len(copied), sum(copied)))
    return found


def cancel(cluster: Cluster, journal: MoveJournal) -> tuple[int, int]:
    """Call a move off; returns how many partitions stay where they were, and how many limits went."""
    found = journal.read()
    journal.end()  # first: who carries it out would begin the next partitions
    moving = reassignments.under_way(cluster)
    reassignments.cancel(cluster, moving)
    return len(moving), throttles.lift(cluster, found.changes if found is not None else None)


def throttle(cluster: Cluster, journal: MoveJournal, rate_bytes: int | None) -> int:
    """Give a move that is under way another limit, or none; returns how many partitions it holds for."""
    found = journal.read()
    if found is not None:
        journal.write(replace(found, rate_bytes=rate_bytes))
    due = found.changes if found is not None else _of_others(cluster)
    if rate_bytes is None:
        throttles.lift(cluster, due)
    else:
        throttles.limit(cluster, due, rate_bytes)
    return len(due)


def _of_others(cluster: Cluster) -> list[Change]:
    """Changes that somebody asked Kafka for with another tool."""
    found = []
    for place, each in reassignments.under_way(cluster).items():
        before = tuple(broker for broker in each.replicas if broker not in each.adding)
        after = tuple(broker for broker in each.replicas if broker not in each.removing)
        found.append(Change(*place, before, after, 0))
    return found
