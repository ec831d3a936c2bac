"""How often the standby is asked: quickly while its copies move, slower while they do not. Pure.

A standby that takes long to answer has much to do, and is asked less often: whoever waits for it must not
be what keeps it from copying.
"""

from __future__ import annotations

from typing import NamedTuple

PAUSES_S = (0.004, 0.008, 0.012, 0.02)
LEAST_S = PAUSES_S[0]
TROUBLED_S = 0.2
REST = 3.0  # of the time that an answer took: so long nobody asks again, so a quarter goes to questions
MOST_REST_S = 0.1


class Pause(NamedTuple):
    """Until the next question: at least, and at most if nothing new waits for an answer."""

    least_s: float
    most_s: float


class Pace:
    """The pauses between questions."""

    def __init__(self) -> None:
        self._step = 0

    def next_pause(self, *, news: bool, trouble: bool, took_s: float) -> Pause:
        """The pause after a turn that brought something on, or met trouble only, or neither."""
        least_s = max(LEAST_S, min(took_s * REST, MOST_REST_S))
        if trouble and not news:
            return Pause(least_s, TROUBLED_S)
        self._step = 0 if news else min(self._step + 1, len(PAUSES_S) - 1)
        return Pause(least_s, max(least_s, PAUSES_S[self._step]))
