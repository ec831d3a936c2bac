"""How often the standby is asked: quickly while its copies move, slower while they do not. Pure."""

from __future__ import annotations

PAUSES_S = (0.002, 0.004, 0.008, 0.012, 0.02)
LEAST_S = PAUSES_S[0]
TROUBLED_S = 0.2


class Pace:
    """The pauses between questions."""

    def __init__(self) -> None:
        self._step = 0

    def next_pause_s(self, *, news: bool, trouble: bool) -> float:
        """The pause after a turn that brought something on, or met trouble only, or neither."""
        if trouble and not news:
            return TROUBLED_S
        self._step = 0 if news else min(self._step + 1, len(PAUSES_S) - 1)
        return PAUSES_S[self._step]
