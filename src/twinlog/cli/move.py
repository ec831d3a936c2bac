"""`twinlog move`: move partitions between brokers, by a plan of ours or by a file of Kafka's own tool."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinlog.cli import frame
from twinlog.cli.move_tables import changes_table, cost, loads_table
from twinlog.cli.output import Column, Record, Table
from twinlog.cli.rates import Rate, rate_option
from twinlog.cli.reach import Reached, reached, site_options
from twinlog.cli.sizes import readable, seconds
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from twinlog.ops.assignment import Change
    from twinlog.ops.reassign import Placement

command = frame.group("move", "Move partitions between brokers, evenly and with a limit.")
SECOND_LOOK_S = 1.0
_topic_option = click.option(
    "--topic", "names", multiple=True, metavar="NAME", help="Only partitions of this topic; may be repeated."
)
_without_option = click.option(
    "--without", multiple=True, type=int, metavar="ID", help="Leave this broker empty; may be repeated."
)
_from_option = click.option(
    "--from-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Take the plan from a file as kafka-reassign-partitions reads it.",
)


def _planned(
    reach: Reached, names: tuple[str, ...], without: tuple[int, ...], from_file: Path | None
) -> tuple[Placement, list[Change]]:
    """Where everything is, and what is to be changed."""
    from twinlog.ops import assignment, catalogue, reassign

    if from_file is not None and (names or without):
        raise UsageError("a file says it all", hint="leave out --topic and --without")
    if names:
        catalogue.existing(reach.cluster, names)
    placement = reassign.observe(reach.cluster, sorted(names) or None)
    if from_file is None:
        return placement, reassign.plan(placement, without=without)
    wanted = assignment.from_file(from_file.read_text(), str(from_file))
    assignment.refuse_unknown(wanted, placement.current, placement.peers, str(from_file))
    return placement, assignment.changes(placement.current, wanted, placement.size_bytes)


@frame.command(
    parent=command,
    name="plan",
    example="""
    twinlog move plan
    twinlog move plan --without 3 --write plan.json
    """,
)
@_topic_option
@_without_option
@_from_option
@click.option(
    "--write", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the plan there."
)
@click.option(
    "--write-current",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write there how it is now, to go back to.",
)
@site_options
def plan(
    ctx: frame.Context,
    names: tuple[str, ...],
    without: tuple[int, ...],
    from_file: Path | None,
    write: Path | None,
    write_current: Path | None,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Show which partitions `move run` would move, and what each broker has before and after.

    Racks first, then copies, bytes and leaders are spread evenly; what is spread well stays. Files
    are those of kafka-reassign-partitions: its plans can be run here, and ours there.
    """
    from twinlog.durable import write_text
    from twinlog.ops import assignment

    with reached(ctx, site, user, timeout) as reach:
        placement, found = _planned(reach, names, without, from_file)
    after = {change.place: change.after for change in found}
    if write is not None:
        write_text(write.absolute(), assignment.to_file(after))
    if write_current is not None:
        before = {change.place: change.before for change in found}
        write_text(write_current.absolute(), assignment.to_file(before))
    sizes = placement.size_bytes
    ctx.emit(
        loads_table(
            assignment.loads(placement.current, placement.peers, sizes),
            assignment.loads({**placement.current, **after}, placement.peers, sizes),
        ),
        changes_table(found),
        cost(found),
    )


@frame.command(
    parent=command,
    name="run",
    example="""
    twinlog move run --rate 50MB/s
    twinlog move run --from-file plan.json
    """,
)
@_topic_option
@_without_option
@_from_option
@rate_option
@click.option(
    "--at-once", type=click.IntRange(min=1), default=50, show_default=True, help="Partitions on their way."
)
@site_options
def run(
    ctx: frame.Context,
    names: tuple[str, ...],
    without: tuple[int, ...],
    from_file: Path | None,
    rate: int | None,
    at_once: int,
    site: str | None,
    user: str | None,
    timeout: float,
) -> None:
    """Move partitions as `move plan` says, and wait until they are there.

    New copies are made before old ones go, so that no partition ever has fewer in sync. A move that was
    killed is gone on with: run it again without a plan.
    """
    from dataclasses import replace

    from twinlog.ops import reassign
    from twinlog.ops.move_journal import MoveJournal

    with reached(ctx, site, user, timeout) as reach, reach.home.state_file.locked("move run"):
        journal = MoveJournal(reach.home, reach.site)
        wanted = journal.read()
        if wanted is None or names or without or from_file is not None:
            reassign.refuse_other_moves(reach.cluster, journal)
            _, found = _planned(reach, names, without, from_file)
            wanted = reassign.intended(found, rate)
        elif rate is not None:
            wanted = replace(wanted, rate_bytes=rate)
        moved = reassign.run(reach.cluster, journal, wanted, ctx.progress, at_once=at_once)
        copied = sum(change.copied_bytes for change in wanted.changes)
    value = {"site": reach.site, "partitions": moved, "copied_bytes": copied}
    columns = [Column("site"), Column("partitions", "partitions moved")]
    ctx.emit(Record([*columns, Column("copied_bytes", "copied", show=readable)], value))


