"""`twinlog recover`: what the bus remembers, made again from its disks and its sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Part, Table
from twinlog.errors import Findings, UsageError

if TYPE_CHECKING:
    from twinlog.traffic.recovery import Recovered


@frame.command(
    example="""
    twinlog recover
    twinlog recover --yes
    """,
    confirms=True,
)
@click.option("--active", metavar="SITE", help="The active site, where nobody can be asked which it is.")
def command(ctx: frame.Context, active: str | None) -> None:
    """Rebuild the bus's state file, when it is lost or older than the sites.

    Node ids, ports and disks are read from the nodes' directories; roles and terms from the sites that
    answer, and from the disks of those that do not run. Keys and passwords must still be there. It shows
    what it found and in what the old state differs, and writes only with --yes. It starts nothing.
    """
    from twinlog.traffic import promotions, recovery

    home = home_of(ctx, warn=True)
    if active is not None:
        home.chosen(active)
    with home.state_file.locked("recover"):
        found = recovery.recover(home, active)
        if not found.differences:
            raise UsageError(
                "the state agrees with the disks and the sites: there is nothing to recover",
                where=str(home.state_file.path),
                hint="twinlog status",
            )
        if ctx.yes:
            home.state_file.write(found.state)
            if found.forgotten is not None:
                promotions.note(home, found.forgotten)
    for remark in found.remarks:
        ctx.progress.note(remark)
    for site in (site for site, told in found.told.items() if told.by is not recovery.Voice.SITE):
        command = "return" if site in found.state.lost else "up"
        ctx.progress.note(f"site {site} does not answer; next: twinlog {command}")
    ctx.emit(*_parts(found))
    if not ctx.yes:
        raise Findings("nothing was changed", where=str(home.state_file.path), hint="twinlog recover --yes")


def _parts(found: Recovered) -> list[Part]:
    rows = [
        {
            "site": site,
            "role": "active" if site == found.state.active else "standby",
            "lost": site in found.state.lost,
            "term": found.state.term,
            "told_by": told.by,
            "cluster_id": known.cluster_id if (known := found.state.sites.get(site)) else None,
            "nodes": sorted(known.nodes) if known else [],
            "trouble": told.trouble,
        }
        for site, told in found.told.items()
    ]
    sites = Table(
        [
            Column("site"),
            Column("role"),
            Column("lost"),
            Column("term", right=True),
            Column("told_by"),
            Column("cluster_id"),
            Column("nodes"),
            Column("trouble"),
        ],
        rows,
        name="sites",
    )
    columns = [Column("what"), Column("remembered"), Column("found")]
    return [sites, Table(columns, found.differences, name="differences")]
