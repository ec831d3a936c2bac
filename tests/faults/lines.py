"""What Kafka's console consumer printed at both sites, held against each other. Pure.

`reading` runs the consumer with times, partitions, offsets, headers and keys printed, so a line is a
record as any reader sees it. Values begin with their topic, because the consumer does not print that.
Nothing of the product takes part here: the verdict must not rest on what it judges.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

MOST_FINDINGS = 20  # of one comparison: by then it is clear
SEPARATOR = "|"
TIMES = ("CreateTime:", "LogAppendTime:")  # what the line of a record begins with


class Place(NamedTuple):
    """A partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Line(NamedTuple):
    """One record as it was printed."""

    offset: int
    time: str
    rest: str  # headers, key and value
    value: str


Log = dict[Place, list[Line]]


def value_of(topic: str, name: str) -> str:
    """A value that says where it belongs."""
    return f"{topic}{SEPARATOR}{name}"


def parse(printed: Iterable[str]) -> Log:
    """Lines by partition, in the order in which they were printed."""
    log: Log = defaultdict(list)
    for text in printed:
        if not text.startswith(TIMES):
            continue  # the consumer also prints why it ends
        time, partition, offset, rest = text.split("\t", 3)
        value = rest.rpartition("\t")[2]
        place = Place(value.partition(SEPARATOR)[0], int(partition.removeprefix("Partition:")))
        log[place].append(Line(int(offset.removeprefix("Offset:")), time, rest, value))
    return dict(log)


def compare(active: Log, standby: Log) -> list[str]:
    """What is lost, repeated, shifted, reordered or changed at the standby; nothing if it is the same."""
    found: list[str] = []
    for place in sorted(active.keys() | standby.keys()):
        here, there = active.get(place, []), standby.get(place, [])
        if here != there:
            found += _differences(place, here, there)
    return found[:MOST_FINDINGS]


def _differences(place: Place, here: Sequence[Line], there: Sequence[Line]) -> list[str]:
    found = [
        f"{place}: reordered: offset {after.offset} came behind {before.offset}"
        for before, after in pairwise(there)
        if after.offset <= before.offset
    ]
    by_offset = {line.offset: line for line in here}
    offsets_there = {line.offset for line in there}
    places_there: dict[str, list[int]] = defaultdict(list)
    for line in there:
        places_there[line.value].append(line.offset)
    times_here = Counter(line.value for line in here)
    for line in here:
        if line.offset in offsets_there:
            continue
        elsewhere = places_there.get(line.value)
        if elsewhere is None:
            found.append(f"{place}: lost: {line.value} of offset {line.offset}")
        else:
            found.append(f"{place}: shifted: {line.value} of offset {line.offset} is at {elsewhere}")
    for line in there:
        known = by_offset.get(line.offset)
        if known is None:
            kind = "repeated" if line.value in times_here else "foreign"
            found.append(
                f"{place}: {kind}: {line.value} at offset {line.offset}, where the active has nothing"
            )
        elif known != line:
            found.append(f"{place}: changed at offset {line.offset}: {known} is {line}")
    return found or [f"{place}: not the same, and no record says why"]


def without(log: Log, other: Log) -> Log:
    """The lines of a log that another one has not."""
    left = {}
    for place, lines in log.items():
        known = {line.offset for line in other.get(place, [])}
        if kept := [line for line in lines if line.offset not in known]:
            left[place] = kept
    return left


def against_acknowledged(
    log: Log, acknowledged: Mapping[str, tuple[str, int, int]], first: Mapping[Place, int]
) -> list[str]:
    """Acknowledged writes, by value, that do not stand where their acknowledgement said."""
    at = {(place, line.offset): line.value for place, lines in log.items() for line in lines}
    found = []
    for value, (topic, partition, offset) in acknowledged.items():
        place = Place(topic, partition)
        if offset >= first.get(place, 0) and at.get((place, offset)) != value:
            stands = at.get((place, offset), "nothing")
            found.append(f"{place}: acknowledged: {value} at offset {offset}, where {stands} stands")
    return found[:MOST_FINDINGS]