@frame.command(parent=command, name="status", example="twinlog move status")
@site_options
def status(ctx: frame.Context, site: str | None, user: str | None, timeout: float) -> None:
    """Show what is being moved, how much of it is there, and about how long it will take."""
    import threading

    from twinlog.ops import reassign, throttles
    from twinlog.ops.move_journal import MoveJournal
    from twinlog.ops.pace import Pace

    pace = Pace()
    with reached(ctx, site, user, timeout) as reach:
        rows = reassign.under_way(reach.cluster)
        if rows:
            # Two looks say how fast it goes.
            pace.see(time.monotonic(), _left(rows))
            threading.Event().wait(SECOND_LOOK_S)
            rows = reassign.under_way(reach.cluster)
            pace.see(time.monotonic(), _left(rows))
        limits = throttles.rates(reach.cluster)
        intended = MoveJournal(reach.home, reach.site).read()
    value = {
        "unfinished": intended is not None,
        "under_way": len(rows),
        "left_bytes": _left(rows),
        "left_s": pace.left_s if rows else 0.0,
        "limits": limits,
    }
    columns = [
        Column("unfinished", "a move of ours is unfinished"),
        Column("under_way", "partitions on their way"),
        Column("left_bytes", "left", show=readable),
        Column("left_s", "done in about", show=seconds),
        Column("limits", "limits", show=_shown_limits),
    ]
    moving = [
        Column("topic"),
        Column("partition", right=True),
        Column("adding", "to"),
        Column("removing", "from"),
    ]
    moving += [Column("copied_bytes", "there", right=True, show=readable)]
    moving += [Column("size_bytes", "of", right=True, show=readable)]
    ctx.emit(
        Record(columns, value, "move"),
        Table(moving, rows, "partitions", empty="nothing is being moved"),
    )


def _left(rows: list[Any]) -> int:
    return sum(max(0, row.size_bytes - row.copied_bytes) for row in rows)


def _shown_limits(limits: dict[int, int]) -> str:
    return ", ".join(f"broker {broker}: {readable(rate)}/s" for broker, rate in limits.items()) or "none"


@frame.command(parent=command, name="cancel", example="twinlog move cancel")
@site_options
def cancel(ctx: frame.Context, site: str | None, user: str | None, timeout: float) -> None:
    """Call a move off: partitions on their way stay where they were, limits are taken away.

    What was moved already stays moved. A `move run` elsewhere ends.
    """
    from twinlog.ops import reassign
    from twinlog.ops.move_journal import MoveJournal

    with reached(ctx, site, user, timeout) as reach:
        stayed, lifted = reassign.cancel(reach.cluster, MoveJournal(reach.home, reach.site))
    value = {"site": reach.site, "cancelled": stayed, "limits_lifted": lifted}
    columns = [Column("site"), Column("cancelled", "partitions that stay")]
    ctx.emit(Record([*columns, Column("limits_lifted")], value))


@frame.command(
    parent=command,
    name="throttle",
    example="""
    twinlog move throttle 20MB/s
    twinlog move throttle none
    """,
)
@click.argument("rate", metavar="RATE")
@site_options
def throttle(ctx: frame.Context, rate: str, site: str | None, user: str | None, timeout: float) -> None:
    """Give the move under way another limit, in bytes a second at each broker, or `none`."""
    from twinlog.ops import reassign
    from twinlog.ops.move_journal import MoveJournal

    limit: int | None = None if rate == "none" else Rate().convert(rate, None, None)
    with reached(ctx, site, user, timeout) as reach:
        count = reassign.throttle(reach.cluster, MoveJournal(reach.home, reach.site), limit)
    value = {"site": reach.site, "rate_bytes": limit, "partitions": count}
    columns = [
        Column("site"),
        Column("rate_bytes", "a second", show=lambda n: readable(n) if n else "no limit"),
    ]
    ctx.emit(Record([*columns, Column("partitions")], value))
