"""The block cutter: which messages go into one block. Pure.

`consuming` hands it each message in the order of the log and gets back the batches that are complete. It
goes by message count and preferred size only; time is told by the log (TIMETOCUT), and messages over the
absolute size were turned away at Broadcast. All orderers of a channel must cut alike: nothing but
the messages and the channel's configuration may decide here.
"""

from __future__ import annotations

from typing import NamedTuple

from twinlog.ordering.support import BatchSize

Batch = list[bytes]


class Cut(NamedTuple):
    """What one message completes: none, one or two batches, and whether messages wait afterwards."""

    batches: tuple[Batch, ...]
    pending: bool


_WAITS = Cut((), True)  # by far the most frequent answer


class Cutter:
    """The messages that wait for their block."""

    def __init__(self) -> None:
        self._pending: Batch = []
        self._pending_bytes = 0

    @property
    def is_pending(self) -> bool:
        """True if messages wait."""
        return bool(self._pending)

    def ordered(self, message: bytes, size_bytes: int, limits: BatchSize) -> Cut:
        """Take the next message; its size is that of payload and signature alone."""
        if size_bytes > limits.preferred_max_bytes:
            before = (self.cut(),) if self._pending else ()
            return Cut((*before, [message]), False)
        overflow = bool(self._pending) and self._pending_bytes + size_bytes > limits.preferred_max_bytes
        batches = (self.cut(),) if overflow else ()
        self._pending.append(message)
        self._pending_bytes += size_bytes
        if len(self._pending) >= limits.max_message_count:
            return Cut((*batches, self.cut()), False)
        return Cut(batches, True) if batches else _WAITS

    def cut(self) -> Batch:
        """All messages that wait, which no longer do."""
        batch, self._pending, self._pending_bytes = self._pending, [], 0
        return batch
