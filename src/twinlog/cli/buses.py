"""From a command's context to its bus: the step that almost every command begins with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from twinlog.cli import frame

if TYPE_CHECKING:  # a Home needs pydantic, and `--help` must not wait for it
    from twinlog.sites.home import Home

Body = TypeVar("Body", bound=Callable[..., None])


def home_of(ctx: frame.Context, *, warn: bool = False) -> Home:
    """The bus that the file declares, on this machine."""
    from twinlog.sites.home import Home

    loaded = frame.load_bus(ctx, warn=warn)
    return Home(loaded.bus, loaded.file, warn=ctx.warn)


def site_option(body: Body) -> Body:
    """`--site NAME`, which means the same everywhere: only this site, else all of them."""
    return click.option("--site", metavar="NAME", help="Only this site.")(body)
