"""`twinlog return`: a lost site comes back as the standby."""

from __future__ import annotations

import click

from twinlog.cli import frame, moving


@frame.command(
    name="return",
    example="""
    twinlog return --dry-run
    twinlog return
    """,
)
@click.option("--dry-run", is_flag=True, help="Print the steps; change nothing.")
def command(ctx: frame.Context, dry_run: bool) -> None:
    """Take the lost site back as the standby.

    Records that only it has are salvaged to topics named TOPIC.salvage at the active; its logs are cut
    where the other site took over, and the link begins.
    """
    from twinlog.traffic import beginning
    from twinlog.traffic.moves import Kind

    moving.move(ctx, Kind.RETURN, beginning.returning, dry_run=dry_run)
