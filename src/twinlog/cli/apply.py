"""`twinlog apply`: the world becomes what the file says."""

from __future__ import annotations

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, site_option
from twinlog.cli.plan import table_of


@frame.command(
    example="""
    twinlog apply
    twinlog apply --yes --prune
    """,
    confirms=True,
)
@site_option
@click.option("--prune", is_flag=True, help="Also delete topics that the file does not have.")
def command(ctx: frame.Context, site: str | None, prune: bool) -> None:
    """Make the sites what the file says; what is right already is left alone.

    Nodes that do not run are started; running nodes whose settings changed are restarted one at a
    time. If a step cannot be taken back, nothing is done without --yes.
    """
    from twinlog.ops.apply import apply_all
    from twinlog.sites.state import SHORTLY_S

    home = home_of(ctx, warn=True)
    with home.state_file.locked("apply", wait_s=SHORTLY_S):
        taken = apply_all(home, home.chosen(site), ctx.progress, yes=ctx.yes, prune=prune)
    ctx.emit(table_of(taken, empty="nothing to do: the sites are what the file says"))
