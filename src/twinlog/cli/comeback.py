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
    confirms=True,
)
@click.option("--dry-run", is_flag=True, help="Print the steps, and what only that site has; change nothing.")
def command(ctx: frame.Context, dry_run: bool) -> None:
    """Take the lost site back as the standby.

    Records that only it has are salvaged to topics named TOPIC.salvage at the active; its logs are cut
    where the other site took over, and the link begins. Where brokers are not ours to stop, topics with
    such records are deleted and copied whole instead, with --yes only.
    """
    from twinlog.traffic import beginning
    from twinlog.traffic.moves import Kind

    moving.move(
        ctx,
        Kind.RETURN,
        lambda ground: beginning.returning(ground, yes=ctx.yes or dry_run),
        dry_run=dry_run,
    )
