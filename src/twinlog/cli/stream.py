"""`twinlog stream`: start, stop, look at and describe the jobs that the file declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Record, Table
from twinlog.errors import Findings, UsageError

if TYPE_CHECKING:
    from twinlog.sites.home import Home

command = frame.group("stream", "Run jobs on the bus's records: streams, tables, aggregates, joins.")
COLOURS = {"running": "green", "starting": "yellow"}


@frame.command(parent=command, name="up", example="twinlog stream up")
def up(ctx: frame.Context) -> None:
    """Start the jobs of the file, which go on when this command has ended.

    They are one Spark application; where it runs is said by `pipeline: {master: …}`. The sites must be
    what the file says (`twinlog apply`): jobs have a user and a topic of their own. After a change of
    the file stop the jobs and start them again.
    """
    from twinlog.mirror.link import need_spark
    from twinlog.streams import places

    home = _checked(ctx, warn=True)
    home.state()
    need_spark()
    name = "starting Spark and the jobs"
    ctx.progress.begin(name)
    process = places.background(home)
    pid = process.launch()
    ctx.progress.end(name)
    told = {"pid": pid, "jobs": list(home.bus.streams), "log": str(process.log)}
    ctx.emit(Record([Column("pid"), Column("jobs"), Column("log")], told))


@frame.command(parent=command, name="down", example="twinlog stream down")
def down(ctx: frame.Context) -> None:
    """Stop the jobs; they go on where they were with the next `stream up`."""
    from twinlog.streams import places

    home = home_of(ctx)
    name = "stopping the jobs"
    ctx.progress.begin(name)
    ran = places.background(home).dismiss()
    ctx.progress.end(name)
    ctx.emit(Record([Column("ran")], {"ran": ran}))


@frame.command(parent=command, name="status", example="twinlog stream status -o json")
def status(ctx: frame.Context) -> None:
    """Show how the jobs are: how far behind, how fast, what went wrong.

    Exit code 3 says that the jobs do not run, or that one waits to be started again.
    """
    from twinlog.streams import places
    from twinlog.streams.board import Board, read_board

    home = _checked(ctx)
    process = places.background(home)
    runs = process.find() is not None
    board = (read_board(process.report) if runs else None) or Board()
    ctx.emit(
        Table(
            [
                Column("query"),
                Column("state", style=lambda state: COLOURS.get(state, "red")),
                Column("batch", right=True),
                Column("records", right=True),
                Column("records_per_s", "per second", right=True, show=_number),
                Column("behind_records", "behind", right=True),
                Column("behind_s", "seconds", right=True, show=_number),
                Column("late_records", "too late", right=True, spare=True),
                Column("last_error"),
            ],
            board.queries,
            empty="the jobs do not run",
        )
    )
    waiting = [one.query for one in board.queries if one.state == "waiting"]
    if not runs:
        raise Findings("the jobs do not run", hint="twinlog stream up")
    if not board.is_fresh:
        raise Findings("the jobs have said nothing for a while", hint=f"tail {process.log}")
    if waiting:
        raise Findings(f"{', '.join(waiting)} ended and is started again", hint=f"tail {process.log}")


@frame.command(
    parent=command,
    name="describe",
    example="""
    twinlog stream describe words
    twinlog stream describe words --dot | dot -Tsvg > words.svg
    """,
)
@click.argument("job")
@click.option("--dot", is_flag=True, help="As a graph, for Graphviz.")
def describe(ctx: frame.Context, job: str, dot: bool) -> None:
    """Show what a job reads, does, keeps and writes."""
    from dataclasses import asdict

    from twinlog.streams import describing, planning

    home = _checked(ctx)
    if job not in home.bus.streams:
        known = ", ".join(home.bus.streams)
        raise UsageError(f"the file has no job '{job}'", where=str(home.file), hint=f"its jobs are {known}")
    plan = planning.plan(home.bus, job)
    ctx.write(describing.dot(plan) if dot else describing.text(plan), as_json=asdict(plan))


def _checked(ctx: frame.Context, *, warn: bool = False) -> Home:
    """The bus of a file whose jobs can be run."""
    from twinlog.streams import checking

    home = home_of(ctx, warn=warn)
    if not home.bus.streams:
        raise UsageError(
            "the file declares no jobs", where=str(home.file), hint="what is to be made of which topic?"
        )
    checking.check(frame.load_bus(ctx))
    return home


def _number(value: Any) -> str:
    return "unknown" if value is None else f"{value:.1f}"
