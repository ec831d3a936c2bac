"""A plan of moves as `twinlog move plan` shows it: brokers before and after, changes, what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinlog.cli.output import Column, Record, Table
from twinlog.cli.sizes import readable

if TYPE_CHECKING:
    from twinlog.ops.assignment import Change, Load


def loads_table(before: Sequence[Load], after: Sequence[Load]) -> Table:
    """What each broker has before and after."""
    pairs = [(then, now) for then in before for now in after if then.broker == now.broker]
    rows = [
        {
            "broker": then.broker,
            "rack": then.rack,
            "leaders": then.leaders,
            "leaders_after": now.leaders,
            "replicas": then.replicas,
            "replicas_after": now.replicas,
            "size_bytes": then.size_bytes,
            "size_bytes_after": now.size_bytes,
        }
        for then, now in pairs
    ]
    columns = [Column("broker", right=True), Column("rack", show=lambda rack: rack or "-")]
    columns += [Column("leaders", right=True), Column("leaders_after", "after", right=True)]
    columns += [Column("replicas", "copies", right=True), Column("replicas_after", "after", right=True)]
    columns += [
        Column("size_bytes", "size", right=True, show=readable),
        Column("size_bytes_after", "after", right=True, show=readable),
    ]
    return Table(columns, rows, "brokers")


def changes_table(found: Sequence[Change]) -> Table:
    """Each partition that moves."""
    columns = [
        Column("topic"),
        Column("partition", right=True),
        Column("before"),
        Column("after"),
        Column("copied_bytes", "copied", right=True, show=readable),
    ]
    return Table(columns, found, "changes", empty="nothing to move: everything is spread well")


def cost(found: Sequence[Change]) -> Record:
    """What moving costs."""
    value = {
        "partitions": len(found),
        "copies": sum(len(change.adding) for change in found),
        "copied_bytes": sum(change.copied_bytes for change in found),
    }
    columns = [Column("partitions"), Column("copies", "new copies")]
    return Record([*columns, Column("copied_bytes", "to be copied", show=readable)], value, "cost")
