"""`twinlog switchover`: the standby becomes active, and nothing is lost."""

from __future__ import annotations

import click

from twinlog.cli import frame, moving


@frame.command(
    example="""
    twinlog switchover --dry-run
    twinlog switchover
    """
)
@click.option("--dry-run", is_flag=True, help="Check, and print the steps; change nothing.")
def command(ctx: frame.Context, dry_run: bool) -> None:
    """Make the standby the active site, and the active the standby.

    Clients are kept out for some seconds, the standby catches up, and clients go on there at the same
    offsets. Failing back is the same command. One that was killed goes on when it is called again; one
    that fails before the other site is open is called off, and clients go on where they were.
    """
    from twinlog.traffic import beginning
    from twinlog.traffic.moves import Kind

    moving.move(ctx, Kind.SWITCHOVER, beginning.switchover, dry_run=dry_run)
