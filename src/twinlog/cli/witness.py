"""`twinlog witness`: the third vote, in the foreground, here or from a bundle on another machine."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import Column, Record
from twinlog.errors import UsageError

DIRECTORY = click.Path(path_type=Path, file_okay=False)


@frame.command(
    example="""
    twinlog witness
    twinlog witness --bundle witness
    twinlog witness --at witness
    """
)
@click.option("--bundle", type=DIRECTORY, help="Write what it needs on another machine into a directory.")
@click.option("--at", type=DIRECTORY, help="Run from such a directory; no file of the bus is needed.")
def command(ctx: frame.Context, bundle: Path | None, at: Path | None) -> None:
    """Be the third vote of a bus with `promote: automatic`, until Ctrl-C.

    It runs where neither site does, so that the loss of a site is never the loss of two votes. There it
    needs Twinlog and the directory that `--bundle` writes, and keeps a small memory in it.
    """
    from twinlog.traffic import electorate, outpost
    from twinlog.traffic.votes import WITNESS
    from twinlog.traffic.witness import run_witness

    if bundle is not None and at is not None:
        raise UsageError("write a bundle or run from one, not both", hint="twinlog witness --at DIRECTORY")
    if at is not None:
        seat, timing = outpost.read(at.absolute())
    else:
        home = home_of(ctx, warn=True)
        home.state()
        if bundle is not None:
            files = outpost.write(home, bundle.absolute())
            told = {
                "directory": bundle.absolute(),
                "start": bundle.absolute() / outpost.START,
                "files": files,
            }
            ctx.emit(Record([Column(name) for name in told], told))
            return
        seat, timing = electorate.seat(home, WITNESS), electorate.timing(home)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    run_witness(seat, timing, stop, lambda text: click.echo(text, err=True))
