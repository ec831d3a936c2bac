"""`twinlog plan`: the difference between the file and the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, site_option
from twinlog.cli.output import Column, Table
from twinlog.errors import Findings

if TYPE_CHECKING:
    from twinlog.ops.steps import Step


@frame.command(
    example="""
    twinlog plan
    twinlog plan --site b --prune
    """
)
@site_option
@click.option("--prune", is_flag=True, help="Also delete topics that the file does not have.")
def command(ctx: frame.Context, site: str | None, prune: bool) -> None:
    """Show what `apply` would do; changes nothing.

    Of jobs under `streams:` it shows how they are run and what that promises; one that cannot be run is
    refused, with its place in the file. Exit code 0: the sites are what the file says. 3: there are
    differences.
    """
    from twinlog.ops.apply import plan_all
    from twinlog.ops.steps import Impossible

    home = home_of(ctx, warn=True, memos=False)
    jobs = [jobs_table(ctx)] if home.bus.streams else []
    found = plan_all(home, home.chosen(site), prune=prune)
    ctx.emit(table_of(found, empty="the sites are what the file says"), *jobs)
    if found:
        noun = "difference" if len(found) == 1 else "differences"
        what = f"{len(found)} {noun} between the file and the sites"
        refused = [step for step in found if isinstance(step, Impossible)]
        if refused:
            raise Findings(f"{what}, of which {len(refused)} cannot be removed", hint=refused[0].hint)
        asked = " --yes" if all(step.destructive for step in found) else ""
        raise Findings(what, hint=f"twinlog apply{asked}")


def table_of(steps: Sequence[Step], empty: str) -> Table:
    """Steps as people and scripts read them."""
    columns = [Column("site"), Column("kind"), Column("what"), Column("is_final", "cannot be undone")]
    rows = [
        {
            "site": step.site,
            "kind": step.kind,
            "what": step.what,
            "destructive": step.destructive,
            "is_final": step.is_final,
        }
        for step in steps
    ]
    return Table(columns, rows, name="differences", empty=empty)


def jobs_table(ctx: frame.Context) -> Table:
    """How the file's jobs are run; raises if one of them cannot be."""
    from twinlog.streams import checking, planning

    loaded = frame.load_bus(ctx)
    checking.check(loaded)
    columns = [Column("job"), Column("kind"), Column("mode"), Column("guarantee"), Column("why")]
    return Table([*columns, Column("slots", right=True)], planning.plans(loaded.bus), name="jobs")
