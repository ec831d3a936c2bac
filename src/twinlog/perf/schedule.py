"""When each record of a measurement is due. Pure.

At a target rate record number n is due n/rate seconds after the beginning, whatever happened to those
before it. A record that is sent late, because the cluster or this program held it up, counts as
waiting from when it was due: else a pause would be measured once instead of for every record that it
kept from being sent (coordinated omission). Without a rate a record is due when there is time for it.
"""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_WAIT_S = 0.1
TICK_S = 0.001  # at high rates records go out in pieces of a millisecond


@dataclass(frozen=True)
class Schedule:
    """So many records a second; None is as fast as it goes."""

    rate_per_s: float | None
    began_s: float

    def due(self, sent: int, now_s: float, most: int) -> int:
        """How many records to send now, after so many."""
        if self.rate_per_s is None:
            return most
        return max(0, min(most, int((now_s - self.began_s) * self.rate_per_s) + 1 - sent))

    def late_s(self, sent: int, now_s: float) -> float:
        """For how long the next record has been due, after so many."""
        if self.rate_per_s is None:
            return 0.0
        return max(0.0, now_s - self.began_s - sent / self.rate_per_s)

    def wait_s(self, sent: int, now_s: float) -> float:
        """How long nothing is to be sent, after so many; at least a tick, so that records go together."""
        if self.rate_per_s is None:
            return 0.0
        return min(LONGEST_WAIT_S, max(TICK_S, self.began_s + sent / self.rate_per_s - now_s))
