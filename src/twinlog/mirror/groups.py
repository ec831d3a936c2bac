"""Offsets of consumer groups, copied from the active to the standby as they stand.

The link's driver takes a turn every second or so. Offsets mean the same at both sites, so there is
nothing to translate; what matters is when not to copy: never into a group that has members at the
standby, never the groups that are the standby's or the link's own, never past the standby's log end. A
group that is further stands at that end and moves on with it: one that keeps up with an active whose
standby lags a little would else never be copied. An offset that goes back at the active goes back at the
standby too. Share groups go along with their start offsets. Groups that are gone at the active are
named, not deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from twinlog.errors import TwinlogError
from twinlog.mirror.track import TopicPartition
from twinlog.spec.patterns import ANY, is_meant
from twinlog.wire import arrivals, codes, groups, offsets, share_offsets
from twinlog.wire.cluster import Cluster
from twinlog.wire.groups import Committed, Group

LINK_GROUP = "twinlog-link-"
NEVER = ("standby.*", "twinlog-*", "__*", "")  # the standby's readers, the link, Kafka itself, nobody
BELIEVED_S = 60.0  # so long the standby is taken to hold what was set there
CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"  # types of groups

Offsets = dict[TopicPartition, Committed]


class Plan(NamedTuple):
    """What is to be set at the standby, what its log is still too short for, and groups that have members."""

    commits: dict[str, Offsets]
    waiting: dict[str, Offsets]
    occupied: tuple[str, ...]


def is_copied(name: str, include: Iterable[str] = (ANY,), exclude: Iterable[str] = ()) -> bool:
    """True if a group's offsets go along."""
    return is_meant(name, include, (*exclude, *NEVER))


def plan_commits(
    active_offsets: Mapping[str, Offsets],
    standby_offsets: Mapping[str, Offsets],
    log_ends: Mapping[TopicPartition, int],
    members: Collection[str],
) -> Plan:
    """What to set so that groups stand where they stand at the active.

    `log_ends` has the mirrored partitions at the standby, and only those are looked at; `members` has
    the groups with members there.
    """
    plan, occupied = Plan({}, {}, ()), set()
    for name, theirs in active_offsets.items():
        ours = standby_offsets.get(name, {})
        for place, wanted in theirs.items():
            if place not in log_ends or ours.get(place) == wanted:
                continue
            if name in members:
                occupied.add(name)
                continue
            possible = wanted._replace(offset=min(wanted.offset, log_ends[place]))
            if possible != wanted:
                plan.waiting.setdefault(name, {})[place] = wanted
            if ours.get(place) != possible:
                plan.commits.setdefault(name, {})[place] = possible
    return plan._replace(occupied=tuple(sorted(occupied)))


@dataclass(frozen=True)
class Turn:
    """What one turn did."""

    copied: int = 0  # offsets
    waiting: int = 0  # offsets that the standby's log does not reach yet
    occupied: tuple[str, ...] = ()  # groups that have members at the standby
    primed: tuple[str, ...] = ()  # groups of the newer protocol that were made there
    gone: tuple[str, ...] = ()  # groups that only the standby still has
    refused: Mapping[str, str] = field(default_factory=dict)  # group and why

    def __str__(self) -> str:
        parts = [f"{self.copied} offsets copied" if self.copied else "no offset has changed"]
        if self.waiting:
            parts.append(f"{self.waiting} wait for the standby's log")
        if self.occupied:
            parts.append(f"members at the standby: {', '.join(self.occupied)}")
        if self.gone:
            parts.append(f"gone at the active: {', '.join(self.gone)}")
        parts += [f"{name}: {why}" for name, why in self.refused.items()]
        return "; ".join(parts)


class GroupCopier:
    """Copies the offsets of groups; remembers what it has set, so that an idle turn only reads the active."""

    def __init__(
        self,
        active: Cluster,
        standby: Cluster,
        include: Iterable[str] = (ANY,),
        exclude: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._active = active
        self._standby = standby
        self._include = tuple(include)
        self._exclude = tuple(exclude)
        self._clock = clock
        self._known: dict[str, Offsets] = {}  # what the standby's groups have committed
        self._known_until = 0.0

    def turn(self, partitions: Collection[TopicPartition]) -> Turn:
        """Copy what has changed, for partitions that are mirrored."""
        try:
            return self._turn(frozenset(partitions))
        except TwinlogError:
            self._known.clear()  # nobody can say what was done of it
            raise

    def _turn(self, partitions: frozenset[TopicPartition]) -> Turn:
        theirs, ours = self._listed(self._active), self._listed(self._standby)
        if any(one.type == SHARE for one in theirs.values()) and not share_offsets.are_known(self._standby):
            theirs = {name: group for name, group in theirs.items() if group.type != SHARE}
        gone = tuple(sorted(ours.keys() - theirs.keys()))
        primed = self._prime(theirs, ours)
        if self._clock() >= self._known_until:
            self._known.clear()
            self._known_until = self._clock() + BELIEVED_S
        members = {name for name, group in ours.items() if group.has_members}
        for name in members:
            self._known.pop(name, None)  # they commit for themselves
        changed = {
            name: found
            for name, found in _committed(self._active, theirs, partitions).items()
            if found.items() - self._known.get(name, {}).items()
        }
        if not changed:
            return Turn(primed=primed, gone=gone)
        unknown = {name: ours.get(name, theirs[name]) for name in changed if name not in self._known}
        self._known |= _committed(self._standby, unknown, partitions)
        log_ends = offsets.log_ends(self._standby, {place for found in changed.values() for place in found})
        plan = plan_commits(changed, self._known, log_ends, members)
        refused = self._commit(plan.commits, theirs)
        return Turn(
            copied=sum(len(found) for name, found in plan.commits.items() if name not in refused),
            waiting=sum(len(found) for found in plan.waiting.values()),
            occupied=plan.occupied,
            primed=primed,
            gone=gone,
            refused=refused,
        )

    def _listed(self, cluster: Cluster) -> dict[str, Group]:
        return {
            group.name: group
            for group in groups.list_groups(cluster)
            if is_copied(group.name, self._include, self._exclude)
        }

    def _prime(self, theirs: Mapping[str, Group], ours: Mapping[str, Group]) -> tuple[str, ...]:
        """Make groups of the newer protocol exist at the standby; those without offsets vanish again."""
        wanted = []
        for name, group in theirs.items():
            there = ours.get(name)
            if group.type == CONSUMER and (
                there is None or (there.type == CLASSIC and not there.has_members)
            ):
                wanted.append(name)
        return arrivals.prime(self._standby, wanted) if wanted else ()

    def _commit(self, commits: Mapping[str, Offsets], theirs: Mapping[str, Group]) -> dict[str, str]:
        """Set offsets at the standby; gives the groups that refused some, and why."""
        shared = {name: found for name, found in commits.items() if theirs[name].type == SHARE}
        told = groups.commit(self._standby, {name: commits[name] for name in commits if name not in shared})
        told |= share_offsets.alter(
            self._standby,
            {name: {place: one.offset for place, one in found.items()} for name, found in shared.items()},
        )
        refused = {}
        for name, found in told.items():
            bad = sorted({codes.name_of(code) for code in found.values() if code != codes.NONE})
            if bad:
                refused[name] = ", ".join(bad)
                self._known.pop(name, None)
            else:
                self._known.setdefault(name, {}).update(commits[name])
        return refused


def publish_positions(active: Cluster, bus: str, positions: Mapping[TopicPartition, int]) -> None:
    """Commit where the link stands as a group at the active, so that any tool shows its lag."""
    name = LINK_GROUP + bus
    told = groups.commit(active, {name: {place: Committed(offset) for place, offset in positions.items()}})
    for (topic, partition), code in told.get(name, {}).items():
        codes.check(code, None, f"committing the link's position in {topic}-{partition}", active.where)


def _committed(
    cluster: Cluster, listed: Mapping[str, Group], partitions: frozenset[TopicPartition]
) -> dict[str, Offsets]:
    """What groups have committed for the partitions that count."""
    shared = [name for name, group in listed.items() if group.type == SHARE]
    found = groups.committed(cluster, [name for name in listed if name not in set(shared)])
    for name, starts in share_offsets.describe(cluster, shared).items():
        found[name] = {place: Committed(offset) for place, offset in starts.items()}
    return {
        name: {place: one for place, one in theirs.items() if place in partitions}
        for name, theirs in found.items()
    }
