"""`twinlog elect`: have partitions led again by their preferred brokers."""

from __future__ import annotations

import click

from twinlog.cli import frame
from twinlog.cli.output import Column, Table
from twinlog.cli.reach import reached, site_options
from twinlog.errors import Findings


@frame.command(
    example="""
    twinlog elect --dry-run
    twinlog elect orders
    """
)
@click.argument("names", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Only show whose leader would move.")
@site_options
def command(
    ctx: frame.Context,
    names: tuple[str, ...],
    dry_run: bool,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Move the leaders of all partitions, or of those of some topics, to the first of their replicas.

    After restarts some brokers lead more than others; this balances them again. Clients notice a
    moment's pause. A broker that is down or out of sync does not get its partitions: exit code 3.
    """
    from twinlog.ops import catalogue
    from twinlog.wire import elections, topics

    with reached(ctx, site, user, timeout) as reach:
        found = catalogue.existing(reach.cluster, names) if names else topics.describe(reach.cluster)
        astray = {
            (topic.name, part.index): part
            for topic in found
            for part in topic.partitions
            if part.replicas and part.leader != part.replicas[0]
        }
        refused = {} if dry_run else elections.elect_preferred(reach.cluster, astray)
    rows = [
        {
            "topic": place[0],
            "partition": place[1],
            "leader": part.leader if part.has_leader else None,
            "preferred": part.replicas[0],
            "refused": refused.get(place, ""),
        }
        for place, part in sorted(astray.items())
    ]
    columns = [Column("topic"), Column("partition", right=True), Column("leader", "from", right=True)]
    columns += [Column("preferred", "to", right=True), Column("refused")]
    ctx.emit(Table(columns, rows, empty="every partition is led by its preferred broker"))
    ill = [place for place, why in refused.items() if why]
    if ill:
        raise Findings(f"{len(ill)} leaders did not move", hint="are all brokers up? twinlog status")
