"""The report of a drill as one HTML file that needs nothing else: no network, no script, no font.

`drill run` writes it beside the history. It reads the same at 400 and at 1400 pixels, in light and in
dark; the timeline is drawn for both widths, and its content is in the tables too. Everything that comes
out of a history is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files

from twinlog.drills.content import BROKEN, KEPT, Section, load, sections, visible
from twinlog.drills.plot import styles_of, timeline
from twinlog.drills.verdict import Verdict

FINDINGS_SHOWN = 200  # of each kind
NARROW_PX, WIDE_PX = 360, 1080
SHORT_TEXT, LONG_TEXT = 20, 60  # characters
FEW_COLUMNS = 4  # so many fit a narrow window without scrolling
# The browser asks for nothing, even if something in here were to tell it to.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(verdict: Verdict) -> str:
    """The whole page."""
    title = _text(f"Drill {verdict.about.drill}: {verdict.word}")
    style = files("twinlog.drills").joinpath("page.css").read_text(encoding="utf-8")
    first, *rest = sections(verdict, FINDINGS_SHOWN)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{title}</title>",
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            f'<header class="{verdict.word}">',
            f"<h1>{_text(verdict.about.drill)} <strong>{verdict.word}</strong></h1>",
            f"<p>{_text(load(verdict))}</p>",
            "</header>",
            "<main>",
            *_section(first),
            *_figure(verdict),
            *(line for section in rest for line in _section(section)),
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _figure(verdict: Verdict) -> Iterator[str]:
    yield "<section>"
    yield "<h2>Timeline</h2>"
    yield '<figure><figcaption class="key">Acknowledged writes per second at'
    for site, style in styles_of(verdict.index).items():
        yield f'<span><i class="swatch {style}"></i>{_text(site)}</span>'
    yield '<span><i class="swatch fault"></i>fault</span><span><i class="swatch move"></i>no site open</span>'
    yield "A client that cannot say which site answered is counted for the one that was open."
    yield "Numbers are those of the events below.</figcaption>"
    yield f'<div class="narrow">{timeline(verdict, NARROW_PX, "narrow")}</div>'
    yield f'<div class="wide">{timeline(verdict, WIDE_PX, "wide")}</div>'
    yield "</figure>"
    yield "</section>"


def _section(section: Section) -> Iterator[str]:
    title = _text(section.title)
    yield "<section>"
    yield f"<h2>{title}</h2>"
    if section.note:
        yield f"<p>{_text(section.note)}</p>"
    if section.rows:
        # A wide table scrolls by itself, with the keyboard too, and the page never does sideways.
        few = ' class="few"' if len(section.columns) <= FEW_COLUMNS else ""
        yield f'<div class="scroll" role="region" aria-label="{title}" tabindex="0"><table{few}>'
        if any(column.heading for column in section.columns):
            yield f"<thead><tr>{''.join(_headings(section))}</tr></thead>"
        yield "<tbody>"
        for row in section.rows:
            yield f"<tr>{''.join(_cells(section, row))}</tr>"
        yield "</tbody></table></div>"
    yield "</section>"


def _headings(section: Section) -> Iterator[str]:
    for column in section.columns:
        style = ' class="right"' if column.right else ""
        yield f'<th scope="col"{style}>{_text(column.heading)}</th>'


def _cells(section: Section, row: tuple[str, ...]) -> Iterator[str]:
    for column, text in zip(section.columns, row, strict=True):
        style = "right" if column.right else {KEPT: "kept", BROKEN: "broken"}.get(text, _length(text))
        yield f'<td class="{style}">{_text(text)}</td>'


def _text(text: str) -> str:
    return escape(visible(text))


def _length(text: str) -> str:
    """How a cell is set: names in one line, long text with room enough to be read."""
    if len(text) <= SHORT_TEXT:
        return "short"
    return "long" if len(text) > LONG_TEXT else "text"
