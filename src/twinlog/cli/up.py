"""`twinlog up`: from the file to running, secured sites that take writes."""

from __future__ import annotations

import time

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of, site_option, timeout_option
from twinlog.cli.output import Column, Table


@frame.command(
    example="""
    twinlog up
    twinlog up --site b --supervise
    """,
    confirms=True,
)
@site_option
@click.option("--supervise", is_flag=True, help="Leave a supervisor that restarts brokers that die.")
@click.option("--debug", type=click.Choice(["tls"]), help="Log every TLS handshake of the nodes started now.")
@timeout_option(default_s=120.0, help="Seconds until a site must be ready.")
def command(ctx: frame.Context, site: str | None, supervise: bool, debug: str | None, timeout: float) -> None:
    """Bring up the sites and make them what the file declares.

    Fetches Kafka on first use, makes certificates, formats new disks, starts every node that does
    not run, waits until a canary write is acknowledged on every broker, and applies topics, users
    and rights. What runs already is left alone; running it again after a failure goes on.
    """
    from twinlog.ops import apply
    from twinlog.sites import local, supervisor
    from twinlog.sites.layout import Listener
    from twinlog.sites.state import SHORTLY_S

    home = home_of(ctx, warn=True)
    chosen = home.chosen(site)
    if site is not None:
        home.must_run(site, "bring up")
    names = [name for name in chosen if name in home.local_sites]
    for name in chosen:
        if name not in names:
            ctx.progress.note(f"site {name} exists already: Twinlog only reaches it")
    began = time.monotonic()
    kafka = local.ensure_for(home, names, ctx.progress)
    with home.state_file.locked("up", wait_s=SHORTLY_S):
        started = local.up(
            home, names, ctx.progress, kafka=kafka, debug_tls=debug is not None, timeout_s=timeout
        )
        apply.settle(home, chosen, ctx.progress, yes=ctx.yes)
        if supervise:
            supervisor.background(home).launch()
    took_s = round(time.monotonic() - began, 1)
    rows = [
        {
            "site": name,
            "role": home.role(name),
            "brokers": len(home.layout(name).brokers),
            "controllers": len(home.layout(name).controllers),
            "started": sum(1 for node in started if node.site == name),
            "bootstrap": home.layout(name).bootstrap(Listener.CLIENT),
            "seconds": took_s,
        }
        for name in names
    ]
    columns = [
        Column("site"),
        Column("role"),
        Column("brokers", right=True),
        Column("controllers", right=True),
    ]
    ctx.emit(Table([*columns, Column("started", right=True), Column("bootstrap")], rows))
