"""In which order the gate tries the brokers of a site. Pure: time is given, nothing is asked.

Each client begins with the next broker, so that all brokers get their share; a broker that failed
lately comes last, so that one that hangs costs few clients a wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinlog.wire.addresses import HostPort

FAILED_LATELY_S = 10.0


class Rotation:
    """Whose turn it is, and who failed when."""

    def __init__(self) -> None:
        self._turn = 0
        self._failed_at: dict[HostPort, float] = {}
        self._failures: dict[HostPort, int] = {}

    def order(self, brokers: Sequence[HostPort], now: float) -> list[HostPort]:
        """All brokers in the order in which the next client should try them."""
        if not brokers:
            return []
        first = self._turn % len(brokers)
        self._turn += 1
        turned = [*brokers[first:], *brokers[:first]]
        return sorted(turned, key=lambda broker: self.failed_lately(broker, now))

    def failed(self, broker: HostPort, now: float) -> None:
        """Remember that a broker could not be reached or did not answer."""
        self._failed_at[broker] = now
        self._failures[broker] = self._failures.get(broker, 0) + 1

    def failed_lately(self, broker: HostPort, now: float) -> bool:
        """Whether a broker should come last."""
        at = self._failed_at.get(broker)
        return at is not None and now - at < FAILED_LATELY_S

    @property
    def failures(self) -> Mapping[HostPort, int]:
        """How often each broker failed since the start."""
        return dict(self._failures)
