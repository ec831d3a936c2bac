"""The report of a drill for the terminal: plain text, at most 80 columns.

`drill run` prints it; `page` is the same for browsers. Values come out of logs and may be anything, so
what could move a terminal's cursor, or is wider than one column, is shown as its code.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence

from twinlog.drills.content import Section, headline, sections, visible
from twinlog.drills.verdict import Verdict

COLUMNS = 80
GAP = "  "
NARROWEST = 4
FINDINGS_SHOWN = 5  # of each kind


def terminal(verdict: Verdict) -> str:
    """The whole report, with a line end at its end."""
    lines = _wrapped(headline(verdict), COLUMNS)
    for section in sections(verdict, FINDINGS_SHOWN):
        lines += ["", section.title, *_table(section)]
        if section.note:
            lines += [f"  {line}" for line in _wrapped(section.note, COLUMNS - 2)]
    return "".join(line.rstrip() + "\n" for line in lines)


def printable(text: str) -> str:
    """The text with everything as its code that is not one visible column wide."""
    shown = visible(text)
    if shown.isascii():
        return shown
    return "".join(one.encode("unicode_escape").decode() if _is_odd(one) else one for one in shown)


def _is_odd(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF" or bool(unicodedata.combining(character))


def _table(section: Section) -> Iterator[str]:
    if not section.rows:
        return
    headings = tuple(column.heading for column in section.columns)
    rows = [tuple(printable(cell) for cell in row) for row in (headings, *section.rows)]
    widths = _widths(rows, COLUMNS - 2)
    for row in rows if any(headings) else rows[1:]:
        cells = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for number in range(max(map(len, cells))):
            line = [cell[number] if number < len(cell) else "" for cell in cells]
            yield "  " + GAP.join(
                text.rjust(width) if column.right else text.ljust(width)
                for text, width, column in zip(line, widths, section.columns, strict=True)
            )


def _widths(rows: Sequence[tuple[str, ...]], room: int) -> list[int]:
    """How wide each column may be: as wide as its cells, and the widest give way if there is no room."""
    widths = [max(map(len, column), default=0) for column in zip(*rows, strict=True)]
    room -= len(GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), max(width, 1), break_on_hyphens=False) or [""]
