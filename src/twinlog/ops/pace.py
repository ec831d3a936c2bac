"""How fast copying goes and when it will be done, from what was left at several moments. Pure.

For moves of partitions and for the resync of a replaced broker. An estimate is made of the last half
minute only, because the pace changes; while nothing gets less there is none, and None is said so.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

WINDOW_S = 30.0
SHORTEST_S = 0.5  # two looks in a shorter time say nothing about the pace


@dataclass
class Pace:
    """What was left, moment by moment."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def see(self, now_s: float, left_bytes: int) -> None:
        """Note what is left now."""
        self._seen.append((now_s, left_bytes))
        while len(self._seen) > 2 and now_s - self._seen[1][0] >= WINDOW_S:
            self._seen.popleft()

    @property
    def bytes_per_s(self) -> float | None:
        """How fast it gets less; None while nobody can say."""
        if len(self._seen) < 2:
            return None
        (then_s, more), (now_s, left) = self._seen[0], self._seen[-1]
        if now_s - then_s < SHORTEST_S or left >= more:
            return None
        return (more - left) / (now_s - then_s)

    @property
    def left_s(self) -> float | None:
        """Seconds until nothing is left, at this pace; None while nobody can say."""
        if not self._seen:
            return None
        left = self._seen[-1][1]
        if left <= 0:
            return 0.0
        return left / self.bytes_per_s if self.bytes_per_s else None

    def sentence(self) -> str:
        """How far it is, for people."""
        left_mb = self._seen[-1][1] / 1e6 if self._seen else 0.0
        if self.left_s is None:
            return f"{left_mb:.1f} MB left"
        return f"{left_mb:.1f} MB left, about {self.left_s:.0f} s"
