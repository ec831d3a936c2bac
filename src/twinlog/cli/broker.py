"""`twinlog broker`: look at brokers and their disks; `broker_changes` has what changes them."""

from __future__ import annotations

import click

from twinlog.cli import broker_changes, frame
from twinlog.cli.output import Column, Table
from twinlog.cli.reach import reached, site_options
from twinlog.cli.sizes import readable
from twinlog.errors import Findings

command = frame.group("broker", "List, restart, replace, add and remove brokers.")
for _change in (broker_changes.roll, broker_changes.replace, broker_changes.add, broker_changes.remove):
    command.add_command(_change)


@frame.command(
    parent=command,
    name="list",
    example="""
    twinlog broker list
    twinlog broker list --site b -o json
    """,
)
@site_options
def list_brokers(ctx: frame.Context, site: str | None, user: str | None, timeout: float) -> None:
    """List the brokers of a site: what each leads, holds and lacks.

    Exit code 3: a broker is not up, or a copy is not in sync.
    """
    from twinlog.ops import brokers

    with reached(ctx, site, user, timeout) as reach:
        state = reach.home.state_file.read()
        ours = state is not None and reach.site in state.sites
        nodes = reach.home.layout(reach.site).brokers if ours else ()
        rows = brokers.rows(reach.cluster, nodes)
    columns = [
        Column("broker", right=True),
        Column("state"),
        Column("rack", show=lambda rack: rack or "-"),
        Column("leads", right=True),
        Column("preferred", "should lead", right=True),
        Column("replicas", "copies", right=True),
        Column("behind", right=True),
        Column("size_bytes", "size", right=True, show=readable),
        Column("address"),
    ]
    ctx.emit(Table(columns, rows, empty="no brokers"))
    ill = [row for row in rows if row.state != brokers.UP or row.behind]
    if ill:
        raise Findings(
            f"{len(ill)} of {len(rows)} brokers are not up, about to leave, or behind",
            hint=f"twinlog status --site {reach.site}",
        )


@frame.command(parent=command, name="log-dirs", example="twinlog broker log-dirs 1 2")
@click.argument("ids", nargs=-1, type=int)
@site_options
def log_dirs(
    ctx: frame.Context, ids: tuple[int, ...], site: str | None, user: str | None, timeout: float
) -> None:
    """Show the disks of brokers: what partitions take on each, and what is free.

    Exit code 3: a directory is offline.
    """
    from twinlog.ops import brokers
    from twinlog.wire import logdirs

    with reached(ctx, site, user, timeout) as reach:
        rows = brokers.directory_rows(logdirs.describe(reach.cluster, ids or None))
    columns = [
        Column("broker", right=True),
        Column("path"),
        Column("partitions", right=True),
        Column("size_bytes", "size", right=True, show=readable),
        Column("usable_bytes", "free", right=True, show=readable),
        Column("total_bytes", "of", right=True, show=readable),
        Column("problem", show=lambda problem: problem or "none"),
    ]
    ctx.emit(Table(columns, rows))
    ill = [row for row in rows if row.problem]
    if ill:
        raise Findings(f"{len(ill)} directories are offline: {ill[0].path}", hint="twinlog logs --grep ERROR")


@frame.command(parent=command, name="api-versions", example="twinlog broker api-versions 1")
@click.argument("ids", nargs=-1, type=int)
@site_options
def api_versions(
    ctx: frame.Context, ids: tuple[int, ...], site: str | None, user: str | None, timeout: float
) -> None:
    """Show which requests brokers know, in which versions.

    Exit code 3: brokers know different ones, as in the middle of an upgrade.
    """
    from twinlog.wire import api_versions as versions

    with reached(ctx, site, user, timeout) as reach:
        asked = ids or tuple(broker.id for broker in reach.cluster.brokers())
        found = {broker: versions.describe(reach.cluster, broker) for broker in asked}
    rows = [row for each in found.values() for row in each]
    columns = [Column("broker", right=True), Column("request"), Column("key", right=True)]
    columns += [Column("lowest", right=True), Column("highest", right=True)]
    ctx.emit(Table(columns, rows))
    known = {tuple((row.key, row.lowest, row.highest) for row in each) for each in found.values()}
    if len(known) > 1:
        raise Findings("brokers know different requests", hint="is an upgrade unfinished? twinlog plan")
