"""What a history proves to have gone wrong, record by record.

The verdict calls `check` and puts its findings against what a scenario promises. Pure: a history in,
findings out. A checker never guesses in favour of the bus; where a client cannot know, as with a write
that ended unknown, both ends are right and nothing is found. Checkers of one log and of both logs are
here; those of consumers and their groups are in `progress`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from twinlog.drills import progress
from twinlog.drills.finding import Finding, Kind
from twinlog.drills.history import Happening, Outcome, Partition, Write
from twinlog.drills.index import ACK_ON_ITS_WAY_S, Fate, Index, where
from twinlog.drills.retries import Retries

_Sent = tuple[int, int, Write]  # its number in the order of sends, its offset


def check(index: Index) -> list[Finding]:
    """Run every checker over a history."""
    return [finding for checker in CHECKERS for finding in checker(index)]


def lost(index: Index) -> Iterator[Finding]:
    """Acknowledged writes that the active does not have, or has only because salvage brought them back."""
    if index.active in index.unread:
        return
    for value, write in index.writes.items():
        places = index.places.get(value)
        kept = index.salvaged.get(value)
        # Salvage may have it from a first try that nobody answered; what counts is where it was acknowledged.
        if places and (kept is None or index.position_of(write) in places):
            continue
        if not index.is_acknowledged(write):
            continue
        if kept is None:
            yield _about(index, write, Kind.LOST, "acknowledged, and the active does not have it")
        else:
            back = " and written again" if places else ""
            yield _about(index, write, Kind.SALVAGED, f"acknowledged, lost, and found in salvage{back}")


def duplicated(index: Index) -> Iterator[Finding]:
    """Values that stand in the log more than once."""
    retries = Retries(index)
    for value, places in index.places.items():
        if len(places) == 1:
            continue
        write = index.writes.get(value)
        at = ", ".join(where(place) for place in sorted(places))
        why = "" if write is None else retries.why_twice(write, places)
        kind = Kind.REPEATED if why else Kind.DUPLICATED
        what = f"stands {len(places)} times in the log, at {at}" + (f": {why}" if why else "")
        yield Finding(kind, what, value, *_who(write), sorted(places)[1], index.last_seen(value))


def reordered(index: Index) -> Iterator[Finding]:
    """Writes of one client with one key that do not stand in the order in which they were sent.

    A client that is not idempotent and has several requests in flight overtakes itself when it tries again.
    """
    lines: dict[tuple[str, str, int, str | None], list[_Sent]] = defaultdict(list)
    for value, places in index.places.items():
        write = index.writes.get(value)
        if write is None or not index.is_acknowledged(write):
            continue
        if write.sends > 1 or value in index.salvaged:
            continue  # written again on purpose, and therefore later
        topic, partition, offset = places[0] if len(places) == 1 else min(places)
        lines[write.client, topic, partition, write.key].append((_number(value), offset, write))
    retries = Retries(index)
    for sent in lines.values():
        sent.sort(key=lambda one: one[0])
        if all(one[1] < next_[1] for one, next_ in pairwise(sent)):
            continue
        for place in _out_of_order([offset for _, offset, _ in sent]):
            write = sent[place][2]
            what = f"its key {write.key!r} stands in another order than {write.client} sent it"
            if _is_displaced_by_a_retry(retries, sent, place):
                what += ", because it tried again with other requests in flight"
                yield _about(index, write, Kind.SHUFFLED, what)
            else:
                yield _about(index, write, Kind.REORDERED, what)


def phantom(index: Index) -> Iterator[Finding]:
    """Values in a log that nobody sent, or whose client was told that they were not written."""
    silent = {write.client for write in index.history.writes if write.start_s is None}
    seen: set[str] = set()
    for site, log in index.logs.items():
        for (topic, partition), values in log.items():
            for offset, value in values.items():
                write = index.writes.get(value)
                if (write is not None and write.outcome is not Outcome.FAILED) or value in seen:
                    continue
                seen.add(value)
                place = (topic, partition, offset)
                if write is not None:
                    kind, what = Kind.PHANTOM, "its client was told that it was not written"
                elif value.rpartition(":")[0] in silent:
                    kind, what = (
                        Kind.UNREPORTED,
                        "its client never told of it (it tells of acknowledgements only)",
                    )
                else:
                    kind, what = Kind.PHANTOM, "nobody sent it"
                what = f"in the log of {site}, but {what}"
                yield Finding(kind, what, value, *_who(write), place, index.last_seen(value))


def diverged(index: Index) -> Iterator[Finding]:
    """Positions where the logs of the active and of another site differ, and what the other one lacks."""
    if index.unread:
        return
    for site in sorted((index.to_be_read | index.logs.keys()) - {index.active}):
        log = index.logs.get(site, {})
        for partition in sorted(index.log.keys() | log.keys()):
            yield from _compared(index, partition, index.log.get(partition, {}), site, log.get(partition, {}))
        yield from _ends(index, site)


def unequal(index: Index) -> Iterator[Finding]:
    """The standby had the time to get even, and did not."""
    for event in index.events(Happening.UNEQUAL):
        yield Finding(Kind.BEHIND, event.text)


def not_read(index: Index) -> Iterator[Finding]:
    """Sites of which nobody knows what they hold in the end."""
    for site in sorted(index.unread):
        yield Finding(Kind.NOT_READ, f"{site} was to be read from end to end when all was over, and was not")


def stale(index: Index) -> Iterator[Finding]:
    """Writes that a site acknowledged after another one had opened."""
    for write in index.history.writes:
        opening = None if write.end_s is None else index.opening_before(write.end_s)
        if opening is None or write.end_s is None or not index.is_late(write):
            continue
        began_after = write.start_s is not None and write.start_s > opening.time_s
        late_s = write.end_s - opening.time_s
        if began_after or late_s > ACK_ON_ITS_WAY_S:
            site, new = index.site_of(write), opening.data["site"]
            what = f"{site} acknowledged it {late_s:.3f} s after {new} had opened"
            yield _about(index, write, Kind.STALE, what)


def torn(index: Index) -> Iterator[Finding]:
    """Records that are missing while others of their transaction are there."""
    whole: dict[str, list[Write]] = defaultdict(list)
    for write in index.history.writes:
        if write.transaction is not None and write.outcome is Outcome.OK:
            whole[write.transaction].append(write)
    for name, writes in whole.items():
        missing = [write for write in writes if write.value not in index.places]
        if len(missing) == len(writes) or index.fates.get(name) is Fate.ABORTED:
            continue
        for write in missing:
            here = len(writes) - len(missing)
            what = f"missing, while {here} of the {len(writes)} records of transaction {name} are there"
            yield _about(index, write, Kind.TORN, what)


def aborted(index: Index) -> Iterator[Finding]:
    """Records of aborted transactions that readers of committed records see."""
    for write in index.history.writes:
        if write.transaction is None or write.value not in index.places:
            continue
        if index.fates.get(write.transaction) is Fate.ABORTED:
            what = f"visible, though transaction {write.transaction} was aborted"
            yield _about(index, write, Kind.ABORTED, what)


def moved(index: Index) -> Iterator[Finding]:
    """Writes that stand at another position than the one that was acknowledged."""
    for value, places in index.places.items():
        write = index.writes.get(value)
        if write is None or value in index.salvaged or not index.is_acknowledged(write):
            continue
        told = index.position_of(write)
        if told is not None and told not in places:
            what = f"acknowledged at {where(told)}, and stands at {where(min(places))}"
            yield _about(index, write, Kind.MOVED, what)


CHECKERS: tuple[Callable[[Index], Iterator[Finding]], ...] = (
    lost,
    duplicated,
    reordered,
    phantom,
    diverged,
    unequal,
    not_read,
    moved,
    stale,
    torn,
    aborted,
    *progress.CHECKERS,
)


def _about(index: Index, write: Write, kind: Kind, what: str) -> Finding:
    place = min(index.places.get(write.value, ()), default=index.position_of(write))
    return Finding(kind, what, write.value, write.client, write.acks, place, index.last_seen(write.value))


def _who(write: Write | None) -> tuple[str, str]:
    return ("", "") if write is None else (write.client, write.acks)


def _number(value: str) -> int:
    tail = value.rpartition(":")[2]
    return int(tail) if tail.isdecimal() else -1


def _is_displaced_by_a_retry(retries: Retries, sent: list[_Sent], place: int) -> bool:
    """True if for each pair that it is in the wrong order with the earlier one was sent again.

    That one is answered after the one that overtook it, because it was appended after it.
    """
    _, offset, write = sent[place]
    overtaken = [(one, write) for _, at, one in sent[:place] if at > offset]
    overtaken += [(write, one) for _, at, one in sent[place + 1 :] if at < offset]
    return all(
        not late.idempotent and late.time_s >= early.time_s and retries.can_have_been(late)
        for late, early in overtaken
    )


def _out_of_order(offsets: list[int]) -> list[int]:
    """The fewest places that must go so that the rest ascends."""
    tails: list[int] = []  # the smallest last offset of an ascending row of each length
    ends: list[int] = []
    before: list[int] = []
    for place, offset in enumerate(offsets):
        length = bisect_left(tails, offset)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [offset]
        ends[length : length + 1] = [place]
    kept = set()
    place = ends[-1] if ends else -1
    while place >= 0:
        kept.add(place)
        place = before[place]
    return [place for place in range(len(offsets)) if place not in kept]


def _compared(
    index: Index, partition: Partition, active: dict[int, str], site: str, other: dict[int, str]
) -> Iterator[Finding]:
    """How one partition at another site differs from the active's.

    From the first offset on: no drill deletes records, a site that returns is cut at its end or filled
    from where the active's log begins, and so both begin alike.
    """
    last = max(other, default=-1)
    for offset in sorted(active.keys() | other.keys()):
        here, there = active.get(offset), other.get(offset)
        if here == there:
            continue
        position = (*partition, offset)
        if there is None and offset > last:
            kind, what = Kind.BEHIND, f"{site} does not have it yet"
        else:
            kind = Kind.DIVERGED
            what = f"{index.active} has {here or 'nothing'} there, {site} has {there or 'nothing'}"
        value = here or there or ""
        yield Finding(kind, what, value, *_who(index.writes.get(value)), position, index.last_seen(value))


def _ends(index: Index, site: str) -> Iterator[Finding]:
    """Partitions that begin or end elsewhere than the active's, where no record shows it."""
    for place, (first, end) in sorted(index.extents.get(site, {}).items()):
        active_first, active_end = index.extents.get(index.active, {}).get(place, (first, end))
        if (first, end) == (active_first, active_end):
            continue
        there, here = index.logs.get(site, {}).get(place, {}), index.log.get(place, {})
        if there != here:
            continue  # its records were found to differ
        kind = Kind.BEHIND if first == active_first and end < active_end else Kind.DIVERGED
        what = f"{site} has {first} to {end}, {index.active} has {active_first} to {active_end}"
        yield Finding(kind, f"{what}, and no record between", position=(*place, min(end, active_end)))
