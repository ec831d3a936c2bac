"""How tables and records are laid out in the width that there is; drawn by `output` with rich.

On a wide terminal, and in a pipe, every cell stands on one line. With less room the widest columns give
first and their cells are wrapped between words; then columns that are spare are left out, which the last
line says; then each row becomes a paragraph, its fields below each other. No word is ever broken and
nothing is cut: a word that is longer than a line is left to the terminal. `fit`, `laid_out` and `wrapped`
are pure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

GAP = 2  # blanks between columns


class Cell(NamedTuple):
    """A text and its colour."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Strip:
    """One column with its cells."""

    heading: str
    cells: Sequence[Cell]
    right: bool = False
    spare: bool = False

    @property
    def natural(self) -> int:
        """The width in which nothing is wrapped."""
        return max(cell_len(text) for text in (self.heading, *(cell.text for cell in self.cells)))

    @property
    def least(self) -> int:
        """The width in which no word is broken, and no number with its unit."""
        words = [word for cell in self.cells for word in ([cell.text] if self.right else cell.text.split())]
        return max((cell_len(word) for word in (*self.heading.split(), *words)), default=0)


class Layout(NamedTuple):
    """The columns that are shown, how wide each is, and the headings of those that are not."""

    strips: Sequence[Strip]
    widths: Sequence[int]
    left_out: Sequence[str]


def fit(natural: Sequence[int], least: Sequence[int], available: int) -> list[int] | None:
    """Widths that fit together: the widest give first, none below its least; None if they cannot."""
    widths = list(natural)
    while sum(widths) > available:
        wider = [number for number, width in enumerate(widths) if width > least[number]]
        if not wider:
            return None
        widths[max(wider, key=lambda number: widths[number])] -= 1
    return widths


def laid_out(strips: Sequence[Strip], width: int) -> Layout | None:
    """A table of this width, without spare columns where it must be; None if even that is too wide."""
    shown, left_out = list(strips), list[str]()
    while True:
        available = width - GAP * (len(shown) - 1)
        widths = fit([strip.natural for strip in shown], [strip.least for strip in shown], available)
        if widths is not None:
            return Layout(shown, widths, left_out)
        spare = [strip for strip in shown if strip.spare]
        if not spare:
            return None
        shown.remove(spare[-1])
        left_out.insert(0, spare[-1].heading)


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines of at most this width, but for words that are longer."""
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        broken = textwrap.wrap(
            line,
            max(width, 1),
            expand_tabs=False,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += [line] if len(line) <= width else broken
    return lines


@dataclass(frozen=True)
class Rows:
    """A table, or paragraphs where a table does not fit."""

    strips: Sequence[Strip]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        layout = laid_out(self.strips, options.max_width)
        if layout is None:
            yield from _paragraphs(self.strips, options.max_width)
            return
        grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        for strip, width in zip(layout.strips, layout.widths, strict=True):
            grid.add_column(
                Text(strip.heading.upper()),  # not as markup: what is in brackets is meant so
                justify="right" if strip.right else "left",
                width=width,
                overflow="fold",
            )
        for row in zip(*(strip.cells for strip in layout.strips), strict=True):
            grid.add_row(*(Text(*cell) for cell in row))
        yield grid
        if layout.left_out:
            names = ", ".join(layout.left_out)
            for line in wrapped(f"… too narrow for: {names} (-o json has them)", options.max_width):
                yield _line(Text(line, style="dim"))


@dataclass(frozen=True)
class Fields:
    """The fields of one thing, below each other."""

    strips: Sequence[Strip]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _fields([(strip.heading, strip.cells[0]) for strip in self.strips], options.max_width)


def _paragraphs(strips: Sequence[Strip], width: int) -> RenderResult:
    for number in range(len(strips[0].cells)):
        if number:
            yield Text("")
        told = [(strip.heading, strip.cells[number]) for strip in strips]
        yield from _fields([(heading, cell) for heading, cell in told if cell.text], width)


def _fields(fields: Sequence[tuple[str, Cell]], width: int) -> RenderResult:
    indent = max((cell_len(heading) for heading, _ in fields), default=0) + GAP
    for heading, cell in fields:
        longest = max((cell_len(word) for word in cell.text.split()), default=0)
        if longest <= width - indent:
            head, *rest = wrapped(cell.text, width - indent)
            beside = heading.ljust(indent)
            yield _line(Text.assemble((beside, "bold"), (head, cell.style)))
            margin = indent
        else:
            yield _line(Text(heading, style="bold"))
            rest, margin = wrapped(cell.text, width - GAP), GAP
        for line in rest:
            yield _line(Text.assemble(" " * margin, (line, cell.style)))


def _line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ignore"
    return text
