"""Which topics are mirrored, and what is in the way of the others. Pure.

The link's driver asks every few seconds, shows the words in its status, and mirrors the partitions.
What the file declares is mirrored unless it says otherwise; beside that, what patterns mean. A topic
that was deleted at the active is kept at the standby; one that was deleted and made again is not
copied over the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from twinlog.mirror.memory import Twins
from twinlog.mirror.track import TopicPartition
from twinlog.spec.model import Bus
from twinlog.spec.patterns import is_meant
from twinlog.wire.topics import TopicState

KAFKAS_OWN = "__*"


class Case(StrEnum):
    """How a topic stands."""

    MIRRORED = "mirrored"
    ABSENT = "absent"  # the active has none
    MISSING = "missing"  # the standby has none
    NARROW = "narrow"  # the standby has fewer partitions
    WIDE = "wide"  # the standby has more partitions
    DELETED = "deleted"  # at the active; the standby still has it
    REMADE = "made again"  # at the active; the standby has the old one


class Followed(NamedTuple):
    """One topic: how it stands, how many of its partitions are mirrored, and words for the status."""

    topic: str
    case: Case
    partitions: int = 0
    words: str = ""


@dataclass(frozen=True)
class Wanted:
    """What is to be mirrored: declared topics, and others by patterns; some never."""

    declared: frozenset[str] = frozenset()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    never: frozenset[str] = frozenset()

    @classmethod
    def of(cls, bus: Bus) -> Self:
        """What a file wants."""
        mirrored = frozenset(name for name, topic in bus.topics.items() if topic.mirror)
        others = frozenset(bus.topics) - mirrored
        return cls(mirrored, bus.link.include, bus.link.exclude, others)

    def means(self, topic: str) -> bool:
        """True if a topic of this name is to be mirrored."""
        if topic in self.declared:
            return True
        return topic not in self.never and is_meant(topic, self.include, (*self.exclude, KAFKAS_OWN))


@dataclass(frozen=True)
class Selection:
    """All topics that are wanted, in the order of names."""

    topics: tuple[Followed, ...]
    twins: Mapping[str, Twins]  # of those that are mirrored

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Every partition that is mirrored."""
        return tuple((one.topic, number) for one in self.topics for number in range(one.partitions))

    @property
    def words(self) -> dict[str, str]:
        """What is to be said, by topic."""
        return {one.topic: one.words for one in self.topics if one.words}

    def names(self, case: Case) -> tuple[str, ...]:
        """The topics that stand like that."""
        return tuple(one.topic for one in self.topics if one.case is case)


def selection(
    active: Iterable[TopicState],
    standby: Iterable[TopicState],
    wanted: Wanted,
    memory: Mapping[str, Twins],
) -> Selection:
    """How each wanted topic stands; `memory` has the ids of those that were mirrored before."""
    here = {topic.name: topic for topic in active if not topic.internal}
    there = {topic.name: topic for topic in standby if not topic.internal}
    names = {name for name in (*here, *memory) if wanted.means(name)} | wanted.declared
    judged = [_judge(name, here.get(name), there.get(name), memory.get(name)) for name in sorted(names)]
    # A topic that only a pattern means, and that is gone everywhere, is no news.
    kept = [one for one in judged if one.case is not Case.ABSENT or one.topic in wanted.declared]
    twins = {one.topic: Twins(here[one.topic].id, there[one.topic].id) for one in kept if one.partitions}
    return Selection(tuple(kept), twins)


def _judge(name: str, here: TopicState | None, there: TopicState | None, known: Twins | None) -> Followed:
    if here is None and there is not None and known is not None:
        return Followed(name, Case.DELETED, 0, "deleted at the active; the standby keeps what it has")
    if here is None:
        return Followed(name, Case.ABSENT, 0, "it does not exist at the active")
    if there is None:
        return Followed(name, Case.MISSING, 0, "it does not exist at the standby")
    # With another topic at the standby too, both are new, and the start check looks at them.
    if known is not None and known.standby == there.id and known.active != here.id:
        words = "deleted and made again at the active; delete it at the standby to mirror the new one"
        return Followed(name, Case.REMADE, 0, words)
    ours, theirs = len(here.partitions), len(there.partitions)
    if theirs < ours:
        return Followed(name, Case.NARROW, theirs, f"the standby has {theirs} of {ours} partitions")
    if theirs > ours:
        return Followed(name, Case.WIDE, ours, f"the standby has {theirs} partitions, the active {ours}")
    return Followed(name, Case.MIRRORED, ours)
