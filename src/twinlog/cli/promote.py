"""`twinlog promote`: the active is lost, and the standby takes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlog.cli import frame, moving
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from twinlog.traffic.ground import Ground
    from twinlog.traffic.moves import Move


@frame.command(
    example="""
    twinlog promote --dry-run
    twinlog promote
    """,
    confirms=True,
)
@click.option("--dry-run", is_flag=True, help="Print the steps, and what would be lost; change nothing.")
def command(ctx: frame.Context, dry_run: bool) -> None:
    """Make the standby active because the active is lost.

    What the standby had not received stays at the lost site and is salvaged when that returns; writes
    with acks=twin are all there. An active that still takes writes is only given up with --yes.
    """
    from twinlog.traffic import beginning
    from twinlog.traffic.moves import Kind

    def begin(ground: Ground) -> Move:
        try:
            return beginning.failover(ground, "a person promoted it", force=ctx.yes)
        except UsageError as error:
            if not dry_run:
                raise
            ctx.progress.note(f"without --yes it is refused: {error}")  # to look needs no consent
            return beginning.failover(ground, "a person promoted it", force=True)

    moving.move(ctx, Kind.FAILOVER, begin, dry_run=dry_run)
