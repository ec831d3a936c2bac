"""The frame that every command stands in: its options, its context, its output.

A command's module makes its command with `command` (or a family of them with `group`) and gets a
`Context` as first argument. The frame adds the options that all commands share, so that they mean
the same everywhere, and ends the progress display before anything else is printed.
Commands return nothing and raise `TwinlogError`; `app.run` makes a message and an exit code of it.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from twinlog.cli import output, progress
from twinlog.errors import Problem, UsageError
from twinlog.progress import Progress

if TYPE_CHECKING:  # `--help` needs nothing of the file
    from twinlog.spec.file import Loaded
    from twinlog.spec.finding import Finding

P = ParamSpec("P")
Body = Callable[Concatenate["Context", P], None]


@dataclass
class Context:
    """What one call of a command was given, and its ways to the user."""

    command_path: str  # "twinlog certs status"
    file: Path | None = None
    as_json: bool = False
    quiet: bool = False
    yes: bool = False
    words: tuple[str, ...] = ()  # as they were typed after the program's name
    _at_end: ExitStack = field(default_factory=ExitStack)
    _loaded: Loaded | None = None

    @functools.cached_property
    def progress(self) -> Progress:
        """To be handed to lower layers; shown on stderr, ended with the command."""
        return self._at_end.enter_context(progress.watched(quiet=self.quiet, as_json=self.as_json))

    def emit(self, *parts: output.Part) -> None:
        """Print the command's answer on stdout: tables and records, or one JSON document."""
        self._at_end.close()  # a display that still redraws itself would write over the answer
        output.emit(parts, as_json=self.as_json)

    def write(self, text: str, *, as_json: Any) -> None:
        """Print an answer that is a text of its own (a script, a file), or its JSON form."""
        self._at_end.close()
        output.write(json.dumps(as_json, indent=2) + "\n" if self.as_json else text)

    def warn(self, problem: Problem, file: str) -> None:
        """Print one warning on stderr."""
        as_json = {"warning": {"file": file, **asdict(problem)}}
        click.echo(json.dumps(as_json) if self.as_json else problem.render(file), err=True)

    def need_yes(self, what: str, *, where: str = "") -> None:
        """Go no further unless the user gave --yes; nothing is asked, so that scripts never hang."""
        if not self.yes:
            # The very command that was called: without its options it would mean something else.
            called = shlex.join(self.words) if self.words else self.command_path.partition(" ")[2]
            raise UsageError(what, where=where, hint=f"twinlog {called} --yes")


def load_bus(ctx: Context, *, warn: bool = False, memos: bool = True) -> Loaded:
    """The file of this call, found and read once; with `warn` its warnings go to stderr."""
    if ctx._loaded is None:
        from twinlog.spec.file import find

        file = ctx.file if ctx.file is not None else find(Path.cwd())
        ctx._loaded = _load(file, memos)
        for problem in ctx._loaded.warnings if warn else ():
            ctx.warn(problem, str(file))
    return ctx._loaded


def _load(file: Path, memos: bool) -> Loaded:
    """What the file declares: as it was found before if nothing has changed, else from the loader.

    Only the loader needs pydantic and YAML, which take longer to import than most commands take to run.
    """
    from twinlog.sites.state import DIRECTORY
    from twinlog.spec import recalled
    from twinlog.spec.file import content

    raw = content(file)
    directory = file.absolute().parent.resolve() / DIRECTORY

    def parse() -> Loaded:
        from twinlog.spec import load

        return load.parse(raw, file, os.environ)

    def locate(finding: Finding) -> Problem:
        return parse().locate(finding)

    known = recalled.recall(file, raw, os.environ, directory, locate)
    if known is None:
        known = parse()
        if memos:
            recalled.keep(known, raw, os.environ, directory)
    return known


class FramedCommand(click.Command):
    """A command whose help ends in examples."""

    def __init__(self, *, example: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.example = example

    @property
    def examples(self) -> list[str]:
        """One command a line."""
        return inspect.cleandoc(self.example).splitlines()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, as they would be typed."""
        _show_examples(formatter, self.examples)


class FramedGroup(click.Group):
    """A family of commands whose help ends in the first example of each."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As of a command."""
        members = [self.get_command(ctx, name) for name in self.list_commands(ctx)]
        _show_examples(formatter, [one.examples[0] for one in members if isinstance(one, FramedCommand)])


def _show_examples(formatter: click.HelpFormatter, lines: Sequence[str]) -> None:
    with formatter.section("Example" if len(lines) == 1 else "Examples"):
        for line in lines:
            formatter.write(f"{'':>{formatter.current_indent}}$ {line}\n")


def command(
    *, example: str, confirms: bool = False, parent: click.Group | None = None, name: str | None = None
) -> Callable[[Body[P]], FramedCommand]:
    """Make a command of a function; `confirms` gives it --yes, `parent` is the group it belongs to."""

    def decorate(body: Body[P]) -> FramedCommand:
        @functools.wraps(body)
        def call(
            file: Path | None, output: str, quiet: bool, yes: bool = False, *args: P.args, **own: P.kwargs
        ) -> None:
            called = click.get_current_context()
            words = called.find_root().obj or ()
            ctx = Context(
                called.command_path, file=file, as_json=output == "json", quiet=quiet, yes=yes, words=words
            )
            with ctx._at_end:
                body(ctx, *args, **own)

        own_params = list(reversed(getattr(body, "__click_params__", [])))
        made = FramedCommand(
            name=name or body.__name__.replace("_", "-"),
            callback=call,
            params=own_params + _shared_options(confirms),
            help=inspect.getdoc(body),
            example=example,
        )
        if parent is not None:
            parent.add_command(made)
        return made

    return decorate


def group(name: str, help: str) -> click.Group:
    """A family of commands that share a first word: `twinlog certs status`."""
    return FramedGroup(name=name, help=help, no_args_is_help=True)


def _shared_options(confirms: bool) -> list[click.Parameter]:
    options: list[click.Parameter] = [
        click.Option(
            ["-f", "--file"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The file; by default twinlog.yaml, here or in a directory above.",
        ),
        click.Option(
            ["-o", "--output"],
            type=click.Choice(["table", "json"]),
            default="table",
            help="For people or for scripts.",
        ),
        click.Option(["-q", "--quiet"], is_flag=True, help="Show no progress."),
    ]
    if confirms:
        options.append(click.Option(["--yes"], is_flag=True, help="Go on where something would be lost."))
    return options
