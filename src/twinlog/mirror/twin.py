"""One mirrored partition: what may be sent to the standby now, and what an answer means. Pure.

A Twin lives from one reading of the standby's log end to the next surprise; then it is thrown away
with all it had queued, and a new one begins where the standby's log ends. It never sends twice.

The order rule: a request may follow an unanswered one only inside one chain of sequences that the
broker is known to guard, so that a refusal in the middle refuses all behind it too. A batch of
another producer, and every fill, wait until all before them were answered at the expected offset.
A chain is known to be guarded when its last batch was answered here, the ones in flight are the next
in sequence, and all of them are young: brokers forget producers by the time in their records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from twinlog.mirror.reactions import Reaction, to_append, to_fill
from twinlog.mirror.steps import MOST_FILLED, Chain, Copy, Fill, Step
from twinlog.wire.batches import clear_position, next_sequence, stamp

MOST_IN_FLIGHT = 5  # a broker remembers the last five batches of a producer
GUARDED_MS = 12 * 3600 * 1000  # half of producer.id.expiration.ms


class Start(NamedTuple):
    """Where a twin begins, as read at the standby."""

    position: int
    link: Chain
    sequence: int


class Sent(NamedTuple):
    """A batch or a gap on its way."""

    first: int
    length: int
    chain: Chain
    sequence: int  # -1 for a gap
    kept: bool
    timestamp_ms: int

    @property
    def is_fill(self) -> bool:
        """True for a gap."""
        return self.sequence < 0


class Guard(NamedTuple):
    """What the broker remembers of a chain, and until when it surely does."""

    chain: Chain
    next_sequence: int
    timestamp_ms: int

    def covers(self, chain: Chain, sequence: int, now_ms: int) -> bool:
        """True if the broker would refuse this batch, should the one before it be missing."""
        is_young = self.timestamp_ms > now_ms - GUARDED_MS
        return is_young and self.chain == chain and self.next_sequence == sequence


class Twin:
    """The copying of one partition, up to the next surprise."""

    def __init__(self, start: Start, holes: frozenset[Chain] = frozenset()) -> None:
        self.link = start.link
        self.settled = start.position  # all below is at the standby, answered
        self.position = start.position  # all below was sent
        self.planned = start.position  # all below has a step
        self.holes = holes
        self._sequence = start.sequence
        self._steps: deque[Step] = deque()
        self._in_flight: deque[Sent] = deque()
        self._settled_sequence = start.sequence
        self._answered: Guard | None = None  # what the last answer tells of the broker's memory
        self._expected: Guard | None = None  # the same when all in flight is done; None: nothing may follow
        self._is_closed = False
        self._has_failed = False
        self._unclear_fill = False
        # Two counters, each with one writer: the reader's thread offers, the writer's takes.
        self._offered_bytes = 0
        self._taken_bytes = 0

    @property
    def queued_bytes(self) -> int:
        """What waits in memory to be sent."""
        return self._offered_bytes - self._taken_bytes

    def offer(self, steps: Iterable[Step]) -> None:
        """Queue what comes next; it must begin where the last offer ended."""
        for step in steps:
            if step.first != self.planned:
                raise AssertionError(f"step at {step.first}, expected {self.planned}")
            self._offered_bytes += step.bytes
            self._steps.append(step)
            self.planned = step.end

    @property
    def has_steps(self) -> bool:
        """True if something waits to be sent."""
        return bool(self._steps)

    @property
    def is_idle(self) -> bool:
        """True if nothing waits and nothing is on its way."""
        return not self._steps and not self._in_flight

    @property
    def in_flight(self) -> int:
        """How many answers are awaited."""
        return len(self._in_flight)

    @property
    def fill_is_unclear(self) -> bool:
        """True if markers were sent and it is not known that all of them, and no more, are there."""
        return self._unclear_fill or (bool(self._in_flight) and self._in_flight[-1].is_fill)

    @property
    def link_stands_at(self) -> tuple[Chain, int]:
        """The link's chain and its next sequence, as far as was answered."""
        return self.link, self._settled_sequence

    @property
    def next_is_fill(self) -> bool:
        """True if the next step is a gap, which must be sent alone."""
        return bool(self._steps) and isinstance(self._steps[0], Fill)

    @property
    def is_closed(self) -> bool:
        """True if nothing will be taken from it any more."""
        return self._is_closed

    def close(self) -> None:
        """Take nothing more; what is in flight is still to be answered."""
        self._is_closed = True

    def take(self, now_ms: int) -> Step | None:
        """The next step that may be sent now, stamped; the caller must send it."""
        if not self._steps or self._is_closed:
            return None
        step = self._steps[0]
        return self._take_fill(step, now_ms) if isinstance(step, Fill) else self._take_copy(step, now_ms)

    def answered(self, code: int, base_offset: int) -> tuple[Reaction, Sent]:
        """What the answer to the oldest append means; anything but GO closes the twin."""
        sent = self._in_flight.popleft()
        reaction = to_append(code, base_offset, sent.first, kept=sent.kept)
        if self._settle(reaction, sent):
            after = next_sequence(sent.sequence, sent.length)
            self._answered = Guard(sent.chain, after, sent.timestamp_ms)
            if not sent.kept:
                self._settled_sequence = after
        return reaction, sent

    def filled(self, code: int, log_end: int | None) -> tuple[Reaction, Sent]:
        """What the answer to the markers, and the log end behind them, mean; anything but GO closes it.

        The log end may be None for a single marker: its code tells whether it is there.
        """
        sent = self._in_flight.popleft()
        reaction = to_fill(code, log_end, sent.first + sent.length)
        self._unclear_fill = not self._settle(reaction, sent)
        return reaction, sent

    def _settle(self, reaction: Reaction, sent: Sent) -> bool:
        if reaction is not Reaction.GO:
            self._has_failed = self._is_closed = True
        if self._has_failed:  # what follows a refusal is not settled, whatever the answer
            return False
        self.settled = sent.first + sent.length
        return True

    def _take_fill(self, gap: Fill, now_ms: int) -> Fill | None:
        if self._in_flight:
            return None
        piece = Fill(gap.first, min(gap.length, MOST_FILLED))
        if piece == gap:
            self._steps.popleft()
        else:
            self._steps[0] = Fill(piece.end, gap.length - piece.length)
        self._expected = None
        self._went(Sent(piece.first, piece.length, self.link, -1, False, now_ms))
        return piece

    def _take_copy(self, copy: Copy, now_ms: int) -> Copy | None:
        chain, sequence = self.link, self._sequence
        if copy.chain is not None and copy.chain not in self.holes:
            chain, sequence = copy.chain, copy.sequence
        is_guarded = self._is_guarded(chain, sequence, now_ms)
        if self._in_flight and not (is_guarded and len(self._in_flight) < MOST_IN_FLIGHT):
            return None
        kept, after = chain is not self.link, next_sequence(sequence, copy.length)
        self._expected = Guard(chain, after, copy.timestamp_ms) if is_guarded else None
        if kept:
            clear_position(copy.view)
        else:
            stamp(copy.view, *chain, sequence)
            self._sequence = after
        self._steps.popleft()
        self._taken_bytes += copy.bytes
        self._went(Sent(copy.first, copy.length, chain, sequence, kept, copy.timestamp_ms))
        return copy

    def _is_guarded(self, chain: Chain, sequence: int, now_ms: int) -> bool:
        """True if the broker surely refuses this batch when one before it is missing."""
        before = self._expected if self._in_flight else self._answered
        return before is not None and before.covers(chain, sequence, now_ms)

    def _went(self, sent: Sent) -> None:
        self._in_flight.append(sent)
        self.position = sent.first + sent.length
