"""`twinlog down`: every node of the sites ends in order; disks, keys and passwords stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlog.cli import frame
from twinlog.cli.buses import dismiss_jobs, dismiss_orderers, home_as_it_is, site_option, timeout_option
from twinlog.cli.output import Column, Record
from twinlog.errors import Problem

if TYPE_CHECKING:
    from twinlog.sites.home import Home


@frame.command(
    example="""
    twinlog down
    twinlog down --site b
    """
)
@site_option
@timeout_option(default_s=60.0, help="Seconds before a node is killed.")
def command(ctx: frame.Context, site: str | None, timeout: float) -> None:
    """Stop the sites that Twinlog runs; nothing is deleted.

    Brokers end before controllers, so that each can hand over what it leads. Clients do not move
    by it: let them first (twinlog switchover) where the other site is to go on.
    """
    from twinlog.mirror import link
    from twinlog.sites import local, supervisor
    from twinlog.traffic import staff

    home = home_as_it_is(ctx, site)
    if site is not None:
        home.chosen(site)
        home.must_run(site, "stop")
    home.refuse_lost_state()
    state = home.state_file.read()
    names = [name for name in home.chosen(site) if state is not None and name in state.sites]
    if site is not None and state is not None and site == state.active and len(state.sites) > 1:
        _warn(ctx, home, site)
    with home.state_file.locked("down"):
        if site is None:
            dismiss_orderers(home)
            dismiss_jobs(home)
            staff.dismiss(home)
            link.background(home).dismiss()
            supervisor.background(home).dismiss()
        ended = local.down(home, names, ctx.progress, timeout_s=timeout)
    reached = [name for name in home.chosen(site) if name not in home.local_sites]
    columns = [Column("sites"), Column("stopped", "nodes stopped")]
    if reached:
        columns.append(Column("only_reached", "only reached, left alone"))
    ctx.emit(Record(columns, {"sites": names, "stopped": ended, "only_reached": reached}))


def _warn(ctx: frame.Context, home: Home, site: str) -> None:
    """Say what becomes of clients; that they wait may be just what is wanted."""
    what = f"site {site} is the active one: clients wait for it, and those on librdkafka may never come back"
    hint = "to let clients go on at the other site: twinlog switchover"
    ctx.warn(Problem(0, 0, what, hint=hint, path=f"sites.{site}", severity="warning"), str(home.file))
