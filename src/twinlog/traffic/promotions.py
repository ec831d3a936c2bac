"""Every failover of a bus, with the points at which the other site took over; beside the journal of moves.

The journal holds the newest move alone. Who had read the lost site's records and was not there when it
was lost needs the points of all failovers since: jobs on streams, whose checkpoints may be beyond them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from twinlog.durable import write_text
from twinlog.sites.home import Home
from twinlog.traffic import journal
from twinlog.traffic.moves import Move, Points

FILE = "promotions.json"


@dataclass(frozen=True)
class Promotion:
    """One failover: the term that it began, and where each partition was taken over."""

    term: int
    points: Points


def note(home: Home, move: Move) -> None:
    """Remember a failover's points; a step that is taken twice notes them once."""
    path = _path(home)
    kept = {one.term: one for one in read(home)}
    kept[move.term] = Promotion(move.term, move.points)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps([{"term": one.term, "points": one.points} for one in kept.values()]) + "\n")


def read(home: Home) -> list[Promotion]:
    """All failovers that are known here, the oldest first."""
    try:
        told = json.loads(_path(home).read_text())
    except FileNotFoundError:
        return []
    found = [
        Promotion(
            int(one["term"]),
            {
                topic: {int(partition): int(offset) for partition, offset in points.items()}
                for topic, points in one["points"].items()
            },
        )
        for one in told
    ]
    return sorted(found, key=lambda one: one.term)


def lowest(promotions: Iterable[Promotion]) -> dict[str, dict[int, int]]:
    """Of several failovers the lowest point of each partition: below it nothing was ever lost."""
    found: dict[str, dict[int, int]] = {}
    for one in promotions:
        for topic, points in one.points.items():
            own = found.setdefault(topic, {})
            for partition, offset in points.items():
                own[partition] = min(offset, own.get(partition, offset))
    return found


def _path(home: Home) -> Path:
    return home.directory / journal.DIRECTORY / FILE
