"""How a failed run is told to the person, or to the script, that called it.

Called by `app.run` with whatever came up. The text goes to stderr: three short lines for people,
one JSON object for scripts (`-o json`). stdout is left alone, so that it never holds half an answer.
An exception that nobody raised on purpose is a bug of ours: its traceback goes to a file, because
a screen of it tells a user nothing, and `TWINLOG_DEBUG=1` shows it at once.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import click

from twinlog.durable import write_secret
from twinlog.errors import FileProblems, KafkaError, PrerequisiteError, TwinlogError, UsageError
from twinlog.machine import cache_directory

EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count
# What a disk may say at any write: no bug of ours.
_HINTS = {errno.ENOSPC: "df -h", errno.EDQUOT: "quota -s; df -h", errno.EROFS: "mount; ls -ld"}


def wants_json(args: Sequence[str]) -> bool:
    """Whether a command line asks for JSON; read here because it may be too wrong to be parsed."""
    named = list(args[: args.index("--")] if "--" in args else args)
    joined = any(arg in ("-ojson", "-o=json", "--output=json") for arg in named)
    return joined or any(flag in ("-o", "--output") and value == "json" for flag, value in pairwise(named))


def show(error: BaseException, *, as_json: bool) -> int:
    """Print an error on stderr and return the exit code that belongs to it."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        known, code = TwinlogError("interrupted"), EXIT_INTERRUPTED
    else:
        known = understood(error)
        code = known.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not as_json:
        text = error.message  # the whole help
    else:
        text = json.dumps(describe(known, code)) if as_json else render(known)
    click.echo(text, err=True)
    return code


def understood(error: BaseException) -> TwinlogError:
    """Any exception as one of ours."""
    if isinstance(error, TwinlogError):
        return error
    if isinstance(error, click.ClickException):
        return from_click(error)
    if isinstance(error, OSError) and error.errno in _HINTS:
        where = str(error.filename or "")
        return PrerequisiteError(
            f"cannot write: {error.strerror}", where=where, hint=f"{_HINTS[error.errno]} {where}".rstrip()
        )
    return _bug(error)


def from_click(error: click.ClickException) -> TwinlogError:
    """A wrong command line, with the nearest right one as the hint."""
    if not isinstance(error, click.UsageError):
        return TwinlogError(_sentence(error.format_message()))
    path = error.ctx.command_path if error.ctx else "twinlog"
    return UsageError(_sentence(_what(error)), hint=_nearest(error, path) or f"{path} --help")


def _what(error: click.UsageError) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return "missing command"
    if isinstance(error, click.MissingParameter) and error.param is not None and error.ctx is not None:
        return f"missing {error.param.param_type_name} {error.param.get_error_hint(error.ctx)}"
    if isinstance(error, click.NoSuchCommand | click.NoSuchOption):
        return error.message  # without click's own guess, which becomes the hint
    return error.format_message()


def _nearest(error: click.UsageError, path: str) -> str:
    if isinstance(error, click.NoSuchCommand) and error.possibilities:
        return f"{path} {error.possibilities[0]}"
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        return f"did you mean {error.possibilities[0]}?"
    if isinstance(error, click.NoSuchOption) and error.ctx is not None and error.ctx.parent is None:
        return f"options come after the command: {path} COMMAND {error.option_name} ..."
    return ""


def describe(error: TwinlogError, code: int) -> dict[str, Any]:
    """The error as scripts read it; the keys are kept between versions."""
    body: dict[str, Any] = {
        "what": error.what,
        "where": error.where,
        "hint": error.hint,
        "code": code,
        "kind": type(error).__name__,
    }
    if isinstance(error, KafkaError):
        body["kafka_code"] = error.code
    if isinstance(error, FileProblems):
        body["where"] = error.file
        body["problems"] = [asdict(problem) for problem in error.problems]
    return {"error": body}


def render(error: TwinlogError) -> str:
    """The error as people read it."""
    lines = (
        [problem.render(error.file) for problem in error.problems] if isinstance(error, FileProblems) else []
    )
    lines.append(f"{_red('error:')} {error.what}")
    if error.where:
        lines.append(f"  where: {error.where}")
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    return "\n".join(lines)


def _bug(error: BaseException) -> TwinlogError:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    trace = "".join(traceback.format_exception(error))
    if os.environ.get("TWINLOG_DEBUG") == "1":
        click.echo(trace, err=True, nl=False)
        return TwinlogError(f"this is a bug in Twinlog: {what}")
    try:
        where = _keep(trace)
    except OSError:
        return TwinlogError(
            f"this is a bug in Twinlog: {what}", hint="TWINLOG_DEBUG=1 shows where it happened"
        )
    return TwinlogError(
        f"this is a bug in Twinlog: {what}", where=where, hint="please report it with that file"
    )


def _keep(trace: str) -> str:
    folder = cache_directory() / "tracebacks"
    folder.mkdir(exist_ok=True)
    file = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    # A message from a library may hold what only this user should read.
    write_secret(file, trace)
    return str(file)


def _sentence(text: str) -> str:
    """Click's message in our form: no capital at the start, no full stop at the end."""
    text = text.rstrip(".")
    return text[:1].lower() + text[1:]


def _red(text: str) -> str:
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return click.style(text, fg="red", bold=True) if colour else text
