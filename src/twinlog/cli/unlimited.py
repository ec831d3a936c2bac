"""Tables and records where lines may be as long as they need to be: in a pipe. Pure.

`output` asks here first, because importing rich takes longer than most commands do. What is drawn is what
`grids` would draw with so much room; what may need more than counting characters is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

GAP = 2  # blanks between columns


class Strip(NamedTuple):
    """One column with its cells."""

    heading: str
    cells: Sequence[str]
    right: bool = False


def table(strips: Sequence[Strip], width: int) -> list[str] | None:
    """A table, a line for each row; None if it is not as simple as that."""
    columns = [[strip.heading.upper(), *strip.cells] for strip in strips]
    widths = [max(map(len, column)) for column in columns]
    if sum(widths) + GAP * (len(widths) - 1) > width or not all(map(_is_simple, columns)):
        return None
    lines = []
    for row in zip(*columns, strict=True):
        cells = [
            cell.rjust(room) if strip.right else cell.ljust(room)
            for cell, room, strip in zip(row, widths, strips, strict=True)
        ]
        lines.append((" " * GAP).join(cells).rstrip())
    return lines


def fields(strips: Sequence[Strip], width: int) -> list[str] | None:
    """The fields of one thing below each other; None if it is not as simple as that."""
    indent = max((len(strip.heading) for strip in strips), default=0) + GAP
    texts = [strip.cells[0] for strip in strips]
    if not _is_simple([*(strip.heading for strip in strips), *texts]):
        return None
    if indent + max(map(len, texts), default=0) > width:
        return None
    return [f"{strip.heading:<{indent}}{text}".rstrip() for strip, text in zip(strips, texts, strict=True)]


def _is_simple(texts: Sequence[str]) -> bool:
    """True if every character takes one column, and no line ends within a text."""
    return all(text.isascii() and text.isprintable() and text == text.strip() for text in texts)
