"""The answer of a command: tables and records for people, JSON for scripts.

Commands describe what they found with `Table` and `Record` and know nothing of how it is shown.
JSON keys are the names of the fields and stay between versions; the table shows a choice of them.
A value of None means that nobody could say, and is shown as unknown, never left out.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlog.cli import unlimited

if TYPE_CHECKING:  # rich is imported when a table is drawn
    from rich.console import Console, RenderableType

# A pipe has no width: lines are as long as they need to be, so that grep and cut see whole rows.
UNLIMITED_COLUMNS = 4000


def plain(value: Any) -> str:
    """A value as a cell shows it unless the column says otherwise."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(plain(item) for item in value)
    return str(value)


@dataclass(frozen=True)
class Column:
    """One field of a row: the key in JSON, and how the table shows it."""

    key: str
    title: str = ""  # the key with blanks, unless given
    show: Callable[[Any], str] = plain
    right: bool = False  # numbers stand under each other
    style: Callable[[Any], str] | None = None  # a colour for the value, where colours are shown
    spare: bool = False  # left out first where a table is too wide for the terminal

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return self.title or self.key.replace("_", " ")


@dataclass(frozen=True)
class Table:
    """Rows (mappings or dataclasses) and the columns that people want to see of them."""

    columns: Sequence[Column]
    rows: Sequence[Any]
    name: str = ""  # the heading, and the key in JSON, where there are several parts
    empty: str = "none"


@dataclass(frozen=True)
class Record:
    """One thing, its fields below each other."""

    columns: Sequence[Column]
    value: Any
    name: str = ""


Part = Table | Record


def field_of(row: Any, key: str) -> Any:
    """A field of a mapping or of an object."""
    return row[key] if isinstance(row, Mapping) else getattr(row, key)


def to_json(value: Any) -> Any:
    """Any value that commands show, in terms of JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return to_json(value.value)
    if isinstance(value, set | frozenset):
        return sorted(to_json(item) for item in value)
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    return value


def document(parts: Sequence[Part]) -> Any:
    """The JSON document of an answer: the part itself, or an object of several by name."""
    if len(parts) == 1:
        return _part_json(parts[0])
    return {part.name: _part_json(part) for part in parts}


def _part_json(part: Part) -> Any:
    if isinstance(part, Record):
        return _row_json(part.value, part.columns)
    return [_row_json(row, part.columns) for row in part.rows]


def _row_json(row: Any, columns: Iterable[Column]) -> dict[str, Any]:
    whole: dict[str, Any] = to_json(row)
    # Columns may also show properties, which are no fields of their own.
    return {**whole, **{column.key: to_json(field_of(row, column.key)) for column in columns}}


def drawn(parts: Sequence[Part]) -> list[RenderableType]:
    """The parts as rich draws them; also for commands that show them live."""
    from rich.text import Text

    pieces: list[RenderableType] = []
    for number, part in enumerate(parts):
        if number:
            pieces.append(Text(""))
        if part.name and len(parts) > 1:
            pieces.append(Text(part.name, style="bold"))
        if isinstance(part, Table) and not part.rows:
            pieces.append(Text(part.empty))
        else:
            pieces.append(_grid(part))
    return pieces


def _grid(part: Part) -> RenderableType:
    from twinlog.cli.grids import Cell, Fields, Rows, Strip

    rows = [part.value] if isinstance(part, Record) else part.rows
    strips = []
    for column in part.columns:
        values = [field_of(row, column.key) for row in rows]
        cells = [Cell(column.show(value), column.style(value) if column.style else "") for value in values]
        strips.append(Strip(column.heading, cells, column.right, column.spare))
    return Fields(strips) if isinstance(part, Record) else Rows(strips)


def simply_drawn(parts: Sequence[Part]) -> str | None:
    """The parts as they stand in a pipe, without rich; None if they need it."""
    lines: list[str] = []
    for number, part in enumerate(parts):
        if number:
            lines.append("")
        if part.name and len(parts) > 1:
            lines.append(part.name)
        drawn_part = _simple_lines(part)
        if drawn_part is None:
            return None
        lines += drawn_part
    return "".join(f"{line}\n" for line in lines)


def _simple_lines(part: Part) -> list[str] | None:
    if isinstance(part, Table) and not part.rows:
        return [part.empty]
    rows = [part.value] if isinstance(part, Record) else part.rows
    strips = [
        unlimited.Strip(
            column.heading, [column.show(field_of(row, column.key)) for row in rows], column.right
        )
        for column in part.columns
    ]
    draw = unlimited.fields if isinstance(part, Record) else unlimited.table
    return draw(strips, UNLIMITED_COLUMNS)


def _is_unlimited() -> bool:
    return not sys.stdout.isatty() and not os.environ.get("COLUMNS")


def console() -> Console:
    """stdout as rich sees it: no colour when it is not a terminal or NO_COLOR is set."""
    from rich.console import Console

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = UNLIMITED_COLUMNS if _is_unlimited() else None
    return Console(color_system="auto" if colour else None, highlight=False, markup=False, width=width)


def emit(parts: Sequence[Part], *, as_json: bool) -> None:
    """Print an answer on stdout."""
    if as_json:
        write(json.dumps(document(parts), indent=2) + "\n")
        return
    text = simply_drawn(parts) if _is_unlimited() else None
    if text is not None:
        write(text)
        return
    out = console()
    with out.capture() as capture:
        out.print(*drawn(parts), sep="\n", crop=False)
    # Rich fills the last column with blanks, which would stand in every file and diff.
    write("".join(line.rstrip() + "\n" for line in capture.get().splitlines()))


def write(text: str) -> None:
    """Print on stdout and find out now, not at exit, whether anybody still reads."""
    sys.stdout.write(text)
    sys.stdout.flush()
