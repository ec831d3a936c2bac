"""Whether a channel's log can be read, as far as those who read blocks should know. Pure.

`chain` tells it of errors and records, and asks what to do next. An error is no outage yet: drivers get
over most, and do not say when they have. So it starts a time of grace, at whose end the leader is asked.
Only when that fails is the channel errored; then a CONNECT is written again and again, one at a
time, because the first record that is read shows that all is well.
"""

from __future__ import annotations

from enum import Enum, auto


class Step(Enum):
    """What to do about a log in doubt."""

    NOTHING = auto()
    PROBE = auto()  # ask the leader, and tell `probed`
    CONNECT = auto()  # write one, and read again from where reading stood


class Health:
    """One channel's."""

    def __init__(self, *, grace_s: float, again_s: float) -> None:
        self._grace_s = grace_s
        self._again_s = again_s
        self._probe_at: float | None = None
        self._connect_at = 0.0
        self.is_errored = False

    def heard(self) -> None:
        """A record came."""
        self._probe_at = None
        self.is_errored = False

    def troubled(self, now: float, *, is_final: bool) -> None:
        """Reading met an error; a final one leaves no hope in waiting."""
        if is_final:
            self._err(now)
        elif self._probe_at is None and not self.is_errored:
            self._probe_at = now + self._grace_s

    def probed(self, now: float, *, has_answered: bool) -> None:
        """The leader was asked."""
        self._probe_at = None
        if not has_answered:
            self._err(now)

    def step(self, now: float, *, is_connecting: bool) -> Step:
        """What is due now."""
        if self.is_errored and not is_connecting and now >= self._connect_at:
            self._connect_at = now + self._again_s
            return Step.CONNECT
        if self._probe_at is not None and now >= self._probe_at:
            return Step.PROBE
        return Step.NOTHING

    def _err(self, now: float) -> None:
        if not self.is_errored:
            self._connect_at = now
        self._probe_at = None
        self.is_errored = True
