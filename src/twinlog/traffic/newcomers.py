"""Members of groups at a switchover: how many were at the old site, and whether they came to the new one.

Used by the steps of a switchover. A client that has not left the old site when that answers again, as the
standby, stays there: it finds brokers that answer, so it never asks the bootstrap address again, and is
refused its group. Whether it has left cannot be seen at the old site's ports, because programs that need a
standby knock there too (`acks=twin`, `read=twin`); it is seen at the other site, where its group has it back.
Consumers with read=twin are left out for the same reason: they join when the standby answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.errors import TwinlogError
from twinlog.mirror.groups import is_copied
from twinlog.traffic.ground import Ground, wait
from twinlog.traffic.moves import Move
from twinlog.wire import groups
from twinlog.wire.cluster import Cluster
from twinlog.wire.groups import TWIN_READER
from twinlog.wire.members import Membership

# Clients with the printed settings ask the gate every second or so, and a group forms in a few.
WAIT_S = 15.0
LOOK_AGAIN_S = 0.25
MOST_NAMED = 3
MOST_GROUPS = 2000  # are waited for: a move is written down as one record

Counts = Mapping[str, int]  # group → members


def members(cluster: Cluster) -> dict[str, int]:
    """How many members each group has that goes along with the active role."""
    found = [one.name for one in groups.list_groups(cluster) if one.has_members and is_copied(one.name)]
    return counted(groups.describe(cluster, found[:MOST_GROUPS]))


def counted(found: Mapping[str, Membership]) -> dict[str, int]:
    """The members of groups, without those that wait for the standby."""
    counts = {
        name: sum(member.client_id != TWIN_READER for member in one.members) for name, one in found.items()
    }
    return {name: count for name, count in counts.items() if count}


def most(one: Counts, other: Counts) -> dict[str, int]:
    """The larger number of each group."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}}


def missing(before: Counts, now: Counts) -> str:
    """Which groups lack members that they had, in words; empty if none does."""
    lacking = sorted(name for name, count in before.items() if now.get(name, 0) < count)
    named = [f"{name} ({now.get(name, 0)} of {before[name]})" for name in lacking[:MOST_NAMED]]
    more = len(lacking) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def wait_for(ground: Ground, move: Move) -> None:
    """Wait until every group has at the new active as many members as it had at the old one; not for ever."""
    cluster = ground.cluster(move.target)

    def still_missing() -> str:
        lacking = missing(move.members, members(cluster)) if move.members else ""
        return f"of groups that moved, members are missing: {lacking}" if lacking else ""

    try:
        wait(still_missing, WAIT_S, f"before clients are let in at {move.source}", "", LOOK_AGAIN_S)
    except TwinlogError as error:
        # The standby must come back all the same: writes with acks=twin wait for it.
        ground.progress.note(f"{error}; whoever still waits there is refused and must be started again")
