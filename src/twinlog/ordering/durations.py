"""Durations as Go writes them: `2s`, `1h30m`, `250ms`, `1.5h`.

Fabric's files and channel configurations hold such texts. Read here by the local configuration and by
whoever needs a channel's batch timeout. Unlike the durations of our own file several units may follow
each other, a sign is allowed, and a bare `0` needs no unit. Pure.
"""

from __future__ import annotations

import re
from fractions import Fraction

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # the micro sign; Go also takes the Greek letter
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PIECE = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_LONGEST_NS = 2**63 - 1


def parse_duration_ns(text: str) -> int:
    """The nanoseconds that a Go duration names; raises ValueError for anything else."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total_ns = Fraction(0)
    place = 0
    while piece := _PIECE.match(rest, place):
        whole, part, unit = piece.groups()
        if not whole and not part:
            break
        number = Fraction(int(whole or 0)) + (Fraction(int(part), 10 ** len(part)) if part else 0)
        total_ns += int(number * _NANOSECONDS[unit])
        place = piece.end()
    if not rest or place != len(rest):
        raise ValueError(f"{text!r} is no duration: write one as in 2s, 250ms or 1h30m")
    if total_ns > _LONGEST_NS:
        raise ValueError(f"{text!r} is too long for a duration")
    return sign * int(total_ns)


def parse_duration_s(text: str) -> float:
    """The seconds that a Go duration names."""
    return parse_duration_ns(text) / 1_000_000_000
