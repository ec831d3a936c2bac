"""How a write to both sites ended. Pure: what a Producer's futures hold.

The outcomes of any write (`wire.outcomes`), and one more that only acks=twin knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.wire.outcomes import Done, NotDone, Position, Unknown

__all__ = ["Done", "NotDone", "Outcome", "Position", "Unknown", "UnknownAtTwin"]


@dataclass(frozen=True)
class UnknownAtTwin:
    """Every in-sync replica of the active has the record at this offset; the standby may lack it."""

    partition: int
    offset: int
    reason: str


Outcome = Done | NotDone | Unknown | UnknownAtTwin
