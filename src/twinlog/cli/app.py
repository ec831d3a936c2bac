"""The program `twinlog`: which commands there are, and how a run of it ends.

`COMMANDS` is the only list of commands. A command's module is imported when the command is named
and not before, so that `twinlog --help` stays quick however much the commands need.
Every end of the program goes through `run`: exit code 0 (done), 1 (failed), 2 (called wrongly),
3 (done, and something was found), 130 (interrupted).
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

import click

from twinlog import __version__
from twinlog.cli import failure
from twinlog.errors import EXIT_FAILED, EXIT_OK

PROGRAM = "twinlog"
COMPLETE_VARIABLE = "_TWINLOG_COMPLETE"


class Entry(NamedTuple):
    """Where a command lives: a module with a `command` in it."""

    module: str
    help: str


COMMANDS: Mapping[str, Entry] = {
    "init": Entry("twinlog.cli.init", "Write a commented twinlog.yaml to start from."),
    "plan": Entry("twinlog.cli.plan", "Show the difference between the file and the sites."),
    "up": Entry("twinlog.cli.up", "Bring up the sites and make them what the file says."),
    "apply": Entry("twinlog.cli.apply", "Make the sites what the file says."),
    "status": Entry("twinlog.cli.status", "Show how the sites and their nodes are."),
    "link": Entry("twinlog.cli.link", "Mirror the active to the standby, at the same offsets."),
    "stream": Entry("twinlog.cli.stream", "Run jobs on the bus's records."),
    "table": Entry("twinlog.cli.table", "Look into the tables that jobs keep."),
    "sql": Entry("twinlog.cli.sql", "Ask topics, tables and the lake in SQL."),
    "traffic": Entry("twinlog.cli.traffic", "Watch both sites, send clients to the active one, move them."),
    "witness": Entry("twinlog.cli.witness", "Be the third vote, for automatic promotion."),
    "gate": Entry("twinlog.cli.gate", "Forward clients to the active site: the one address they know."),
    "switchover": Entry("twinlog.cli.switchover", "Make the standby active; nothing is lost."),
    "promote": Entry("twinlog.cli.promote", "Make the standby active because the active is lost."),
    "return": Entry("twinlog.cli.comeback", "Take a lost site back as the standby."),
    "salvage": Entry("twinlog.cli.salvage", "Look at what only a lost site had, and write it again."),
    "recover": Entry("twinlog.cli.recover", "Rebuild what the bus remembers from disks and sites."),
    "order": Entry("twinlog.cli.order", "Order transactions into blocks, as Fabric's Kafka orderers do."),
    "drill": Entry("twinlog.cli.drill", "Break a bus on purpose, and see what survives."),
    "topic": Entry("twinlog.cli.topic", "List, describe, make, change, trim and delete topics."),
    "produce": Entry("twinlog.cli.produce", "Write lines, files or JSON lines to a topic."),
    "consume": Entry("twinlog.cli.consume", "Print records of a topic, in kcat's formats or as JSON."),
    "redrive": Entry("twinlog.cli.redrive", "Send dead letters back to where they came from."),
    "group": Entry("twinlog.cli.group", "Groups of consumers: members, lag, reset and delete."),
    "config": Entry("twinlog.cli.config", "Look at and change settings while brokers run."),
    "transactions": Entry("twinlog.cli.transactions", "List, describe and abort transactions."),
    "producers": Entry("twinlog.cli.producers", "Show what partitions remember of their producers."),
    "quorum": Entry("twinlog.cli.quorum", "Show the controllers and how far each copy of the metadata is."),
    "broker": Entry("twinlog.cli.broker", "List, restart, replace, add and remove brokers."),
    "move": Entry("twinlog.cli.move", "Move partitions between brokers, evenly and with a limit."),
    "elect": Entry("twinlog.cli.elect", "Have partitions led again by their preferred brokers."),
    "perf": Entry("twinlog.cli.perf", "Measure writing, reading and latency, as Kafka's own tools do."),
    "events": Entry("twinlog.cli.events", "Look at how the events of a topic are designed."),
    "exporter": Entry("twinlog.cli.exporter", "Serve metrics for Prometheus, under kafka_exporter's names."),
    "host": Entry("twinlog.cli.host", "Compare this host with what sites far apart need."),
    "client": Entry("twinlog.cli.client", "Print a ready client file for a user."),
    "user": Entry("twinlog.cli.user", "Users: passwords, rights and quotas."),
    "certs": Entry("twinlog.cli.certs", "Look at, renew, fetch, sign and exchange certificates."),
    "logs": Entry("twinlog.cli.logs", "Show the logs of all nodes, merged by time."),
    "bundle": Entry("twinlog.cli.bundle", "Write one directory to run a node on another machine."),
    "supervise": Entry("twinlog.cli.supervise", "Restart nodes that die."),
    "down": Entry("twinlog.cli.down", "Stop the sites; nothing is deleted."),
    "destroy": Entry("twinlog.cli.destroy", "Stop the sites and delete all that they hold."),
    "schema": Entry("twinlog.cli.schema", "Print the JSON schema of the file, for editors."),
    "version": Entry("twinlog.cli.version", "Print the versions that work together here."),
    "completion": Entry("twinlog.cli.completion", "Print the completion script of a shell."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports each one only when it is called."""

    def __init__(self, entries: Mapping[str, Entry], help: str) -> None:
        super().__init__(name=PROGRAM, help=help, no_args_is_help=True)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the list: from the first command one needs to the last."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself, imported now."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        command = import_module(entry.module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, written without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, but an unknown name is compared with ours."""
        known = args[0] in self.entries or args[0].startswith("-")
        if not known and not ctx.resilient_parsing:  # resilient: a shell asks in the middle of a word
            raise click.NoSuchCommand(args[0], possibilities=self.entries, ctx=ctx)
        return super().resolve_command(ctx, args)


def program() -> LazyGroup:
    """The whole command line."""
    group = LazyGroup(COMMANDS, "A message bus on two Kafka sites that survives the loss of one.")
    version = click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_show_version,
        help="Print the version and exit.",
    )
    group.params.append(version)
    return group


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"{PROGRAM} {__version__}")
        ctx.exit()


def _invoke(args: Sequence[str]) -> int:
    # Not `program().main()`: that turns a closed pipe into a failure and prints errors its own way.
    asked_by_shell = os.environ.get(COMPLETE_VARIABLE)
    if asked_by_shell:
        from click.shell_completion import shell_complete

        return shell_complete(program(), {}, PROGRAM, COMPLETE_VARIABLE, asked_by_shell)
    group = program()
    with group.make_context(PROGRAM, list(args), obj=tuple(args)) as ctx:
        group.invoke(ctx)
    sys.stdout.flush()
    return EXIT_OK


def run(args: Sequence[str], invoke: Callable[[Sequence[str]], int] = _invoke) -> int:
    """Run one command line to its end and return the exit code; every error is shown here."""
    try:
        return invoke(args)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        # The reader (head, a pager) has gone. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except (Exception, KeyboardInterrupt) as error:
        return failure.show(error, as_json=failure.wants_json(args))


def main() -> None:
    """Entry point of the `twinlog` script."""
    # A closed terminal or a polite kill ends a command as Ctrl-C does; what `nohup` ignores stays so.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    # Where a terminal cannot show a character it shows a question mark: no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="replace")
    # A start makes many objects and drops few: looking for those at every 700th is a thirtieth of its time.
    gc.set_threshold(20_000)
    # Pydantic would look through every installed package for plugins, at each start; none are used here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    sys.exit(run(sys.argv[1:]))
