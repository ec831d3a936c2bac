"""One partition on its way through a holder: who reads it, who writes it, and how it stands.

A track outlives its twins: each surprise ends the twin, the steward reads the standby again and
gives the track a new one. The reader offers steps to the twin, the writer takes them; both notice
by identity that the twin they work for is no longer the track's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from twinlog.mirror.steps import Chain
from twinlog.mirror.twin import Twin

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 5.0
TopicPartition = tuple[str, int]


@dataclass
class Counts:
    """What was done for a partition since its holder began."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    fills: int = 0
    filled: int = 0
    surprises: int = 0
    refused: int = 0  # by the guard: a sequence or an epoch


@dataclass
class Track:
    """One partition that this holder copies."""

    topic: str
    partition: int
    compacted: bool = False
    twin: Twin | None = None
    orderly: bool = False  # the last holder handed over in order: nothing to check
    raise_epoch: bool = True  # a holder before us may have left something on its way
    settle_first: bool = False  # something may still be on its way: wait until the log end stands still
    unanswered: bool = False  # something was, and since then nothing has shown that it is over
    stood_at: tuple[int, float] | None = None  # the log end that was seen, and since when
    last: tuple[Chain, int] | None = None  # the link's chain as the last twin used it
    holes: set[Chain] = field(default_factory=set)
    not_before: float = 0.0  # when the steward may try again
    pause_s: float = FIRST_PAUSE_S
    trouble: str = ""  # why it does not move, in words; empty while it does
    stopped: bool = False  # somebody has to change something first
    position: int = -1  # what the standby has, as far as answered
    age_ms: int | None = None  # of the last record when the standby had it
    active_end: int = -1  # where the active's readers are
    reader_id: int = -1
    writer_id: int = -1
    counts: Counts = field(default_factory=Counts)

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return self.topic, self.partition

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_clear(self) -> bool:
        """True if nothing that was sent for it can still arrive; if not, take the holder's rights away."""
        if self.unanswered:
            return False
        return self.twin is None or (self.twin.in_flight == 0 and not self.twin.fill_is_unclear)

    @property
    def is_orderly(self) -> bool:
        """True if whoever copies it next may go on without a look: it was begun, and all went well."""
        return self.is_clear and self.twin is not None and not self.twin.is_closed

    def begin(self, twin: Twin) -> None:
        """Copy with this twin from now on: the standby was read, and agrees with the active."""
        self.twin = twin
        self.position = twin.settled
        self.orderly = self.raise_epoch = self.settle_first = False

    def surprise(self, why: str, now: float, *, stop: bool = False) -> None:
        """Throw the twin away; the steward begins again after a pause that grows."""
        self.counts.surprises += 1
        if self.twin is not None:
            # A chain that goes on takes nothing twice; a marker of the same epoch would be taken again.
            unanswered = self.twin.in_flight > 0 or self.twin.fill_is_unclear
            self.settle_first |= unanswered
            self.unanswered |= unanswered
            self.raise_epoch |= self.twin.fill_is_unclear
            self.last = self.twin.link_stands_at
            self.position = self.twin.settled
        self.twin = None
        self.orderly = False
        self.trouble = why
        self.stopped = stop
        self.not_before = now + (LONGEST_PAUSE_S if stop else self.pause_s)
        self.pause_s = min(LONGEST_PAUSE_S, self.pause_s * 2)

    def moves(self) -> None:
        """It was written to successfully: all is well."""
        self.trouble = ""
        self.stopped = False
        self.unanswered = False  # whatever arrives now is behind the chain's last batch, and refused
        self.pause_s = FIRST_PAUSE_S


Work = tuple[Track, Twin]  # a partition, and the twin that is worked for
