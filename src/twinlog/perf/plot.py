"""Latencies of a measurement as one SVG file: how long which share of the records took. Pure.

For `--plot`. The axis below stretches towards 100 %, as HdrHistogram's own plots do: each step to the
right is a tenth of the records that are left, because the slowest ones are what the plot is for.
Colours and sizes are in the file, which follows the reader's preference for dark or light.
"""

from __future__ import annotations

import math
from html import escape

from twinlog.perf.histogram import Histogram, Share

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 44, 48
TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
STEPS_PER_TENFOLD = 60
_STYLE = """
svg { background: #fff; font: 12px system-ui, sans-serif; }
text { fill: #333; } .grid { stroke: #ddd; } .line { fill: none; stroke: #0b6bcb; stroke-width: 2; }
.title { font-weight: 600; font-size: 14px; }
@media (prefers-color-scheme: dark) {
  svg { background: #16181d; } text { fill: #ddd; } .grid { stroke: #333a45; } .line { stroke: #6cb6ff; }
}
"""


def drawn(histogram: Histogram, title: str) -> str:
    """The plot, a whole file."""
    last = _last_percent(histogram.count)
    shares = histogram.percentiles(_percents(last))
    most_ms = max((share.latency_ms for share in shares), default=1.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(_described(histogram))}</desc>',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="22">{escape(title)}</text>',
        *_grid(most_ms, last),
        f'<path class="line" d="{_path(shares, most_ms, last)}"/>',
    ]
    return "\n".join([*parts, "</svg>\n"])


def _last_percent(count: int) -> float:
    """The last share that means something: that of all records but one."""
    return 100.0 * (1 - 1 / max(10, count))


def _percents(last: float) -> list[float]:
    steps = int(_stretch(last) * STEPS_PER_TENFOLD)
    return [min(last, 100 * (1 - 10 ** (-step / STEPS_PER_TENFOLD))) for step in range(steps + 1)] + [
        last,
        100.0,
    ]


def _stretch(percent: float) -> float:
    """How many tenfolds a share is away from nothing: 90 % is 1, 99 % is 2."""
    return -math.log10(max(1e-12, 1 - percent / 100))


def _x(percent: float, last: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, _stretch(min(percent, last)) / _stretch(last))


def _y(latency_ms: float, most_ms: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * latency_ms / most_ms


def _path(shares: list[Share], most_ms: float, last: float) -> str:
    points = [f"{_x(share.percent, last):.1f} {_y(share.latency_ms, most_ms):.1f}" for share in shares]
    return "M" + "L".join(points) if points else ""


def _grid(most_ms: float, last: float) -> list[str]:
    parts = []
    step = _nice(most_ms / 4)
    for count in range(int(most_ms / step) + 1):
        y = _y(count * step, most_ms)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{count * step:,g}</text>')
    for tick in TICKS:
        if tick <= last:
            x = _x(tick, last)
            parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
            parts.append(
                f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g} %</text>'
            )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:g}" y="{HEIGHT - 10}" text-anchor="middle">share of the records</text>')
    parts.append(f'<text x="{LEFT - 8}" y="{TOP - 8}" text-anchor="end">ms</text>')
    return parts


def _described(histogram: Histogram) -> str:
    shares = histogram.percentiles((50.0, 99.0, 99.9, 100.0))
    told = ", ".join(f"{share.percent:g} % within {share.latency_ms:.1f} ms" for share in shares)
    return f"{histogram.count} records: {told}" if told else "no records"


def _nice(least: float) -> float:
    """The next 1, 2 or 5 with zeros."""
    power = 10.0 ** math.floor(math.log10(max(least, 1e-6)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)
