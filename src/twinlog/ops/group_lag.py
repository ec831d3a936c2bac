"""How far groups are behind: in records, in seconds, and since when they committed last.

For the group commands. Everything is read now, in a few questions for all groups together: what they
committed, what their members were given, where partitions end, when the next unread record was written,
and the last commits. What cannot be known (a topic that is gone, a partition without a leader, one that
a member reads and never committed) is None and never zero.
Lag in seconds is the age of the oldest record that the group has not read.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from twinlog.errors import KafkaError, TwinlogError
from twinlog.ops.group_status import Status, judge, worst
from twinlog.wire import commits, excerpts, groups, offsets, share_offsets, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.commits import Commit
from twinlog.wire.groups import Group
from twinlog.wire.offsets import End, TopicPartition
from twinlog.wire.watermarks import watermarks

SHARE = "share"
Place = tuple[str, TopicPartition]  # group, partition
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class PlaceLag:
    """One partition that a group reads."""

    group: str
    topic: str
    partition: int
    committed: int | None  # None where a member reads and has committed nothing
    end: int | None
    lag_records: int | None
    lag_s: float | None
    commit_age_s: float | None  # None where no commit of it is left to look at
    status: Status


@dataclass(frozen=True)
class GroupLag:
    """One group: its sums and its worst place."""

    group: str
    type: str
    state: str
    partitions: int
    lag_records: int | None
    lag_s: float | None
    commit_age_s: float | None
    status: Status
    places: tuple[PlaceLag, ...]


def observe(cluster: Cluster, wanted: Collection[Group]) -> list[GroupLag]:
    """Look at these groups now."""
    given = assignments(cluster, wanted)  # first: what is committed meanwhile then counts as committed
    standing = positions(cluster, wanted)
    committed = {(group, place): at for group, found in standing.items() for place, at in found.items()}
    read = committed.keys() | {(group, place) for group, places in given.items() for place in places}
    ends = _visible_ends(cluster, {place for _, place in read}, {place for _, place in committed})
    history = _history(cluster)
    now_ms = time.time_ns() // 1_000_000
    lags = known_lags(read, committed, ends, _starts(cluster, read - committed.keys(), ends))
    unread = {place: committed[place] for place, lag in lags.items() if lag}
    written_ms = in_rounds(unread, lambda part: excerpts.times_ms(cluster, part))
    members = {group.name: group.has_members for group in wanted}
    judged = _judged(cluster, lags, history, members, now_ms)
    by_group: dict[str, list[PlaceLag]] = defaultdict(list)
    for name, place in sorted(read):
        lag, last = lags.get((name, place)), history.get((name, place), ())
        by_group[name].append(
            PlaceLag(
                name,
                *place,
                committed=committed.get((name, place)),
                end=ends.get(place),
                lag_records=lag,
                lag_s=_seconds(now_ms, written_ms.get((name, place)))
                if lag
                else (None if lag is None else 0.0),
                commit_age_s=_seconds(now_ms, last[-1].time_ms) if last else None,
                status=judged.get((name, place), Status.UNKNOWN),
            )
        )
    return [summed(group, tuple(by_group[group.name])) for group in wanted]


def known_lags(
    read: Iterable[Place],
    committed: Mapping[Place, int],
    ends: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
) -> dict[Place, int]:
    """How many records each place is behind, where that can be said.

    Without a commit nobody outside knows where a member stands; only where a partition holds no record
    there is nothing to be behind of.
    """
    found: dict[Place, int] = {}
    for name, place in read:
        end, offset = ends.get(place), committed.get((name, place))
        if end is None:
            continue
        if offset is not None:
            found[(name, place)] = max(0, end - offset)
        elif place in starts and starts[place] >= end:
            found[(name, place)] = 0
    return found


def positions(cluster: Cluster, wanted: Collection[Group]) -> dict[str, dict[TopicPartition, int]]:
    """Where each group goes on: what it committed, or where a share group begins."""
    shares = [group.name for group in wanted if group.type == SHARE]
    others = [group.name for group in wanted if group.type != SHARE]
    found: dict[str, dict[TopicPartition, int]] = {}
    if others:
        told = groups.committed(cluster, others)
        found |= {name: {place: one.offset for place, one in theirs.items()} for name, theirs in told.items()}
    if shares:
        found |= share_offsets.describe(cluster, shares)
    return found


def assignments(cluster: Cluster, wanted: Collection[Group]) -> dict[str, set[TopicPartition]]:
    """What members of groups were given to read, whether or not they committed anything.

    Groups that the asker may not look into are left out, as `groups.describe` leaves out streams groups.
    """
    names = [group.name for group in wanted if group.has_members]
    try:
        found = groups.describe(cluster, names)
    except KafkaError as error:
        if not _is_refused(error):
            raise
        found = {}  # one refusal must not hide the others
        for name in names:
            try:
                found |= groups.describe(cluster, [name])
            except KafkaError as refusal:
                if not _is_refused(refusal):
                    raise
    return {
        name: {place for member in one.members for place in member.assigned} for name, one in found.items()
    }


def _visible_ends(
    cluster: Cluster, places: set[TopicPartition], committed: set[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where partitions end; members may have been given topics that the asker may not see."""
    try:
        return _ends(cluster, places)
    except KafkaError as error:
        if not _is_refused(error):
            raise
        return _ends(cluster, committed)


