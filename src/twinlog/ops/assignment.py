"""Which brokers hold which partition: as it is, as it shall be, and the file that Kafka's own tool takes.

Pure; used by everything about `twinlog move`. The first broker of a partition is the one that should
lead it. Files are those of kafka-reassign-partitions, read and written, so that a plan made here can be
carried out there and the other way round.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from twinlog.errors import UsageError
from twinlog.wire.offsets import TopicPartition

Replicas = tuple[int, ...]
Assignment = Mapping[TopicPartition, Replicas]
FILE_VERSION = 1
ANY_DIRECTORY = "any"


@dataclass(frozen=True, order=True)
class Peer:
    """A broker that partitions may be given to."""

    id: int
    rack: str | None = None


@dataclass(frozen=True)
class Load:
    """What one broker has by an assignment."""

    broker: int
    rack: str | None
    leaders: int
    replicas: int
    size_bytes: int


@dataclass(frozen=True)
class Change:
    """One partition that is to be held by others, or in another order."""

    topic: str
    partition: int
    before: Replicas
    after: Replicas
    size_bytes: int

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return self.topic, self.partition

    @property
    def adding(self) -> Replicas:
        """Brokers that get a copy."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> Replicas:
        """Brokers that lose theirs."""
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def copied_bytes(self) -> int:
        """What has to be sent."""
        return self.size_bytes * len(self.adding)


def loads(
    assignment: Assignment, peers: Collection[Peer], size_bytes: Mapping[TopicPartition, int]
) -> list[Load]:
    """What every broker has: those that there are, and those that only the assignment still names."""
    racks = {peer.id: peer.rack for peer in peers}
    named = {broker for replicas in assignment.values() for broker in replicas}
    leaders, copies, sizes = ({broker: 0 for broker in named | set(racks)} for _ in range(3))
    for place, replicas in assignment.items():
        leaders[replicas[0]] += 1
        for broker in replicas:
            copies[broker] += 1
            sizes[broker] += size_bytes.get(place, 0)
    return [
        Load(broker, racks.get(broker), leaders[broker], copies[broker], sizes[broker])
        for broker in sorted(leaders)
    ]


def changes(before: Assignment, after: Assignment, size_bytes: Mapping[TopicPartition, int]) -> list[Change]:
    """The partitions whose brokers, or their order, differ."""
    return [
        Change(*place, before[place], after[place], size_bytes.get(place, 0))
        for place in sorted(after)
        if place in before and before[place] != after[place]
    ]


def to_file(assignment: Assignment) -> str:
    """An assignment as Kafka's own tool reads it."""
    partitions = [
        {
            "topic": topic,
            "partition": index,
            "replicas": list(replicas),
            "log_dirs": [ANY_DIRECTORY] * len(replicas),
        }
        for (topic, index), replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": FILE_VERSION, "partitions": partitions}) + "\n"


def from_file(content: str, where: str) -> dict[TopicPartition, Replicas]:
    """The assignment in a file of Kafka's own tool, or of ours."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise _unusable(f"it is no JSON: {error}", where) from error
    if not isinstance(document, dict) or document.get("version") != FILE_VERSION:
        raise _unusable(f'it does not say "version": {FILE_VERSION}', where)
    entries = document.get("partitions")
    if not isinstance(entries, list):
        raise _unusable('it has no list "partitions"', where)
    found: dict[TopicPartition, Replicas] = {}
    for number, entry in enumerate(entries, start=1):
        place, replicas = _entry(entry, number, where)
        if place in found:
            raise _unusable(f"{place[0]}-{place[1]} stands in it twice", where)
        found[place] = replicas
    return found


def _entry(entry: Any, number: int, where: str) -> tuple[TopicPartition, Replicas]:
    if not isinstance(entry, dict):
        raise _unusable(f"entry {number} is no object", where)
    topic, index, replicas = entry.get("topic"), entry.get("partition"), entry.get("replicas")
    if not isinstance(topic, str) or not isinstance(replicas, list) or not _is_whole(index):
        raise _unusable(f"entry {number} lacks a topic, a partition or its replicas", where)
    if not replicas or not all(_is_whole(broker) for broker in replicas):
        raise _unusable(f"the replicas of {topic}-{index} are no list of broker ids", where)
    if len(set(replicas)) < len(replicas):
        raise _unusable(f"{topic}-{index} would have two copies on one broker", where)
    if any(directory != ANY_DIRECTORY for directory in entry.get("log_dirs") or ()):
        raise _unusable(f"{topic}-{index} is to go to a named log directory, which is not done here", where)
    return (topic, index), tuple(replicas)


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _unusable(why: str, where: str) -> UsageError:
    return UsageError(
        f"this is no file of reassignments: {why}", where=where, hint="twinlog move plan --write FILE"
    )


def refuse_unknown(wanted: Assignment, current: Assignment, peers: Sequence[Peer], where: str) -> None:
    """Raise for what a file names and a site does not have."""
    known = {peer.id for peer in peers}
    for (topic, index), replicas in sorted(wanted.items()):
        if (topic, index) not in current:
            raise UsageError(
                f"there is no partition {topic}-{index}", where=where, hint=f"twinlog topic describe {topic}"
            )
        absent = [broker for broker in replicas if broker not in known]
        if absent:
            raise UsageError(
                f"{topic}-{index} is to go to broker {absent[0]}, which is not there",
                where=where,
                hint="twinlog broker list",
            )
