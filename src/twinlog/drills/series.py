"""What a drill measured over time: writes acknowledged a second by each site, and the lag.

The plot draws it and the JSON has it. Where a client cannot say who answered, the site counts that was
open at that time.
"""

from __future__ import annotations

from typing import Any

from twinlog.drills.history import Happening, Outcome, Write
from twinlog.drills.index import Index

NO_SITE = "site not known"
EVERY_S = 1.0  # in the JSON; the plot has as many bins as it has room for


def sites_of(index: Index) -> tuple[str, ...]:
    """The sites that acknowledged something, in order; at last those of which nobody knows."""
    named = {_site(index, write) for write in index.history.writes if write.outcome is Outcome.OK}
    return (*sorted(named - {NO_SITE}), *(named & {NO_SITE}))


def rates(index: Index, bin_s: float, seconds: float) -> dict[str, list[float]]:
    """Acknowledged writes per second, bin by bin."""
    bins = int(seconds // bin_s) + 1
    found = {site: [0.0] * bins for site in sites_of(index)}
    for write in index.history.writes:
        if write.outcome is Outcome.OK and write.end_s is not None:
            row = found[_site(index, write)]
            row[min(bins - 1, int((write.end_s - index.began_s) // bin_s))] += 1 / bin_s
    return found


def lag(index: Index) -> list[tuple[float, float | None, float | None]]:
    """When the lag was measured, and how much it was: in records and in seconds; None: nobody knew."""
    return [
        (event.time_s - index.began_s, event.data.get("records"), event.data.get("seconds"))
        for event in index.events(Happening.LAG)
    ]


def as_json(index: Index) -> dict[str, Any]:
    """What the timeline shows, as numbers."""
    return {
        "every_s": EVERY_S,
        "writes_per_s": rates(index, EVERY_S, index.ended_s - index.began_s),
        "lag": [
            {"at_s": round(at_s, 3), "records": records, "seconds": seconds}
            for at_s, records, seconds in lag(index)
        ],
    }


def _site(index: Index, write: Write) -> str:
    if write.site is not None:
        return write.site
    opening = index.opening_before(write.time_s)
    return str(opening.data["site"]) if opening is not None else NO_SITE
