"""The start check: what the end of the standby's log shows must be what the active shows there.

Called by `start`, for many partitions at a time. The last record at the standby must be the active's
record at that offset, and whatever follows it must be nothing to see at the active too. The last
record is looked for further and further back; the further, the fewer partitions at once, because all
that is read for a look is in memory together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from twinlog.errors import TwinlogError
from twinlog.mirror import stretch
from twinlog.mirror.compare import Seen, first_difference
from twinlog.mirror.track import TopicPartition
from twinlog.wire.cluster import Cluster
from twinlog.wire.fetching import FetchLimits


class Look(NamedTuple):
    """How far back a look goes, and for how many partitions at once."""

    back: int
    together: int
    limits: FetchLimits


LOOKS = (
    Look(1, 256, stretch.SHORT),
    Look(64, 64, stretch.SHORT),
    Look(4096, 2, stretch.LONG),
    Look(1 << 18, 1, stretch.LONG),
)


class Log(NamedTuple):
    """A site, and what its topics are called there."""

    cluster: Cluster
    ids: Mapping[str, UUID]

    def read(
        self, looked_at: Iterable[Tail], look: Look
    ) -> dict[TopicPartition, dict[int, Seen] | TwinlogError]:
        """What readers are shown of these tails."""
        stretches = {tail.place: (tail.first(look.back), tail.end) for tail in looked_at}
        return stretch.records_of_many(self.cluster, self.ids, stretches, look.limits)


class Tail(NamedTuple):
    """The end of a partition at the standby."""

    place: TopicPartition
    least: int  # from here on both sites have it
    end: int
    compacted: bool

    def first(self, back: int) -> int:
        """Where a look begins that goes so far back."""
        return max(self.least, self.end - back)

    @property
    def is_empty(self) -> bool:
        """True if nothing of it is left at both sites."""
        return self.least >= self.end

    def judge(self, theirs: dict[int, Seen] | TwinlogError, ours: dict[int, Seen]) -> Verdict:
        """Whether the active shows what the standby shows."""
        if isinstance(theirs, TwinlogError):
            return Verdict(trouble=str(theirs))
        found = first_difference(theirs, ours, compacted=self.compacted)
        return Verdict(differs=f"at offset {found.offset} {found.what}" if found else "")


class Verdict(NamedTuple):
    """What came of a check, in words: how the logs differ, or why nobody can say; neither: they agree."""

    differs: str = ""
    trouble: str = ""


def check(active: Log, standby: Log, tails: Sequence[Tail]) -> dict[TopicPartition, Verdict]:
    """Compare the tails with the active."""
    verdicts = {tail.place: Verdict() for tail in tails}
    left = [tail for tail in tails if not tail.is_empty]
    for look in LOOKS:
        groups, left = _in_groups(left, look.together), []
        for group in groups:
            judged = _look(active, standby, group, look)
            verdicts |= judged
            left += [tail for tail in group if tail.place not in judged]
    return verdicts


def _look(active: Log, standby: Log, group: list[Tail], look: Look) -> dict[TopicPartition, Verdict]:
    """Verdicts on the tails whose last record is found by this look, or will be found by none."""
    ours = standby.read(group, look)
    verdicts: dict[TopicPartition, Verdict] = {}
    shown: dict[TopicPartition, dict[int, Seen]] = {}
    for tail in group:
        records = ours[tail.place]
        if isinstance(records, TwinlogError):
            verdicts[tail.place] = Verdict(trouble=str(records))
        elif records or look is LOOKS[-1] or tail.first(look.back) == tail.least:
            shown[tail.place] = records
    judged = [tail for tail in group if tail.place in shown]
    theirs = active.read(judged, look)
    return verdicts | {tail.place: tail.judge(theirs[tail.place], shown[tail.place]) for tail in judged}


def _in_groups(tails: list[Tail], size: int) -> list[list[Tail]]:
    return [tails[at : at + size] for at in range(0, len(tails), size)]
