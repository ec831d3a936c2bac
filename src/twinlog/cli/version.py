"""`twinlog version`: which versions work together here."""

from __future__ import annotations

import platform

from twinlog import __version__
from twinlog.cli import frame
from twinlog.cli.output import Column, Record


@frame.command(example="twinlog version -o json")
def command(ctx: frame.Context) -> None:
    """Print the versions of Twinlog, of Python and of the Kafka that Twinlog runs."""
    from twinlog.spec.model import KAFKA_VERSION

    versions = {"twinlog": __version__, "python": platform.python_version(), "kafka": KAFKA_VERSION}
    ctx.emit(Record([Column(name) for name in versions], versions))
