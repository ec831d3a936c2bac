"""`twinlog witness`: the third vote, in the foreground."""

from __future__ import annotations

import signal
import threading

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of


@frame.command(example="twinlog witness")
def command(ctx: frame.Context) -> None:
    """Be the third vote of a bus with `promote: automatic`, until Ctrl-C.

    It runs where neither site does, so that the loss of a site is never the loss of two votes. It needs
    the bus's file and the link's papers of the directory beside it, and keeps a small memory there.
    """
    from twinlog.traffic import electorate
    from twinlog.traffic.votes import WITNESS
    from twinlog.traffic.witness import run_witness

    home = home_of(ctx, warn=True)
    home.state()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    run_witness(
        electorate.seat(home, WITNESS), electorate.timing(home), stop, lambda text: click.echo(text, err=True)
    )
