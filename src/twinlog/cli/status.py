"""`twinlog status`: how the sites and their nodes are, once or live."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame, output
from twinlog.cli.buses import home_as_it_is, site_option
from twinlog.cli.output import Column, Table
from twinlog.cli.sizes import readable
from twinlog.errors import Findings

if TYPE_CHECKING:  # a Home needs pydantic, and `--help` must not wait for it
    from twinlog.sites.home import Home

COLOURS = {
    "up": "green",
    "degraded": "yellow",
    "starting": "yellow",
    "held": "yellow",
    "down": "red",
    "unknown": "red",
}


@frame.command(
    example="""
    twinlog status
    twinlog status --live --every 2
    """
)
@site_option
@click.option("--live", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option(
    "--every", type=click.FloatRange(min=0.2), default=1.0, show_default=True, help="Seconds between looks."
)
def command(ctx: frame.Context, site: str | None, live: bool, every: float) -> None:
    """Show sites, brokers, controller, in-sync state, sizes and certificates.

    Exit code 0: every site is up. 3: something is down, degraded or unknown.
    """
    home = home_as_it_is(ctx, site)
    names = home.chosen(site)
    if live:
        _show_live(home, names, every)
        return
    parts, ill = _parts(home, names)
    ctx.emit(*parts)
    if ill:
        raise Findings(f"not up: {', '.join(f'site {name}' for name in ill)}", hint="twinlog up")


def _show_live(home: Home, names: tuple[str, ...], every_s: float) -> None:
    from rich.console import Group
    from rich.live import Live

    pause = threading.Event()
    with Live(console=output.console(), auto_refresh=False, screen=False) as display:
        while True:
            parts, _ = _parts(home, names)
            display.update(Group(*output.drawn(parts)), refresh=True)
            pause.wait(every_s)


def _parts(home: Home, names: tuple[str, ...]) -> tuple[list[Table], list[str]]:
    from twinlog.ops import status

    sites, nodes = status.observe(home, names)
    parts = [
        Table(
            [
                Column("site"),
                Column("role"),
                Column("state", style=_colour),
                Column("brokers", right=True),
                Column("controller", right=True),
                Column("partitions", right=True, spare=True),
                Column("under_replicated", "behind", right=True),
                Column("without_leader", "no leader", right=True),
                Column("size_bytes", "size", right=True, show=readable, spare=True),
                Column("certificate_days", "cert days", right=True, show=_days, spare=True),
                Column("note"),
            ],
            sites,
            "sites",
        )
    ]
    parts.append(
        Table(
            [
                Column("site"),
                Column("node", right=True),
                Column("kind"),
                Column("state", style=_colour),
                Column("leads", right=True),
                Column("size_bytes", "size", right=True, show=readable, spare=True),
                Column("free_bytes", "free", right=True, show=readable, spare=True),
                Column("memory_bytes", "memory", right=True, show=readable, spare=True),
                Column("cpu_s", "cpu s", right=True, spare=True),
                Column("address"),
                Column("note"),
            ],
            nodes,
            "nodes",
            empty="no nodes of our own",
        )
    )
    return parts, [found.site for found in sites if found.state != "up"]


def _colour(value: Any) -> str:
    return COLOURS.get(str(value), "yellow")


def _days(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}"
