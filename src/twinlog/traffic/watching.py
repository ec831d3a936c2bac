"""How a site is, from its canaries: healthy, failing, dead or unknown. Pure.

The traffic manager writes a canary at each site every second and tells the outcome here; an agent does
the same for its own site. What must stay true: one bad canary changes nothing, and neither does one good
canary at a site that was dead; time in which nobody looked is not time in which the site failed. A
watcher that was paused therefore knows nothing for a while, however long the last good canary is ago.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Health(StrEnum):
    """What is known about a site."""

    UNKNOWN = "unknown"  # nobody looked, or not often enough to say
    HEALTHY = "healthy"
    FAILING = "failing"  # no canary was acknowledged lately
    DEAD = "dead"  # none was for so long that the site is given up


class Outcome(StrEnum):
    """How one canary ended."""

    OK = "ok"
    FAILED = "failed"  # refused, or nobody answered the connection
    TIMED_OUT = "timed out"  # written perhaps; late in any case


@dataclass(frozen=True)
class Rules:
    """When a series of canaries says something."""

    dead_after_s: float  # failover_after
    bad_in_a_row: int = 2  # before a healthy site is called failing; one at a site that hangs takes long
    good_in_a_row: int = 3  # before a failing one is called healthy
    stale_after_s: float = 5.0  # a watcher that told nothing for so long does not know


@dataclass(frozen=True)
class Seen:
    """What is known about a site at a moment."""

    health: Health
    since_s: float | None  # of the state; for failing and dead, when it began to fail
    last_ok_s: float | None
    why: str


@dataclass(frozen=True)
class Watch:
    """The canaries of one site so far; times are of the watcher's clock."""

    rules: Rules
    last_s: float | None = None  # when the last one ended
    last_ok_s: float | None = None
    bad_since_s: float | None = None  # from here on none was good, and somebody looked all the time
    healthy_since_s: float | None = None  # None while it is not known to be healthy
    good: int = 0  # in a row
    bad: int = 0
    why: str = "no canary yet"

    def after(self, outcome: Outcome, now_s: float, why: str = "") -> Watch:
        """The watch when one more canary has ended."""
        base = Watch(self.rules, last_ok_s=self.last_ok_s) if self._is_stale(now_s) else self
        return base._good(now_s) if outcome is Outcome.OK else base._bad(now_s, why or outcome)

    def seen(self, now_s: float) -> Seen:
        """How the site is now."""
        if self.last_s is None or self._is_stale(now_s):
            why = self.why if self.last_s is None else f"no canary for {now_s - self.last_s:.1f} s"
            return Seen(Health.UNKNOWN, self.last_s, self.last_ok_s, why)
        if self.bad >= self.rules.bad_in_a_row and self.bad_since_s is not None:
            failed_s = now_s - self.bad_since_s
            health = Health.DEAD if failed_s >= self.rules.dead_after_s else Health.FAILING
            why = f"no canary was acknowledged for {failed_s:.1f} s: {self.why}"
            return Seen(health, self.bad_since_s, self.last_ok_s, why)
        if self.healthy_since_s is not None:
            return Seen(Health.HEALTHY, self.healthy_since_s, self.last_ok_s, "canaries are acknowledged")
        why = f"{self.good} of {self.rules.good_in_a_row} good canaries in a row: {self.why}"
        return Seen(Health.FAILING, self.bad_since_s, self.last_ok_s, why)

    def _is_stale(self, now_s: float) -> bool:
        return self.last_s is not None and now_s - self.last_s > self.rules.stale_after_s

    def _good(self, now_s: float) -> Watch:
        good = self.good + 1
        # At the first look one good canary is enough: there is nothing to recover from.
        recovered = good >= self.rules.good_in_a_row or self.bad_since_s is None
        return replace(
            self,
            last_s=now_s,
            last_ok_s=now_s,
            good=good,
            bad=0,
            bad_since_s=None if recovered else self.bad_since_s,
            healthy_since_s=(self.healthy_since_s or now_s) if recovered else self.healthy_since_s,
            why="canaries are acknowledged",
        )

    def _bad(self, now_s: float, why: str) -> Watch:
        bad = self.bad + 1
        failing = bad >= self.rules.bad_in_a_row
        # It fails since the last good one, unless nobody looked in between.
        began_s = self.last_ok_s if self.good and self.last_ok_s is not None else now_s
        return replace(
            self,
            last_s=now_s,
            good=0,
            bad=bad,
            bad_since_s=began_s if self.good or self.bad_since_s is None else self.bad_since_s,
            healthy_since_s=None if failing else self.healthy_since_s,
            why=why,
        )
