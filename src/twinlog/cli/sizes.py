"""Numbers as tables show them: sizes, seconds and counts that people read and nobody computes with."""

from __future__ import annotations

UNKNOWN = "unknown"


def readable(size_bytes: int | None) -> str:
    """A size with three digits and a unit."""
    if size_bytes is None:
        return UNKNOWN
    number = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def seconds(count_s: float | None) -> str:
    """A time that has passed, in the unit that people would use."""
    if count_s is None:
        return UNKNOWN
    for limit, divisor, unit in ((120.0, 1.0, "s"), (7200.0, 60.0, "m"), (172_800.0, 3600.0, "h")):
        if count_s < limit:
            return f"{count_s / divisor:.3g} {unit}"
    return f"{count_s / 86400.0:.3g} d"
