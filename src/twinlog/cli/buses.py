"""From a command's context to its bus: the step that almost every command begins with."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from twinlog.cli import frame
from twinlog.errors import FileProblems, Problem, UsageError

if TYPE_CHECKING:  # a Home needs pydantic, and `--help` must not wait for it
    from twinlog.sites.home import Home

Body = TypeVar("Body", bound=Callable[..., None])
LONGEST_TIMEOUT_S = 86400.0


def home_of(ctx: frame.Context, *, warn: bool = False, memos: bool = True) -> Home:
    """The bus that the file declares, on this machine; without `memos` nothing is written there."""
    home = _declared(ctx, warn, memos)
    home.refuse_other_bus()
    return home


def _declared(ctx: frame.Context, warn: bool = False, memos: bool = True) -> Home:
    from twinlog.sites.home import Home

    loaded = frame.load_bus(ctx, warn=warn, memos=memos)
    return Home(loaded.bus, loaded.file, warn=ctx.warn, memos=memos)


def home_as_it_is(ctx: frame.Context, site: str | None) -> Home:
    """As `home_of`, for commands that are needed most when the file is wrong or no longer has what runs.

    They then go by what was recorded when the bus was brought up, and say so.
    """
    from twinlog.sites import recorded

    try:
        home = _declared(ctx)
    except UsageError as error:
        file = _place_of_file(ctx)
        known = recorded.home_at(file) if file is not None else None
        if file is None or known is None:
            raise
        if isinstance(error, FileProblems):
            for problem in error.problems:
                ctx.warn(replace(problem, severity="warning"), error.file)
        what = f"{error.what}: going by what was recorded when bus {known.bus.bus} was brought up"
        ctx.warn(Problem(0, 0, what, path=str(file), severity="warning"), str(file))
        return known
    home.refuse_other_bus()
    if site is not None and site not in home.bus.sites:
        home = recorded.with_forgotten(home)
    return home


def _place_of_file(ctx: frame.Context) -> Path | None:
    """Where the file is, or was before it was lost."""
    from twinlog.sites import recorded
    from twinlog.spec.file import find

    if ctx.file is not None:
        return ctx.file
    try:
        return find(Path.cwd())
    except UsageError:
        named = os.environ.get("TWINLOG_FILE")
        return Path.cwd() / named if named else recorded.find(Path.cwd())


def dismiss_orderers(home: Home) -> None:
    """End the ordering service of a bus that has one, before its brokers end."""
    if (home.directory / "ordering").is_dir():
        from twinlog.ordering.fleet import Fleet

        Fleet(home).dismiss()


def dismiss_jobs(home: Home) -> None:
    """End the jobs of a bus that has some, before its brokers end."""
    if (home.directory / "streams").is_dir():
        from twinlog.streams.places import background

        background(home).dismiss()


def site_option(body: Body) -> Body:
    """`--site NAME`, which means the same everywhere: only this site, else all of them."""
    return click.option("--site", metavar="NAME", help="Only this site.")(body)


def timeout_option(*, default_s: float, help: str) -> Callable[[Body], Body]:
    """`--timeout SECONDS`: how long a command waits before it gives up or uses force."""
    return click.option("--timeout", type=_Seconds(), default=default_s, show_default=True, help=help)


class _Seconds(click.FloatRange):
    """A time to wait; click's own range lets `nan` through, which is never over."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0, max=LONGEST_TIMEOUT_S)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds
