"""The timeline of a drill as one SVG element: acknowledged writes per second and site, lag, what happened.

The page holds it twice, drawn for a narrow and for a wide window, so that its text is always of a size
that can be read. Colours are classes that the page's style sheet gives; every text is escaped. All in it
is in the page's tables too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from twinlog.drills import series
from twinlog.drills.content import visible
from twinlog.drills.index import Index
from twinlog.drills.marks import LABELLED, Label, bands_of, laid_out, marks_of
from twinlog.drills.series import NO_SITE, sites_of
from twinlog.drills.verdict import Verdict

LEFT, RIGHT, ROW, AXIS = 48, 12, 16, 34
WRITES_HEIGHT, LAG_HEIGHT, BETWEEN = 170, 70, 26
CHARACTER_PX = 6.3  # at the 11 px of the page's style sheet; rather too much than too little
WORDS_FROM_PX = 700  # narrower plots have numbers for labels, and so have crowded ones
MOST_LABELS_IN_WORDS = 30
LONGEST_LABEL = 26
POINT_PX = 3  # no bin is narrower than that


@dataclass(frozen=True)
class _Scale:
    """From seconds to pixels."""

    seconds: float
    width: int

    def x(self, at_s: float) -> float:
        """Where a time stands."""
        return LEFT + (self.width - LEFT - RIGHT) * at_s / self.seconds


def timeline(verdict: Verdict, width: int, name: str) -> str:
    """The plot, `width` pixels wide; `name` keeps its ids apart from those of others on the page."""
    index = verdict.index
    scale = _Scale(max(verdict.seconds, 1.0), width)
    labels = _labels(verdict, scale)
    top = ROW * (max((label.row for label in labels), default=-1) + 1) + 8
    lag = [(at_s, float(records)) for at_s, records, _ in series.lag(index) if records is not None]
    bottom = top + WRITES_HEIGHT + (BETWEEN + LAG_HEIGHT if lag else 0)
    bin_s = _nice(max(1.0, scale.seconds * POINT_PX / width))
    rates = series.rates(index, bin_s, scale.seconds)
    highest = max((max(row) for row in rates.values()), default=0.0)
    parts = [
        f'<svg class="timeline" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'viewBox="0 0 {width} {bottom + AXIS}" width="{width}" height="{bottom + AXIS}">',
        f'<title id="{name}-title">Acknowledged writes per second, {verdict.seconds:.0f} s in all</title>',
        f'<desc id="{name}-desc">{escape(visible(_described(verdict, rates)))}</desc>',
        *_bands(verdict, scale, top, bottom),
        *_grid(top, WRITES_HEIGHT, highest, width),
    ]
    for style, row in zip(styles_of(index).values(), rates.values(), strict=True):
        points = [(place * bin_s, rate) for place, rate in enumerate(row)]
        parts.append(_steps(points, scale, top, WRITES_HEIGHT, highest, f"series {style}"))
    if lag:
        lag_top = top + WRITES_HEIGHT + BETWEEN
        most = max(records for _, records in lag)
        parts.append(f'<text class="caption" x="{LEFT}" y="{lag_top - 6}">lag, records</text>')
        parts += _grid(lag_top, LAG_HEIGHT, most, width)
        parts.append(_steps(lag, scale, lag_top, LAG_HEIGHT, most, "series lag"))
    parts += _time_axis(scale, bottom)
    parts += [
        f'<line class="mark {label.mark.what}" x1="{_px(scale.x(label.mark.at_s))}" '
        f'x2="{_px(scale.x(label.mark.at_s))}" y1="{label.row * ROW + 4}" y2="{bottom}"/>'
        for label in labels
    ]
    parts += [
        f'<text class="label {label.mark.what}" x="{_px(label.left)}" y="{label.row * ROW + 13}">'
        f"{escape(visible(label.text))}</text>"
        for label in labels
    ]
    return "\n".join([*parts, "</svg>"])


def styles_of(index: Index) -> dict[str, str]:
    """The sites that acknowledged something, in order, with the classes that give them their colours."""
    return {
        site: "site-none" if site == NO_SITE else f"site-{number % 4}"
        for number, site in enumerate(sites_of(index))
    }


def _labels(verdict: Verdict, scale: _Scale) -> tuple[Label, ...]:
    marks = [mark for mark in marks_of(verdict) if mark.what in LABELLED]
    in_words = scale.width >= WORDS_FROM_PX and len(marks) <= MOST_LABELS_IN_WORDS
    return laid_out(
        marks,
        scale.x,
        lambda mark: f"{mark.number} {_short(mark.text)}" if in_words else str(mark.number),
        right=scale.width - RIGHT,
        character_px=CHARACTER_PX,
    )


def _bands(verdict: Verdict, scale: _Scale, top: int, bottom: int) -> list[str]:
    return [
        f'<rect class="band {band.style}" x="{_px(scale.x(band.first_s))}" y="{top}" '
        f'width="{_px(max(1.0, scale.x(band.last_s) - scale.x(band.first_s)))}" height="{bottom - top}"/>'
        for band in bands_of(verdict)
    ]


def _grid(top: int, height: int, most: float, width: int) -> list[str]:
    """Lines of equal value, with their numbers at the left."""
    step = _nice(max(most, 1.0) / 3)
    parts = []
    for count in range(int(max(most, 1.0) // step) + 1):
        y = _px(top + height - height * count * step / max(most, 1.0))
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{width - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{y}" dy="4">{count * step:,g}</text>')
    return parts


def _time_axis(scale: _Scale, bottom: int) -> list[str]:
    step = _nice(scale.seconds * 70 / scale.width)
    parts = []
    for count in range(int(scale.seconds // step) + 1):
        x = _px(scale.x(count * step))
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(f'<text class="tick middle" x="{x}" y="{bottom + 16}">{count * step:g}</text>')
    middle = _px((LEFT + scale.width - RIGHT) / 2)
    parts.append(f'<text class="tick middle" x="{middle}" y="{bottom + 30}">seconds</text>')
    return parts


def _steps(
    points: list[tuple[float, float]], scale: _Scale, top: int, height: int, most: float, style: str
) -> str:
    """A line that keeps each value until the next one."""
    bottom = top + height
    drawn = [f"M{_px(scale.x(points[0][0]))} {bottom}"] if points else []
    drawn += [
        f"H{_px(scale.x(at_s))}V{_px(bottom - height * value / max(most, 1.0))}" for at_s, value in points
    ]
    return f'<path class="{style}" d="{"".join(drawn)}H{_px(scale.x(scale.seconds))}V{bottom}"/>'


def _described(verdict: Verdict, rates: dict[str, list[float]]) -> str:
    sites = ", ".join(f"{site}: at most {max(row):,.0f} a second" for site, row in rates.items())
    events = ", ".join(f"{mark.text} at {mark.at_s:.1f} s" for mark in marks_of(verdict)[:20])
    return f"{sites or 'no writes'}. {events or 'Nothing happened'}."


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def _nice(least: float) -> float:
    """The next 1, 2 or 5 with zeros."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
