"""What a writer sends next: a step of each partition that may send one. Pure.

A request carries one batch for each partition, and gaps go in requests of their own. Whoever has sent
a batch and has more waits behind the others, so that a limit on the size of requests starves nobody;
whoever may send nothing now is brought back by the next answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from twinlog.mirror.steps import Copy, Fill
from twinlog.mirror.track import Track, Work
from twinlog.mirror.twin import Twin

MOST_REQUEST_BYTES = 8 << 20


@dataclass
class Load:
    """What goes out together."""

    batches: list[tuple[Track, Twin, Copy]] = field(default_factory=list)
    gaps: list[tuple[Track, Twin, Fill]] = field(default_factory=list)

    def __bool__(self) -> bool:
        """True if there is something to send."""
        return bool(self.batches or self.gaps)


class Outgoing:
    """The twins that may have something to send, in the order of their turns."""

    def __init__(self) -> None:
        self._works: dict[int, Work] = {}  # by the twin's identity

    def __bool__(self) -> bool:
        """True if it is worth trying to send."""
        return bool(self._works)

    @property
    def works(self) -> list[Work]:
        """All of them."""
        return list(self._works.values())

    def add(self, track: Track, twin: Twin) -> None:
        """A twin may have something to send."""
        self._works[id(twin)] = (track, twin)

    def remove(self, twin: Twin) -> None:
        """Send nothing more for a twin; harmless if it was not there."""
        self._works.pop(id(twin), None)

    def take(self, now_ms: int) -> Load:
        """All that may go now, as much as one request may hold; the caller must send it."""
        load, size = Load(), 0
        for track, twin in self.works:
            if size >= MOST_REQUEST_BYTES:
                break
            self.remove(twin)
            step = twin.take(now_ms)
            if isinstance(step, Copy):
                load.batches.append((track, twin, step))
                size += step.bytes
                if twin.has_steps:
                    self.add(track, twin)
            elif step is not None:
                load.gaps.append((track, twin, step))
        return load