def _ends(cluster: Cluster, places: set[TopicPartition]) -> dict[TopicPartition, int]:
    """Where partitions end for consumers; those that nobody can say it of are left out."""
    known = topics.describe(cluster, sorted({topic for topic, _ in places}))
    led = {
        (topic.name, part.index): part.leader
        for topic in known
        for part in topic.partitions
        if part.has_leader
    }
    cluster.believe(led)
    answers = watermarks(cluster, places & led.keys())
    return {place: end for place, end in answers.items() if not isinstance(end, TwinlogError)}


def _starts(
    cluster: Cluster, places: Iterable[Place], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Where partitions begin that have a known end; those that nobody can say it of are left out."""
    answers = watermarks(cluster, {place for _, place in places if place in ends}, End.START)
    return {place: start for place, start in answers.items() if not isinstance(start, TwinlogError)}


def _is_refused(error: KafkaError) -> bool:
    return "AUTHORIZATION" in error.code


def _history(cluster: Cluster) -> Mapping[Place, tuple[Commit, ...]]:
    try:
        return commits.recent(cluster)
    except KafkaError as error:
        # Somebody else's cluster need not let us read its own topics.
        if _is_refused(error):
            return {}
        raise


def _judged(
    cluster: Cluster,
    lags: Mapping[Place, int],
    history: Mapping[Place, tuple[Commit, ...]],
    members: Mapping[str, bool],
    now_ms: int,
) -> dict[Place, Status]:
    def status(place: Place, lag_then: int | None) -> Status:
        return judge(
            history.get(place, ()),
            lag_records=lags[place],
            lag_then=lag_then,
            now_ms=now_ms,
            has_members=members[place[0]],
        )

    found = {place: status(place, None) for place in lags}
    # Only where it matters the log is asked how far it was when the window began.
    open_ones = {
        place: history[place][0].time_ms
        for place, one in found.items()
        if one is Status.UNKNOWN and len(history.get(place, ())) > 1
    }
    ends_then = in_rounds(open_ones, lambda part: offsets.offsets_at(cluster, part))
    for place, end_then in ends_then.items():
        if end_then is not None:
            found[place] = status(place, max(0, end_then - history[place][0].offset))
    return found


def in_rounds(
    asked: Mapping[Place, int], ask: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, Answer]]
) -> dict[Place, Answer]:
    """Ask about places of several groups; a request names a partition once, so groups take turns."""
    found: dict[Place, Answer] = {}
    for turn in _turns(asked):
        answers = ask({place: asked[(group, place)] for group, place in turn})
        found |= {(group, place): answers[place] for group, place in turn if place in answers}
    return found


def _turns(asked: Iterable[Place]) -> Iterator[list[Place]]:
    waiting: dict[TopicPartition, list[Place]] = defaultdict(list)
    for place in asked:
        waiting[place[1]].append(place)
    while waiting:
        yield [theirs.pop() for theirs in waiting.values()]
        waiting = {place: theirs for place, theirs in waiting.items() if theirs}


def summed(group: Group, places: tuple[PlaceLag, ...]) -> GroupLag:
    """One group from its places; a group of which no place is known has no lag that is known."""
    lags = [place.lag_records for place in places if place.lag_records is not None]
    seconds = [place.lag_s for place in places if place.lag_s is not None]
    ages = [place.commit_age_s for place in places if place.commit_age_s is not None]
    known = len(lags) == len(places) > 0
    return GroupLag(
        group=group.name,
        type=group.type,
        state=group.state,
        partitions=len(places),
        lag_records=sum(lags) if known else None,
        lag_s=max(seconds, default=0.0) if known else None,
        commit_age_s=min(ages, default=None),
        status=worst(place.status for place in places),
        places=places,
    )


def _seconds(now_ms: int, then_ms: int | None) -> float | None:
    return None if then_ms is None else round(max(0, now_ms - then_ms) / 1000, 3)
