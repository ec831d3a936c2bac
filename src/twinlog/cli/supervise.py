"""`twinlog supervise`: watch the nodes of the bus and restart those that die."""

from __future__ import annotations

import signal
import threading

from twinlog.cli import frame
from twinlog.cli.buses import home_of
from twinlog.cli.output import write


@frame.command(example="twinlog supervise")
def command(ctx: frame.Context) -> None:
    """Restart nodes that die, in the foreground, until Ctrl-C or SIGTERM.

    A node is restarted on its own disk with growing pauses; one that dies again and again is left
    alone and named in `twinlog status`. Nodes that were stopped on purpose are not touched. The
    nodes go on when the supervisor ends.
    """
    from twinlog.sites.supervisor import Supervisor

    home = home_of(ctx)
    home.state()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Supervisor(home, log=lambda line: write(line + "\n")).run(stop)
