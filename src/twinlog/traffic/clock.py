"""The clock that leases are counted by: it is never set, and goes on while the machine sleeps.

Agents and voters use it by default; everything pure is told the time. A machine that slept past the end
of its lease must know so when it wakes, before anything else happens.
"""

from __future__ import annotations

import time

# CLOCK_MONOTONIC of Linux stands still while the machine sleeps; that of macOS does not.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock_s() -> float:
    """Seconds since some moment in the past."""
    return time.clock_gettime(_CLOCK)
