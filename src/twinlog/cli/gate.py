"""`twinlog gate`: the one address that clients know, in the foreground."""

from __future__ import annotations

import signal
import threading

import click

from twinlog.cli import frame
from twinlog.cli.buses import home_of


@frame.command(example="twinlog gate")
def command(ctx: frame.Context) -> None:
    """Forward clients to the active site until Ctrl-C.

    It follows what the sites say of themselves, so several may run on several machines, and none of them
    decides anything. `twinlog traffic up` has one of its own.
    """
    from twinlog.traffic.entrance import Entrance, addresses

    home = home_of(ctx, warn=True)
    home.state()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with Entrance(home, lambda text: click.echo(text, err=True)):
        ctx.write(
            "".join(f"{listener.name} {place}\n" for listener, place in addresses(home).items()),
            as_json={listener.name: str(place) for listener, place in addresses(home).items()},
        )
        stop.wait()
