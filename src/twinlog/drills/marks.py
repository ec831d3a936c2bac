"""What happened to the bus, numbered, for the timeline and the list of events beside it.

The plot draws marks and bands, and both reports list them under the same numbers. Laying out labels is
here too, because it is arithmetic: no label may cover another one, whatever the width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from twinlog.drills.history import Event, Happening
from twinlog.drills.verdict import Verdict

SHOWN = frozenset(
    {
        Happening.FAULT,
        Happening.HEALED,
        Happening.DETECTED,
        Happening.FENCED,
        Happening.OPENED,
        Happening.STEP,
    }
)
LABELLED = SHOWN - {Happening.STEP}  # steps are in the list; in the plot they would hide the rest


@dataclass(frozen=True)
class Mark:
    """One event, with its number and the seconds since the drill began."""

    number: int
    at_s: float
    what: Happening
    text: str


@dataclass(frozen=True)
class Band:
    """A stretch of time in which something was broken, or no site was open."""

    first_s: float
    last_s: float
    style: str  # "fault" or "move"


@dataclass(frozen=True)
class Label:
    """Where a mark's label stands: its left edge, and its row from the top."""

    mark: Mark
    left: float
    row: int
    text: str


def marks_of(verdict: Verdict) -> tuple[Mark, ...]:
    """The events that people want to see, numbered from 1; how the drill began is none of them."""
    began_s, first = verdict.index.began_s, verdict.index.openings[:1]
    shown = [one for one in verdict.index.history.events if one.what in SHOWN and one not in first]
    return tuple(
        Mark(number, one.time_s - began_s, one.what, one.text) for number, one in enumerate(shown, start=1)
    )


def bands_of(verdict: Verdict) -> tuple[Band, ...]:
    """Faults from beginning to end, and planned moves from the fence to the opening."""
    began_s, ended_s = verdict.index.began_s, verdict.index.ended_s
    bands = [
        Band(one.began_s - began_s, one.opened_s - began_s, "move")
        for one in verdict.figures.disturbances
        if one.planned and one.opened_s is not None
    ]
    open_: dict[str, Event] = {}
    for event in verdict.index.history.events:
        name = str(event.data.get("fault", ""))
        if event.what is Happening.FAULT:
            open_.setdefault(name, event)
        elif event.what is Happening.HEALED and name in open_:
            bands.append(Band(open_.pop(name).time_s - began_s, event.time_s - began_s, "fault"))
    bands += [Band(event.time_s - began_s, ended_s - began_s, "fault") for event in open_.values()]
    return tuple(bands)


def laid_out(
    marks: Iterable[Mark],
    x_of: Callable[[float], float],
    text_of: Callable[[Mark], str],
    *,
    right: float,
    character_px: float,
    gap_px: float = 8.0,
) -> tuple[Label, ...]:
    """Give every label a row in which it covers no other one and stays left of the right edge."""
    labels: list[Label] = []
    row_ends: list[float] = []
    for mark in marks:
        text = text_of(mark)
        width = len(text) * character_px
        left = max(0.0, min(x_of(mark.at_s) + 3, right - width))
        row = next((row for row, end in enumerate(row_ends) if end + gap_px <= left), len(row_ends))
        row_ends[row : row + 1] = [left + width]
        labels.append(Label(mark, left, row, text))
    return tuple(labels)
