"""`--rate 50MB/s`: a limit on copying, as the file writes rates too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Body = TypeVar("Body", bound=Callable[..., None])


class Rate(click.ParamType[int]):
    """Bytes a second."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it as the file's rates are read."""
        from twinlog.spec.units import UnitError, parse_rate

        if not isinstance(value, str):
            return value
        try:
            count = parse_rate(value)
        except UnitError as error:
            self.fail(f"{error} ({error.hint})" if error.hint else str(error), param, ctx)
        if count < 1:
            self.fail("a rate of nothing would never end", param, ctx)
        return count


def rate_option(body: Body) -> Body:
    """`--rate`, for commands that have partitions copied."""
    help = "At most this much copying, at each broker and in each direction; 50MB/s, say."
    return click.option("--rate", type=Rate(), metavar="RATE", help=help)(body)
