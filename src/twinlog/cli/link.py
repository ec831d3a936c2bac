"""`twinlog link`: start, stop, pause and look at the mirror from the active to the standby."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame, output
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Record, Table
from twinlog.durable import make_private_directory
from twinlog.errors import Findings

if TYPE_CHECKING:
    from twinlog.sites.home import Home

command = frame.group("link", "Mirror the active to the standby, at the same offsets.")
COLOURS = {"running": "green", "pausing": "yellow", "paused": "yellow", "starting": "yellow"}


@frame.command(parent=command, name="up", example="twinlog link up")
@click.option("--foreground", is_flag=True, help="Stay, and print what happens, until Ctrl-C.")
def up(ctx: frame.Context, foreground: bool) -> None:
    """Start the mirror, which goes on when this command has ended.

    It is a Spark application; where it runs is said by `pipeline: {master: …}` in the file. A mirror
    that runs already stays. One that runs elsewhere for the same bus loses its right to write.
    """
    from twinlog.mirror import link

    home = home_of(ctx, warn=True)
    home.state()
    link.need_spark()
    link.sides(home)
    if foreground:
        _run_here(home)
        return
    name = "starting Spark and taking over the link"
    ctx.progress.begin(name)
    pid = link.background(home).launch()
    ctx.progress.end(name)
    active, standby = link.sides(home)
    ctx.emit(
        Record(
            [Column("pid"), Column("active", "from"), Column("standby", "to"), Column("log")],
            {"pid": pid, "active": active, "standby": standby, "log": str(link.background(home).log)},
        )
    )


def _run_here(home: Home) -> None:
    import signal

    from twinlog.pipeline import mirror

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    mirror.run(home, stop)


@frame.command(parent=command, name="down", example="twinlog link down")
def down(ctx: frame.Context) -> None:
    """Stop the mirror: what was sent is waited for, what is left stays to be copied."""
    from twinlog.mirror import link

    home = home_of(ctx)
    name = "stopping the mirror"
    ctx.progress.begin(name)
    ran = link.background(home).dismiss()
    ctx.progress.end(name)
    ctx.emit(Record([Column("ran")], {"ran": ran}))


@frame.command(parent=command, name="pause", example="twinlog link pause")
def pause(ctx: frame.Context) -> None:
    """Copy nothing until `twinlog link resume`; this outlasts a restart of the mirror."""
    from twinlog.mirror import link

    home = home_of(ctx)
    flag = link.pause_flag(home)
    make_private_directory(flag.parent)
    flag.touch()
    ctx.emit(Record([Column("paused")], {"paused": True}))


@frame.command(parent=command, name="resume", example="twinlog link resume")
def resume(ctx: frame.Context) -> None:
    """Go on copying after a pause."""
    from twinlog.mirror import link

    home = home_of(ctx)
    link.pause_flag(home).unlink(missing_ok=True)
    ctx.emit(Record([Column("paused")], {"paused": False}))


@frame.command(
    parent=command,
    name="status",
    example="""
    twinlog link status
    twinlog link status --live
    """,
)
@click.option("--live", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option("--partitions", is_flag=True, help="Show every partition, not topics.")
def status(ctx: frame.Context, live: bool, partitions: bool) -> None:
    """Show how far the standby is behind, topic by topic, and what stands in the way.

    Lag is the difference of the two sites' ends, asked now; it needs nothing from the mirror.
    Exit code 3 says that the mirror does not run, or that a topic does not move.
    """
    from twinlog.mirror.watch import Watch

    home = home_of(ctx)
    with Watch(home) as watch:
        if live:
            _show_live(watch, partitions)
            return
        found = watch.look()
        ctx.emit(*_parts(found, partitions))
        if found.findings:
            raise Findings("; ".join(found.findings), hint="twinlog link up" if not found.runs else "")


def _show_live(watch: Any, partitions: bool) -> None:
    from rich.console import Group
    from rich.live import Live

    wait = threading.Event()
    with Live(console=output.console(), auto_refresh=False, screen=False) as display:
        while True:
            display.update(Group(*output.drawn(_parts(watch.look(), partitions))), refresh=True)
            wait.wait(1.0)


def _parts(found: Any, partitions: bool) -> list[Record | Table]:
    columns = [
        Column("topic"),
        *([Column("partition", right=True)] if partitions else [Column("partitions", right=True)]),
        Column("lag_records", "behind", right=True),
        Column("lag_s", "seconds", right=True, show=_seconds),
        Column("bytes_per_s", "rate", right=True, show=_rate),
        Column("waiting_for", "held back by"),
        Column("trouble"),
    ]
    whole = Record(
        [
            Column("state", style=lambda state: COLOURS.get(state, "red")),
            Column("active", "from"),
            Column("standby", "to"),
            Column("epoch"),
            Column("records"),
            Column("fills"),
            Column("surprises"),
            Column("last_error"),
        ],
        found.link,
        name="link",
    )
    rows = found.partitions if partitions else found.topics
    return [whole, Table(columns, rows, name="partitions" if partitions else "topics")]


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f}"


def _rate(value: float | None) -> str:
    return "unknown" if value is None else f"{value / 1e6:.2f} MB/s"


@frame.command(
    parent=command,
    name="verify",
    example="""
    twinlog link verify
    twinlog link verify orders --again -o json
    twinlog link verify --every 60 --max-rate 10MB/s
    """,
)
@click.argument("names", metavar="[TOPIC]...", nargs=-1)
@click.option("--again", is_flag=True, help="Compare all of it, not only what came since the last time.")
@click.option("--max-rate", metavar="RATE", help="Read no faster, as in 10MB/s.")
@click.option("--every", type=click.FloatRange(min=0), metavar="S", help="Go on comparing, every S seconds.")
def verify(
    ctx: frame.Context, names: tuple[str, ...], again: bool, max_rate: str | None, every: float | None
) -> None:
    """Compare both logs, offset by offset: keys, values, headers, times.

    What was found equal is remembered, and the next run goes on from there. Exit code 3 says that the
    logs differ, or that something could not be compared.
    """
    from twinlog.pipeline import verification

    home = home_of(ctx)
    pause = threading.Event()
    while True:
        found = verification.verify(home, names, again=again, max_rate=max_rate, progress=ctx.progress)
        if every is None or not found.is_equal:
            break
        ctx.progress.note(f"equal: {found.bytes / 1e6:.1f} MB in {found.seconds:.1f} s")
        again = False
        pause.wait(every)
    ctx.emit(
        Table(
            [
                Column("topic"),
                Column("partition", right=True),
                Column("first", "from", right=True),
                Column("end", "to", right=True),
                Column("records", right=True),
                Column("equal", style=lambda equal: "green" if equal else "red"),
                Column("found"),
            ],
            [_compared(one) for one in found.partitions],
            name="partitions",
        )
    )
    if not found.is_equal:
        raise Findings("the logs are not equal", hint="twinlog link status --partitions")


@frame.command(parent=command, name="rebuild", confirms=True, example="twinlog link rebuild orders --yes")
@click.argument("topic")
def rebuild(ctx: frame.Context, topic: str) -> None:
    """Delete what the standby has of a topic, and copy it again from the active.

    For a topic whose logs differ. The link is paused until the topic is there again.
    """
    from twinlog.pipeline import rebuild as rebuilding

    home = home_of(ctx)
    home.state()
    what = f"topic {topic} is deleted at the standby and copied again"
    ctx.need_yes(what, where=str(home.file))
    with home.state_file.locked("link rebuild"):
        rebuilding.rebuild(home, topic, ctx.progress)
    ctx.emit(Record([Column("topic"), Column("rebuilt")], {"topic": topic, "rebuilt": True}))


def _compared(one: Any) -> dict[str, Any]:
    from dataclasses import asdict

    told = [f"{found.offset}: {found.what}" for found in one.differences]
    found = "; ".join(filter(None, (one.skipped, *told)))
    return {**asdict(one), "equal": not found, "found": found}
