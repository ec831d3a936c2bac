"""What `switchover`, `promote` and `return` share: a move is shown, or carried out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Record, Table

if TYPE_CHECKING:
    from twinlog.traffic.ground import Ground
    from twinlog.traffic.moves import Kind, Move


def move(ctx: frame.Context, kind: Kind, begin: Callable[[Ground], Move], *, dry_run: bool) -> None:
    """Go on with an unfinished move of this kind, or begin one; show it, or carry it out."""
    from twinlog.sites.state import SHORTLY_S
    from twinlog.traffic import beginning
    from twinlog.traffic.crossing import carry_out
    from twinlog.traffic.ground import Ground

    home = home_of(ctx, warn=True)
    home.state()
    if dry_run:
        with Ground(home, ctx.progress) as ground:
            _show(ctx, ground, beginning.unfinished(ground, kind) or begin(ground))
        return
    lock = home.state_file.locked(kind.value, wait_s=SHORTLY_S)
    with lock, Ground(home, ctx.progress) as ground:
        began = time.monotonic()
        wanted = beginning.unfinished(ground, kind) or begin(ground)
        ended = carry_out(ground, wanted)
    columns = [Column("kind", "move"), Column("source", "from"), Column("target", "to"), Column("term")]
    told = {
        "kind": ended.kind,
        "source": ended.source,
        "target": ended.target,
        "term": ended.term,
        "seconds": round(time.monotonic() - began, 1),
        "points": ended.points,
        "salvaged": ended.salvaged,
    }
    if ended.salvaged:
        columns.append(Column("salvaged"))
    ctx.emit(Record([*columns, Column("seconds")], told))


def _show(ctx: frame.Context, ground: Ground, wanted: Move) -> None:
    from twinlog.traffic.moves import STEPS, Kind

    steps = STEPS[wanted.kind][wanted.progress : -1]
    rows = [{"number": number, "step": str(step)} for number, step in enumerate(steps, 1)]
    parts: list[Table] = [Table([Column("number", "", right=True), Column("step")], rows, name="steps")]
    if wanted.kind is Kind.FAILOVER:
        parts.append(_at_risk(ground))
    if wanted.kind is Kind.RETURN:
        parts.append(_tails(ground, wanted))
    ctx.emit(*parts)


def _at_risk(ground: Ground) -> Table:
    from twinlog.traffic.risks import at_risk

    records = Column("records", "would be lost", right=True, show=_count)
    rows = [asdict(one) for one in at_risk(ground)]
    return Table([Column("topic"), records, Column("told_by", "told by")], rows, name="at_risk")


def _tails(ground: Ground, wanted: Move) -> Table:
    from twinlog.traffic.tails import tails

    records = Column("records", "salvaged at most", right=True, show=_count)
    rows = [asdict(one) for one in tails(ground, wanted)]
    return Table([Column("topic"), records, Column("then", "its logs there")], rows, name="tails")


def _count(value: int | None) -> str:
    return "unknown" if value is None else str(value)
