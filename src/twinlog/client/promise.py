"""A write for acks=twin, from before it is sent until the active has answered.

A Producer makes one when the standby has admitted the write, and the driver tells it instead of the `Sent`
that the caller holds. What the active has goes on to the watch; what it refused ends here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twinlog.client.outcomes import Outcome
from twinlog.client.pending import Write
from twinlog.client.sent import Sent, failure
from twinlog.client.watch import Watch
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.roles import Standing


@dataclass(frozen=True, slots=True)
class Promise:
    """What was known of the standby before the record was sent: `standing`, and where its copies ended."""

    sent: Sent
    topic: str
    standing: Standing
    ends: Mapping[TopicPartition, int]
    deadline: float
    watch: Callable[[], Watch]
    ended: Callable[[Sent, Outcome], None]

    def told(self, error: Any, message: Any) -> None:
        """What librdkafka says of the record."""
        offset = message.offset() if error is None else None
        if offset is None:
            self.ended(self.sent, failure(self.sent.sender, error, message))
            return
        place = (self.topic, message.partition())
        floor = self.ends.get(place, 0)
        self.watch().add(Write(place, offset, self.standing, floor, self.deadline, self._end))

    def _end(self, outcome: Outcome) -> None:
        self.ended(self.sent, outcome)
