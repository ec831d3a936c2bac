"""One mirrored partition: what may be sent to the standby now, and what an answer means. Pure.

A Twin lives from one reading of the standby's log end to the next surprise; then it is thrown away
with all it had queued, and a new one begins where the standby's log ends. It never sends twice.

The order rule: a request may follow an unanswered one only inside one chain of sequences that the
broker is known to guard, so that a refusal in the middle refuses all behind it too. A batch of
another producer, and every fill, wait until all before them were answered at the expected offset.
A chain is known to be guarded when its last batch was answered here and is young: brokers forget
producers by the time in their records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from twinlog.mirror.reactions import Reaction, to_append, to_fill
from twinlog.mirror.steps import Chain, Copy, Fill, Step
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
    kept: bool
    timestamp_ms: int
    is_fill: bool


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
        self._guarded: Chain | None = None
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
    def fill_in_flight(self) -> bool:
        """True if markers were sent and not answered."""
        return bool(self._in_flight) and self._in_flight[-1].is_fill

    def take(self, now_ms: int) -> Step | None:
        """The next step that may be sent now, stamped; the caller must send it."""
        if not self._steps:
            return None
        step = self._steps[0]
        if isinstance(step, Fill):
            if self._in_flight:
                return None
            sent = Sent(step.first, step.length, self.link, False, now_ms, True)
        else:
            chain = self._chain_of(step)
            if self._in_flight and not self._may_follow(chain):
                return None
            sent = Sent(step.first, step.length, chain, chain is not self.link, step.timestamp_ms, False)
            self._stamp(step, sent.kept)
        self._steps.popleft()
        self._taken_bytes += step.bytes
        self._in_flight.append(sent)
        self.position = step.end
        return step

    def answered(self, code: int, base_offset: int, now_ms: int) -> tuple[Reaction, Sent]:
        """What the answer to the oldest append means."""
        sent = self._in_flight[0]
        reaction = to_append(code, base_offset, sent.first, kept=sent.kept)
        if reaction is Reaction.GO:
            self._settle(sent)
            young = sent.timestamp_ms > now_ms - GUARDED_MS
            self._guarded = sent.chain if young else None
        return reaction, sent

    def filled(self, code: int, log_end: int) -> tuple[Reaction, Sent]:
        """What the answer to the markers, and the log end behind them, mean."""
        sent = self._in_flight[0]
        reaction = to_fill(code, log_end, sent.first + sent.length)
        if reaction is Reaction.GO:
            self._settle(sent)
        return reaction, sent

    def _settle(self, sent: Sent) -> None:
        self._in_flight.popleft()
        self.settled = sent.first + sent.length

    def _chain_of(self, copy: Copy) -> Chain:
        if copy.chain is None or copy.chain in self.holes:
            return self.link
        return copy.chain

    def _may_follow(self, chain: Chain) -> bool:
        # What is in flight is all of one chain, because each followed under this same rule.
        return (
            len(self._in_flight) < MOST_IN_FLIGHT
            and chain == self._guarded
            and chain == self._in_flight[-1].chain
            and not self._in_flight[-1].is_fill
        )

    def _stamp(self, copy: Copy, kept: bool) -> None:
        if kept:
            clear_position(copy.view)
            return
        stamp(copy.view, self.link.producer_id, self.link.epoch, self._sequence)
        self._sequence = next_sequence(self._sequence, copy.length)
