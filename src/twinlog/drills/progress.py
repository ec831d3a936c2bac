"""Whether consumers went on where they should: nothing skipped, nothing read again after its commit.

`check` runs these checkers. A group is followed partition by partition, whoever of its members reads.
After a move it may go on from its committed offset or from its own position; both are right as long as
every record is handed out and none again that was committed. Records are told apart by value, because
after a failover an offset can hold another record than the one that was read there before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from twinlog.drills.finding import Finding, Kind
from twinlog.drills.history import Commit, Event, Outcome, Read, Write
from twinlog.drills.index import ACK_ON_ITS_WAY_S, Index, Position

STANDBY_GROUPS = "standby."  # the names of groups that are meant to read at the standby
# So long Java's consumer waits for the answer to a commit (default.api.timeout.ms) before it hands out what
# it has fetched meanwhile; others wait less.
LONGEST_HELD_S = 60.0
Line = tuple[str, str, int]  # group, topic, partition


def rewound(index: Index) -> Iterator[Finding]:
    """Commits of a group that are below an earlier one."""
    highest: dict[Line, Commit] = {}
    for commit in index.history.commits:
        if commit.outcome is not Outcome.OK:
            continue
        line = (commit.group, commit.topic, commit.partition)
        before = highest.get(line)
        if before is not None and commit.offset < before.offset:
            what = (
                f"group {commit.group} committed {commit.offset} after {index.at(commit.time_s)}, "
                f"and {before.offset} before, after {index.at(before.time_s)}"
            )
            position = (commit.topic, commit.partition, commit.offset)
            yield Finding(Kind.REWOUND, what, client=commit.client, position=position, last_seen=what)
        else:
            highest[line] = commit


def reread(index: Index) -> Iterator[Finding]:
    """Records that a group got again after it had committed past them."""
    commits = _commits(index)
    handed: dict[Line, set[str]] = defaultdict(set)
    next_commit: dict[Line, int] = defaultdict(int)
    committed: dict[Line, int] = defaultdict(int)
    for read in index.history.reads:
        if read.group is None:
            continue
        line = (read.group, read.topic, read.partition)
        row, at = commits.get(line, []), next_commit[line]
        while at < len(row) and row[at].time_s <= read.time_s:
            if row[at].outcome is Outcome.OK:
                committed[line] = max(committed[line], row[at].offset)
            at += 1
        next_commit[line] = at
        if read.value in handed[line] and read.offset < committed[line]:
            what = f"group {read.group} got it again, and had committed {committed[line]} before"
            yield _found(index, Kind.REREAD, read, what)
        handed[line].add(read.value)


def skipped(index: Index) -> Iterator[Finding]:
    """Records between the first and the last one of a group in a partition that it never got."""
    read_at: dict[Line, dict[int, str]] = defaultdict(dict)
    handed: dict[Line, set[str]] = defaultdict(set)
    for read in index.history.reads:
        if read.group is not None:
            line = (read.group, read.topic, read.partition)
            read_at[line][read.offset] = read.value
            handed[line].add(read.value)
    for line, offsets in read_at.items():
        group, topic, partition = line
        log = index.log.get((topic, partition), {})
        still = [offset for offset, value in offsets.items() if log.get(offset) == value]
        if not still:
            continue
        first, last = min(still), max(still)
        for offset, value in log.items():
            if first < offset < last and value not in handed[line]:
                what = f"group {group} went past it and never got it"
                yield _finding(index, Kind.SKIPPED, value, (topic, partition, offset), what)


def began_late(index: Index) -> Iterator[Finding]:
    """Records that a new member of a group passed over: it began above the committed offset."""
    commits = _commits(index)
    known: set[tuple[str, Line]] = set()
    handed: dict[Line, set[str]] = defaultdict(set)
    for read in index.history.reads:
        if read.group is None:
            continue
        line = (read.group, read.topic, read.partition)
        if (read.client, line) not in known:
            known.add((read.client, line))
            log = index.log.get((read.topic, read.partition), {})
            # If the log has another record there now, nothing can be said about the ones before it.
            possible = (
                _possible(commits.get(line, []), read.time_s) if log.get(read.offset) == read.value else []
            )
            for offset in range(max(possible, default=read.offset), read.offset):
                # What nobody in the group ever got is found as skipped anyway.
                if offset in log and log[offset] in handed[line]:
                    what = (
                        f"{read.client} joined group {read.group} and began at {read.offset}, past the commit"
                    )
                    yield _finding(
                        index, Kind.SKIPPED, log[offset], (read.topic, read.partition, offset), what
                    )
        handed[line].add(read.value)


def stale_reads(index: Index) -> Iterator[Finding]:
    """Records that a group got from a site that was not the active any more.

    What a consumer had fetched before the move it may still hand out: a record is stale for certain if it
    was written after that, if the reader had gone on at the other site already, or after a long time.
    What is not certain, and the active does not have, is listed.
    """
    moved: dict[tuple[str, str, int], float] = {}  # by reader and partition: when it was seen to have moved
    for read in index.history.reads:
        if read.group is None or read.group.startswith(STANDBY_GROUPS):
            continue
        opening = index.opening_before(read.time_s)
        if opening is None:
            continue
        new, site = opening.data["site"], index.site_of_read(read)
        line = (read.client, read.topic, read.partition)
        is_new = _came_after(index.writes.get(read.value), opening)
        if site is None or site == new:
            if is_new:
                moved[line] = opening.time_s
            continue
        late_s = read.time_s - opening.time_s
        if is_new or moved.get(line) == opening.time_s or late_s > LONGEST_HELD_S:
            yield _found(index, Kind.STALE, read, f"read at {site} {late_s:.3f} s after {new} had opened")
        elif index.is_elsewhere(read):
            what = f"{site} alone had it, and {read.client} got it {late_s:.3f} s after {new} had opened"
            yield _found(index, Kind.HELD, read, f"{what}: fetched before, as far as anybody can say")


def vanished(index: Index) -> Iterator[Finding]:
    """Records that a consumer with read=twin got, and that the active does not have."""
    if index.active not in index.logs:
        return
    for read in index.history.reads:
        if read.twin and read.value not in index.places:
            yield _found(index, Kind.VANISHED, read, f"{read.client} got it with read=twin, and it is gone")


CHECKERS: tuple[Callable[[Index], Iterator[Finding]], ...] = (
    rewound,
    reread,
    skipped,
    began_late,
    stale_reads,
    vanished,
)


def _came_after(write: Write | None, opening: Event) -> bool:
    """True if a write was sent after a site had opened, as far as its client tells."""
    if write is None:
        return False
    if write.start_s is not None:
        return write.start_s > opening.time_s
    return write.end_s is not None and write.end_s > opening.time_s + ACK_ON_ITS_WAY_S


def _commits(index: Index) -> dict[Line, list[Commit]]:
    rows: dict[Line, list[Commit]] = defaultdict(list)
    for commit in index.history.commits:
        rows[commit.group, commit.topic, commit.partition].append(commit)
    return rows


def _possible(commits: list[Commit], time_s: float) -> list[int]:
    """What can have been the committed offset at a time: the last that was acknowledged, or any after it."""
    possible: list[int] = []
    for commit in commits:
        if commit.time_s > time_s:
            break
        if commit.outcome is Outcome.OK:
            possible = [commit.offset]
        elif commit.outcome is Outcome.UNKNOWN and possible:
            possible.append(commit.offset)
    return possible


def _found(index: Index, kind: Kind, read: Read, what: str) -> Finding:
    return _finding(index, kind, read.value, (read.topic, read.partition, read.offset), what)


def _finding(index: Index, kind: Kind, value: str, position: Position, what: str) -> Finding:
    write = index.writes.get(value)
    client, acks = (write.client, write.acks) if write else ("", "")
    return Finding(kind, what, value, client, acks, position, index.last_seen(value))
