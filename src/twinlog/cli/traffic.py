"""`twinlog traffic`: the manager that watches both sites, has the gate, and moves clients."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Record, Table
from twinlog.durable import make_private_directory
from twinlog.errors import Findings

if TYPE_CHECKING:
    from twinlog.sites.home import Home

command = frame.group("traffic", "Watch both sites, send clients to the active one, move them.")
FRESH_S = 10.0
HEALTH_COLOURS = {"healthy": "green", "failing": "yellow", "unknown": "yellow"}
FINE = ("Nothing",)


@frame.command(parent=command, name="up", example="twinlog traffic up")
@click.option("--foreground", is_flag=True, help="Stay, and print what happens, until Ctrl-C.")
def up(ctx: frame.Context, foreground: bool) -> None:
    """Start the traffic manager, which goes on when this command has ended.

    It opens the gate, writes a canary at each site every second, and does what `gate:` in the file says
    when the active site is lost: with `promote: ask` it waits for `twinlog promote`.
    """
    from twinlog.traffic import electorate, manager, staff
    from twinlog.traffic.entrance import addresses

    home = home_of(ctx, warn=True)
    home.state()
    if foreground:
        manager.main(str(home.file))
        return
    name = "opening the gate and looking at both sites"
    ctx.progress.begin(name)
    pids = staff.launch(home)
    ctx.progress.end(name)
    if electorate.is_used(home) and (missing := electorate.forgetful(home)):
        names = " and ".join(missing)
        ctx.progress.note(
            f"nobody is promoted without a person yet: no vote of {names} (twinlog traffic status)"
        )
    places = [str(place) for place in addresses(home).values()]
    told = {
        "pids": pids,
        "gate": places,
        "page": home.bus.gate.page,
        "log": str(manager.background(home).log),
    }
    columns = [Column("pids"), Column("gate"), Column("log")]
    if home.bus.gate.page is not None:
        columns.insert(2, Column("page"))
    ctx.emit(Record(columns, told))


@frame.command(parent=command, name="down", example="twinlog traffic down")
def down(ctx: frame.Context) -> None:
    """Stop the manager and its gate; clients that are connected to brokers stay so."""
    from twinlog.traffic import staff

    home = home_of(ctx)
    ended = staff.dismiss(home) if home.state_file.read() is not None else []
    ctx.emit(Record([Column("ended")], {"ended": ended}))


@frame.command(parent=command, name="agent", example="twinlog traffic agent a")
@click.argument("site")
def agent(ctx: frame.Context, site: str) -> None:
    """Be the agent of SITE until Ctrl-C: keep its lease, and end its brokers when that is over.

    For a site whose brokers run on another machine than the manager; `traffic up` starts those of this one.
    """
    from twinlog.traffic import agent as agents

    home = home_of(ctx, warn=True)
    home.chosen(site)
    code = agents.main(str(home.file), site)
    if code:
        raise SystemExit(code)


@frame.command(parent=command, name="pause", example="twinlog traffic pause")
def pause(ctx: frame.Context) -> None:
    """Let the manager watch and decide nothing, until `twinlog traffic resume`."""
    from twinlog.traffic import manager

    flag = manager.pause_flag(home_of(ctx))
    make_private_directory(flag.parent)
    flag.touch()
    ctx.emit(Record([Column("paused")], {"paused": True}))


@frame.command(parent=command, name="resume", example="twinlog traffic resume")
def resume(ctx: frame.Context) -> None:
    """Let the manager decide again."""
    from twinlog.traffic import manager

    manager.pause_flag(home_of(ctx)).unlink(missing_ok=True)
    ctx.emit(Record([Column("paused")], {"paused": False}))


@frame.command(parent=command, name="status", example="twinlog traffic status -o json")
def status(ctx: frame.Context) -> None:
    """Show what the manager sees and what it is about to do.

    Exit code 3 says that it does not run, or that something needs a person or is being done.
    """
    found = _report(home_of(ctx))
    view = found["view"]
    whole = Record(
        [Column("state"), Column("sentence", "clients"), Column("term"), Column("step"), Column("why")],
        {
            "state": "paused" if found["paused"] else "running",
            "sentence": view["sentence"],
            "active": view["active"],
            "term": view["term"],
            "step": found["step"],
            "why": found["why"],
            "counters": view["counters"],
        },
        name="traffic",
    )
    sites = Table(
        [
            Column("name", "site"),
            Column("role"),
            Column("health", style=lambda health: HEALTH_COLOURS.get(health, "red")),
            Column("lag_records", "behind", right=True, show=_shown),
            Column("lag_s", "seconds", right=True, show=_shown),
            Column("sentence", ""),
        ],
        view["sites"],
        name="sites",
    )
    ctx.emit(whole, sites)
    if found["step"] not in FINE:
        raise Findings(found["why"], hint="twinlog promote" if found["step"] == "ReadyToPromote" else "")


def _report(home: Home) -> dict[str, Any]:
    from twinlog.traffic import manager

    process = manager.background(home)
    try:
        found: dict[str, Any] = json.loads(process.report.read_text())
    except (FileNotFoundError, ValueError):
        found = {}
    if process.find() is None or time.time() - found.get("at", 0.0) > FRESH_S:
        raise Findings("the traffic manager does not run", hint="twinlog traffic up")
    return found


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)
