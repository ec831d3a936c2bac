"""`twinlog order`: the ordering service; channels and tools are in `order_channels` and `order_tools`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame, order_channels, order_tools
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Record, Table
from twinlog.errors import Findings

if TYPE_CHECKING:
    from twinlog.ordering.fleet import Fleet, Recorded

command = frame.group("order", "Order transactions into blocks, as Fabric's Kafka orderers do.")
for _member in (*order_channels.COMMANDS, *order_tools.COMMANDS):
    command.add_command(_member)
FRESH_S = 10.0


@frame.command(
    parent=command,
    name="up",
    example="""
    twinlog order up
    twinlog order up --orderers 4 --batch-timeout 500ms --max-messages 100
    twinlog order up --site b
    """,
)
@click.option("--orderers", type=click.IntRange(1, 64), default=3, show_default=True, help="How many.")
@click.option("--site", metavar="NAME", default="", help="The site whose log orders; else the active one.")
@click.option("--user", metavar="NAME", default="orderer", show_default=True, help="With auth: mtls.")
@click.option("--replication", type=click.IntRange(1), default=3, show_default=True, help="Copies (N).")
@click.option("--min-insync", type=click.IntRange(1), default=2, show_default=True, help="For a write (M).")
@click.option("--batch-timeout", default="2s", show_default=True, help="A block at the latest after this.")
@click.option("--max-messages", type=click.IntRange(1), default=500, show_default=True, help="In a block.")
@click.option("--absolute-max-bytes", type=click.IntRange(1), default=10 * 2**20, show_default=True)
@click.option("--preferred-max-bytes", type=click.IntRange(1), default=2**20, show_default=True)
@click.option("--read", type=click.Choice(["twin", "all"]), help="Wait for the standby, or not.")
@click.option("--tls/--no-tls", default=True, show_default=True, help="At the orderers' ports.")
@click.option("--mutual-tls", is_flag=True, help="Clients come with certificates.")
def up(ctx: frame.Context, /, **given: Any) -> None:
    """Start orderers on this machine, which go on when this command has ended.

    The first time identities and the genesis block are made; sizes and times stand in it, and later ones
    are ignored. With a standby no block is cut from a record that it lacks (`--read twin`), so that
    orderers started at the other site after a failover continue the same chains.
    """
    from twinlog.ordering.fleet import Fleet, Options

    home = home_of(ctx, warn=True)
    home.state()
    options = Options(**{**given, "read": given["read"] or ""})
    fleet = Fleet(home)
    for problem in fleet.check(options):
        ctx.warn(problem, str(home.file))
    name = "starting orderers"
    ctx.progress.begin(name)
    with home.state_file.locked("order up"):
        recorded = fleet.prepare(options)
        fleet.launch(recorded)
    ctx.progress.end(name)
    _emit_status(ctx, fleet, recorded)


@frame.command(parent=command, name="down", example="twinlog order down")
def down(ctx: frame.Context) -> None:
    """Stop the orderers; ledgers and identities stay, and `order up` goes on where they were."""
    from twinlog.ordering.fleet import Fleet

    home = home_of(ctx)
    with home.state_file.locked("order down"):
        ended = Fleet(home).dismiss()
    ctx.emit(Record([Column("ended")], {"ended": ended}))


@frame.command(parent=command, name="status", example="twinlog order status -o json")
def status(ctx: frame.Context) -> None:
    """Show the orderers, their channels and how high each chain is.

    Exit code 3: an orderer does not run, or a channel cannot follow the log.
    """
    from twinlog.ordering.fleet import Fleet

    fleet = Fleet(home_of(ctx))
    recorded = fleet.recorded()
    _emit_status(ctx, fleet, recorded)
    rows = [_row(fleet, member) for member in recorded.members]
    missing = [row["name"] for row in rows if row["state"] != "running"]
    if missing:
        raise Findings(f"{', '.join(missing)}: not running", hint="twinlog order up")
    errored = sorted({channel for row in rows for channel in row["errored"]})
    if errored:
        raise Findings(f"channels that cannot follow the log: {', '.join(errored)}", hint="twinlog status")


@frame.command(
    parent=command,
    name="run",
    example="""
    twinlog order run --config orderer.yaml
    ORDERER_KAFKA_RETRY_SHORTINTERVAL=1s twinlog order run
    """,
)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Fabric's orderer.yaml.")
def run(ctx: frame.Context, config: Path | None) -> None:
    """Be one orderer, in the foreground, until Ctrl-C.

    The file is Fabric's own, with its environment variables (ORDERER_...); without --config it is looked
    for in FABRIC_CFG_PATH, then here.
    """
    from twinlog.ordering import localfile, process

    file = config or localfile.find(os.environ, Path.cwd())
    settings = localfile.load(file, os.environ)
    process.set_up_log(settings, os.environ)
    process.run(settings)


def _emit_status(ctx: frame.Context, fleet: Fleet, recorded: Recorded) -> None:
    rows = [_row(fleet, member) for member in recorded.members]
    table = Table(
        [
            Column("name", "orderer"),
            Column("state", style=lambda state: "green" if state == "running" else "red"),
            Column("address"),
            Column("operations", "metrics", spare=True),
            Column("channels", show=lambda found: ", ".join(f"{k} {v}" for k, v in found.items()) or "-"),
            Column("errored", show=lambda found: ", ".join(found) or "-"),
        ],
        rows,
        name="orderers",
    )
    whole = {
        "site": recorded.site,
        "read": recorded.read,
        "tls": recorded.tls,
        "directory": str(fleet.directory),
    }
    columns = [Column("site"), Column("read"), Column("tls"), Column("directory", spare=True)]
    ctx.emit(Record(columns, whole, name="ordering"), table)


def _row(fleet: Fleet, member: Any) -> dict[str, Any]:
    process = fleet.background(member)
    try:
        told: dict[str, Any] = json.loads(process.report.read_text())
    except (FileNotFoundError, ValueError):
        told = {}
    runs = process.find() is not None
    is_fresh = time.time() - told.get("at", 0.0) < FRESH_S
    channels = told.get("channels", {})
    return {
        "name": member.name,
        "state": "running" if runs and is_fresh else "silent" if runs else "stopped",
        "address": member.address,
        "operations": told.get("operations"),
        "pid": told.get("pid") if runs else None,
        "channels": {name: one["height"] for name, one in channels.items()},
        "errored": [name for name, one in channels.items() if one["errored"]],
        "log": str(process.log),
    }
