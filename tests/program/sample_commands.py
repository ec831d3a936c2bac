"""The real program with a few commands that end badly on purpose; run as a program by the tests."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import click

from twinlog.cli import app, frame
from twinlog.cli.output import Column, Table
from twinlog.errors import FileProblems, Findings, KafkaError, Problem, SiteError

command = frame.group("sample", "Commands that end badly.")


def _fail_with(name: str, make: Callable[[], BaseException]) -> None:
    @frame.command(parent=command, name=name, example=f"twinlog sample {name}")
    def fail(ctx: frame.Context) -> None:
        """End badly."""
        ctx.progress.begin("reaching broker a/1")
        raise make()


PROBLEMS = [Problem(7, 3, "unknown key 'partition'", "partitions"), Problem(2, 1, "no sites")]
_fail_with("site", lambda: SiteError("broker a/1 ended", where="site a", hint="twinlog logs a"))
_fail_with("findings", lambda: Findings("two certificates end soon", hint="twinlog certs renew"))
_fail_with("kafka", lambda: KafkaError("refused", code="TOPIC_AUTHORIZATION_FAILED"))
_fail_with("file", lambda: FileProblems("twinlog.yaml", PROBLEMS))
_fail_with("bug", lambda: ZeroDivisionError("division by zero"))


@frame.command(parent=command, example="twinlog sample wait")
def wait(ctx: frame.Context) -> None:
    """Wait until interrupted, and say that the clean-up ran."""
    try:
        ctx.progress.begin("waiting")
        click.echo("ready")
        sys.stdout.flush()
        threading.Event().wait()
    finally:
        click.echo("cleaned up")


@frame.command(parent=command, example="twinlog sample rows")
@click.option("--count", default=3, help="How many.")
def rows(ctx: frame.Context, count: int) -> None:
    """Print rows, with progress."""
    ctx.progress.begin("counting", total=count)
    found = [
        {"broker": number, "state": "up", "address": f"127.0.0.1:{9000 + number}"} for number in range(count)
    ]
    for _ in found:
        ctx.progress.advance("counting")
    ctx.progress.end("counting", f"{count} found")
    ctx.emit(
        Table(
            [Column("broker", right=True), Column("state", style=lambda _: "green"), Column("address")], found
        )
    )


@frame.command(parent=command, confirms=True, example="twinlog sample remove --yes")
def remove(ctx: frame.Context) -> None:
    """Need a yes."""
    ctx.need_yes("all data of site a would be lost", where="site a")
    ctx.write("removed\n", as_json={"removed": True})


if __name__ == "__main__":
    # The module is loaded once more under its own name, as every command is.
    app.COMMANDS = {**app.COMMANDS, "sample": app.Entry("sample_commands", "Commands that end badly.")}
    app.main()
