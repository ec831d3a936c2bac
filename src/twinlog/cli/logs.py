"""`twinlog logs`: the logs of all nodes of both sites as one stream."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_as_it_is, site_option
from twinlog.cli.output import write
from twinlog.errors import UsageError

if TYPE_CHECKING:
    from twinlog.sites.logs import Entry


@frame.command(
    example="""
    twinlog logs --since 5m --grep 'ERROR|WARN'
    twinlog logs --site a --follow
    """
)
@site_option
@click.option("--node", type=int, help="Only the node of this id.")
@click.option("--follow", is_flag=True, help="Go on showing what is written, until Ctrl-C.")
@click.option("--since", metavar="TIME", help="Nothing older: 30s, 5m, 2h, 7d, or 2026-01-31T12:00.")
@click.option("--grep", metavar="PATTERN", help="Only entries in which this regular expression is found.")
def command(
    ctx: frame.Context, site: str | None, node: int | None, follow: bool, since: str | None, grep: str | None
) -> None:
    """Show the logs of all nodes of both sites, merged by time."""
    from twinlog.sites import logs

    home = home_as_it_is(ctx, site)
    state = home.state()
    names = [name for name in home.chosen(site) if name in state.sites]
    nodes = [each for name in names for each in home.layout(name).nodes if node in (None, each.id)]
    wanted = _pattern(grep)
    show(ctx, logs.history(nodes, since=moment(since) if since else None, wanted=wanted))
    if follow:
        show(ctx, logs.follow(nodes, wanted=wanted, wait=threading.Event().wait))


def show(ctx: frame.Context, entries: Iterable[Entry]) -> None:
    """Print entries as they come, one a line, or one JSON object a line."""
    for entry in entries:
        if ctx.as_json:
            fields = {
                "time": entry.time.isoformat(),
                "node": entry.node,
                "level": entry.level,
                "text": entry.text,
            }
            write(json.dumps(fields) + "\n")
        else:
            time = entry.time.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
            write(f"{time} {entry.node:<16} {entry.level:<5} {entry.text}\n")


def moment(text: str, now: datetime | None = None) -> datetime:
    """A time that was written as an age or as a date."""
    from twinlog.spec.units import UnitError, parse_duration

    try:
        return (now or datetime.now(UTC)) - timedelta(seconds=parse_duration(text))
    except OverflowError:
        raise UsageError(f"--since {text}: before all calendars", hint="write 5m, 2h, or 7d") from None
    except UnitError:
        pass
    try:
        time = datetime.fromisoformat(text)
        return time if time.tzinfo is not None else time.astimezone()
    except (ValueError, OverflowError):  # the latter at the ends of the calendar
        raise UsageError(f"--since {text}: not a time", hint="write 5m, 2h, or 2026-01-31T12:00") from None


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"--grep {text}: {error}", hint="quote it for the shell; escape ( and [") from None
