"""From a command's context to its bus: the step that almost every command begins with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from twinlog.cli import frame

if TYPE_CHECKING:  # a Home needs pydantic, and `--help` must not wait for it
    from twinlog.sites.home import Home

Body = TypeVar("Body", bound=Callable[..., None])
LONGEST_TIMEOUT_S = 86400.0


def home_of(ctx: frame.Context, *, warn: bool = False) -> Home:
    """The bus that the file declares, on this machine."""
    from twinlog.sites.home import Home

    loaded = frame.load_bus(ctx, warn=warn)
    return Home(loaded.bus, loaded.file, warn=ctx.warn)


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
