"""Moving a group to other offsets: first a plan, then the change.

For `twinlog group reset`. The plan says for every partition where the group goes on now and where it would;
nothing is changed by it. A group that has members is refused, because they would go on where they are
and commit over the change. Offsets never leave what a partition holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from twinlog.errors import SiteError, UsageError
from twinlog.ops import spans
from twinlog.ops.group_lag import SHARE, positions
from twinlog.ops.spans import Bounds, Where
from twinlog.wire import codes, groups, share_offsets
from twinlog.wire.cluster import Cluster
from twinlog.wire.groups import Committed, Group
from twinlog.wire.offsets import TopicPartition


@dataclass(frozen=True)
class Move:
    """What would become of one partition."""

    topic: str
    partition: int
    before: int | None  # None if the group has not committed there
    after: int
    end: int

    @property
    def records(self) -> int | None:
        """How many records are read again (below zero) or passed over."""
        return None if self.before is None else self.after - self.before


def shifted(
    before: Mapping[TopicPartition, int], by: int, held: Mapping[TopicPartition, Bounds]
) -> list[Move]:
    """Every committed offset moved by so many records, within what its partition holds."""
    return [
        Move(*place, offset, max(held[place].start, min(held[place].end, offset + by)), held[place].end)
        for place, offset in sorted(before.items())
        if place in held
    ]


def moved_to(
    before: Mapping[TopicPartition, int],
    after: Mapping[TopicPartition, int],
    held: Mapping[TopicPartition, Bounds],
) -> list[Move]:
    """Every partition moved to an offset of its own."""
    return [
        Move(*place, before.get(place), offset, held[place].end) for place, offset in sorted(after.items())
    ]


def plan(
    cluster: Cluster, group: Group, places: Collection[TopicPartition], *, to: Where | None, by: int | None
) -> list[Move]:
    """What a reset would do; without `places`, in all partitions that the group has committed."""
    before = positions(cluster, [group]).get(group.name, {})
    wanted = tuple(places) or tuple(before)
    if not wanted:
        raise UsageError(
            f"group '{group.name}' has committed nothing, and no topic was named",
            hint=f"twinlog group reset {group.name} --topic NAME --to beginning",
        )
    held = spans.bounds_of(cluster, wanted)
    if to is not None:
        return moved_to(before, spans.offsets_of(cluster, to, held), held)
    return shifted({place: before[place] for place in wanted if place in before}, by or 0, held)


def carry_out(cluster: Cluster, group: Group, moves: Collection[Move]) -> None:
    """Set the offsets; raises with what Kafka said of the first partition that was refused."""
    refuse_members(group, cluster.where)
    offsets = {(move.topic, move.partition): move.after for move in moves}
    if group.type == SHARE:
        told = share_offsets.alter(cluster, {group.name: offsets})
    else:
        committed = {place: Committed(offset) for place, offset in offsets.items()}
        told = groups.commit(cluster, {group.name: committed})
    for (topic, index), code in told.get(group.name, {}).items():
        codes.check(
            code, None, f"setting the offset of group '{group.name}' in {topic}-{index}", cluster.where
        )


def refuse_members(group: Group, where: str) -> None:
    """Raise if somebody reads in a group: what is changed under a member is changed back by it."""
    if group.has_members:
        raise SiteError(
            f"group '{group.name}' has members ({group.state}), which would go on where they are",
            where=where,
            hint=f"stop them first: twinlog group members {group.name}",
        )
