"""The file: where it is found, and what it comes to once it was found right.

Apart from the loader, because every command asks where the file is, and few have to read it as YAML.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from twinlog.errors import Problem, UsageError
from twinlog.spec.model import Bus

if TYPE_CHECKING:  # where findings are, YAML is
    from twinlog.spec.finding import Finding

FILE_NAME = "twinlog.yaml"


@dataclass(frozen=True)
class Loaded:
    """A bus that can be used, the file it came from, and what is doubtful in it."""

    bus: Bus
    file: Path
    warnings: tuple[Problem, ...]
    locate: Callable[[Finding], Problem] = field(
        repr=False, compare=False
    )  # for rules that look at more than the loader does


def find(start: Path, env: Mapping[str, str] | None = None) -> Path:
    """The file that TWINLOG_FILE names, else twinlog.yaml in `start` or the nearest directory above it."""
    named = (os.environ if env is None else env).get("TWINLOG_FILE")
    if named:
        file = start / named
        if file.is_file():
            return file
        raise UsageError(f"there is no file {named}", where="$TWINLOG_FILE", hint="is the path right?")
    start = start.absolute()
    for directory in (start, *start.parents):
        if (directory / FILE_NAME).is_file():
            return directory / FILE_NAME
    raise UsageError(f"no {FILE_NAME} in {start} or above it", hint="twinlog init")


def content(file: Path) -> bytes:
    """What stands in the file."""
    try:
        return file.read_bytes()
    except OSError as error:
        reason = error.strerror or "unknown reason"
        raise UsageError(f"cannot read the file: {reason}", where=str(file), hint="twinlog init") from None
