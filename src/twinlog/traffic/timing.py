"""How long a lease lasts, and how long a voter waits before it turns to the other site. Pure.

All of it follows from `failover_after` (F). The lease is L = max(2 s, 0.8 F). A voter gives nothing to
the other site for W = 1.01 (L / 0.99 + 0.5 s) after a grant: each clock may be wrong by 1 % in rate, and
an agent has half a second to end its brokers. With F = 5 s: L = 4 s, W = 4.6 s. When a site dies whole,
its last request came before its end, so voters are free W later; canaries call it dead F after the last
good one. W <= F from F = 2.75 s on: nothing waits for the lease, and clients are back F + 3 s after the
end, where the 3 s are for the steps of the failover. Below that it is W + 3 s, 5.6 s at least. A site that
is only cut off has ended its brokers by then, since its lease counts from before the request was sent.
Asking every L / 3, with L / 2 to answer, bears one round without answers; a late answer is as good as an
early one, because a lease counts from when it was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

SHORTEST_LEASE_S = 2.0
LEASE_SHARE = 0.8  # of failover_after
CLOCK_RATE_ERROR = 0.01  # of one clock; real ones are a hundred times better
END_BROKERS_S = 0.5  # from the end of the lease until no broker of the site runs


@dataclass(frozen=True)
class Timing:
    """The length of a lease and what follows from it."""

    lease_s: float

    @classmethod
    def for_failover(cls, failover_after_s: float) -> Self:
        """The lease that suits the time after which a dead site is given up."""
        return cls(max(SHORTEST_LEASE_S, LEASE_SHARE * failover_after_s))

    @property
    def renew_s(self) -> float:
        """So often a holder asks."""
        return self.lease_s / 3

    @property
    def late_s(self) -> float:
        """So long it waits for an answer."""
        return self.lease_s / 2

    @property
    def answer_s(self) -> float:
        """So long anybody waits who asks what voters know, or tells them something."""
        return self.lease_s / 4

    @property
    def retry_s(self) -> float:
        """So often a site asks that has no lease and wants one."""
        return self.lease_s / 10

    @property
    def wait_s(self) -> float:
        """So long after a grant a voter gives nothing to the other site."""
        return wait_after(self.lease_s)


def wait_after(lease_s: float) -> float:
    """How long a voter waits after it granted a lease of this length."""
    return (1 + CLOCK_RATE_ERROR) * (lease_s / (1 - CLOCK_RATE_ERROR) + END_BROKERS_S)
