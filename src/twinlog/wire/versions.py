"""Which version of a request to send, and whether a request changes anything.

Pure; `connection` asks for every request. A version is one that both sides know; the highest
is best. A request that is not known to read only counts as a write, so that a lost answer is
never taken for "nothing happened".
"""

from __future__ import annotations

from dataclasses import dataclass

_READS = (
    "ApiVersions",
    "ConsumerGroupDescribe",
    "Describe",
    "Fetch",
    "FindCoordinator",
    "List",
    "Metadata",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "Sasl",
)


@dataclass(frozen=True)
class Range:
    """The versions that one side knows, both ends included."""

    low: int
    high: int


def choose(ours: Range, theirs: Range | None, cap: int | None = None) -> int | None:
    """The highest version that both sides know and the cap allows; None if there is none."""
    if theirs is None:
        return None
    high = min(ours.high, theirs.high, ours.high if cap is None else cap)
    return high if high >= max(ours.low, theirs.low) else None


def is_write(request_name: str) -> bool:
    """True unless a request (by its class's name) is known to change nothing."""
    return not request_name.startswith(_READS)
