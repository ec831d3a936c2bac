"""The mirror's way from a made-up log to a made-up standby, with everything that goes wrong on it.

Does what holder, start and writer do with the real Track, Twin and plan: read the standby, fetch,
take, send, hear, begin again after a surprise. Connections keep their order and break with requests
on them; what was on a broken one is done later, or not at all. Each rule can be left out, to show
that the simulation notices.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.unit.mirror.active_log import NOW_MS, YOUNG_MS, ActiveLog
from tests.unit.mirror.choices import Choices
from tests.unit.mirror.standby_log import NOT_LEADER, OK, StandbyLog
from twinlog.mirror import alignment
from twinlog.mirror.compare import Seen
from twinlog.mirror.reactions import Reaction
from twinlog.mirror.start import link_chain
from twinlog.mirror.steps import Chain, Copy, Fill, plan
from twinlog.mirror.track import Track
from twinlog.mirror.twin import Sent, Start, Twin
from twinlog.wire.batches import checksum_is_right, read

LINK_ID = 1 << 62
TIMED_OUT, TOO_LARGE, NOT_ENOUGH, NOT_ENOUGH_AFTER = 7, 10, 19, 20
REFUSED_BEFORE = (NOT_ENOUGH, TOO_LARGE, NOT_LEADER)
REFUSED_AFTER = (TIMED_OUT, NOT_ENOUGH_AFTER)
MOST_TURNS = 5_000


class Diverged(AssertionError):
    """The standby's log is no longer the active's."""


class Stuck(AssertionError):
    """The mirror does not arrive."""


@dataclass(frozen=True)
class Rules:
    """What the mirror heeds."""

    keep_identity: bool = True
    twin: type[Twin] = Twin
    chain_first: bool = True  # the chain is read before the log end
    chain_twice: bool = True  # and again behind it
    replicated_first: bool = True  # a twin begins when all of the standby's log is replicated
    drain: bool = True  # after a refusal the rest in flight is heard before anything else
    settle: bool = True  # what was on a broken connection has arrived, or never will, before the end is read
    settle_all: bool = True  # also batches that the broker guards, not only fills and old batches
    one_without_end: bool = True  # behind a single marker the log end is not read
    several_without_end: bool = False  # nor behind several
    remember: bool = (
        True  # a link goes on in the epoch that it used last, even if the standby has not seen it
    )


class Produce(NamedTuple):
    """A batch on its way."""

    view: memoryview


class Markers(NamedTuple):
    """Markers on their way, and the question for the log end behind them."""

    link: Chain
    number: int


@dataclass
class Connection:
    """Requests in their order, and answers in theirs."""

    leader: int
    requests: deque[Produce | Markers] = field(default_factory=deque)
    answers: deque[tuple[int, int | None]] = field(default_factory=deque)
    unguarded: bool = False  # when it broke, something was on it that the broker may take twice


class Crossing:
    """One partition from the active to the standby."""

    def __init__(self, active: ActiveLog, choices: Choices, rules: Rules, *, cleans: bool = False) -> None:
        self.active = active
        self.standby = StandbyLog(self._look)
        self.track = Track("t", 0, compacted=True)
        self._choices = choices
        self._rules = rules
        self._cleans = cleans
        self._connection: Connection | None = None
        self._broken: list[Connection] = []
        self._draining: str = ""
        self._refuse: int = OK
        self._refuse_after: int = OK
        self.story: list[str] = []

    def run(self) -> None:
        """Go on until the standby has everything, or stop at the first record that is wrong."""
        for _ in range(MOST_TURNS):
            if self._turn():
                break
        else:
            raise Stuck(f"at {self.standby.end} of {self.active.end}: {self.track}")
        for offset, record in enumerate(self.standby.log):
            self._look(offset, record)
        if self.standby.end != self.active.end:
            raise Diverged(f"the standby ends at {self.standby.end}, the active at {self.active.end}")

    def _look(self, offset: int, record: Seen | None) -> None:
        expected = self.active.seen.get(offset)
        is_right = record == expected or (record is None and not self.active.shows(offset))
        if offset >= self.active.end or (offset >= self.active.start and not is_right):
            raise Diverged(f"at offset {offset} stands {record}, not {expected}")

    # Turns

    def _turn(self) -> bool:
        what = self._choices.below(16)
        if what < 5:
            return self._advance()
        if what < 7:
            self._offer()
        elif what < 10:
            while self._send():
                pass
        elif what < 12:
            self._handle()
        elif what == 12:
            self._hear()
        else:
            self._disturb()
        return False

    def _advance(self) -> bool:
        """The next thing in good order; True at the end."""
        twin, connection = self.track.twin, self._connection
        if twin is None:
            self._begin()
        elif connection is not None and connection.answers:
            self._hear()
        elif connection is not None and connection.requests:
            self._handle()
        elif self._send():
            pass
        elif twin.planned < self.active.end:
            self._offer()
        else:
            return True
        return False

    def _disturb(self) -> None:
        what = self._choices.below(12)
        if what == 0:
            self.standby.replicate()
        elif what in (1, 2, 3):
            self._handle_late()
        elif what == 4:
            self._refuse = self._choices.of(REFUSED_BEFORE)
        elif what == 5:
            self._refuse_after = self._choices.of(REFUSED_AFTER)
        elif what == 6:
            self._break("the connection broke")
        elif what == 7:
            self._change_leader()
        elif what == 8:
            chosen = self._choices.below(2)
            self.standby.forget(lambda number: chosen == 0 or (number >= LINK_ID) == (chosen == 1))
        elif what == 9:
            self._change_holder()
        elif what == 10 and self._cleans:
            self.active.clean([self._choices.below(max(1, min(256, self.active.end)))])
        elif what == 11 and self._cleans:
            self.active.start = min(self.active.end, self.active.start + self._choices.below(4))

    # The steward

    def _begin(self) -> None:
        track = self.track
        if track.settle_first and self._rules.settle:
            for connection in self._broken:
                while connection.requests and (self._rules.settle_all or connection.unguarded):
                    self._handle_late(connection)
        self._interfere()
        if self._rules.chain_first:
            chain = self._read_chain()
            self._interfere()
            log_end = self.standby.end
        else:
            log_end = self.standby.end
            self._interfere()
            chain = self._read_chain()
        self._interfere()
        if self._rules.replicated_first and self.standby.high_watermark < log_end:
            self.standby.replicate()  # the steward looks again until it is
            return
        self._interfere()
        if self._rules.chain_twice and self._read_chain() != chain:
            return
        track.begin(self._rules.twin(Start(log_end, *chain), frozenset(track.holes)))
        self._interfere()
        if self._connection is None or self._connection.leader != self.standby.leader:
            self._connection = Connection(self.standby.leader)
        self._say(f"begin at {log_end} with {chain}")

    def _read_chain(self) -> tuple[Chain, int]:
        last = self.track.last if self._rules.remember else None
        return link_chain(self.standby.describe(), LINK_ID, raise_epoch=self.track.raise_epoch, last=last)

    def _interfere(self) -> None:
        """What may happen between two questions of the steward."""
        if not self._choices.one_in(3):
            return
        what = self._choices.below(4)
        if what == 0:
            self._handle_late()
        elif what == 1:
            self._change_leader()
        elif what == 2:
            self.standby.forget(lambda number: True)
        else:
            self.standby.replicate()

    def _surprise(self, why: str) -> None:
        self._say(f"surprise: {why}")
        self._draining = ""
        self.track.surprise(why, 0.0)

    def _change_holder(self) -> None:
        """Another holder; if something may still arrive, the old one's rights are taken away."""
        before = self.track
        is_orderly = before.is_orderly and not self._draining
        self._say(f"another holder, orderly: {is_orderly}")
        if not before.is_clear:
            self._broken.clear()
        self._connection = None
        self._draining = ""
        self.track = Track("t", 0, compacted=True, orderly=is_orderly, raise_epoch=not is_orderly)

    # The reader

    def _offer(self) -> None:
        twin = self.track.twin
        if twin is None or twin.planned >= self.active.end:
            return
        if twin.planned < self.active.start:
            if twin.planned > twin.position or twin.in_flight:
                self._drop("out of range")
                return
            twin.offer(alignment.piece(twin, self.active.start, compacted=True))
            return
        records, aborted = self.active.read(twin.planned, 1 + self._choices.below(6))
        twin.offer(plan(records, aborted, twin.planned, keep_identity=self._rules.keep_identity))

    # The writer

    def _send(self) -> bool:
        twin, connection = self.track.twin, self._connection
        if twin is None or connection is None:
            return False
        step = twin.take(NOW_MS)
        if isinstance(step, Copy):
            batch = read(step.view)
            if not checksum_is_right(batch):
                raise AssertionError("a batch with a wrong checksum")
            connection.requests.append(Produce(step.view))
            self._say(f"send {step.first}+{step.length} as {batch.header[9:12]}")
        elif isinstance(step, Fill):
            connection.requests.append(Markers(twin.link, step.length))
            self._say(f"fill {step.first}+{step.length} as {twin.link}")
        return step is not None

    def _hear(self) -> None:
        twin, connection = self.track.twin, self._connection
        if connection is None or not connection.answers:
            return
        code, offset = connection.answers.popleft()
        if twin is None or twin.in_flight == 0:
            return  # the answer to a request of a twin that was thrown away
        if offset is None or twin.fill_is_unclear:
            reaction, sent = twin.filled(code, offset)
        else:
            reaction, sent = twin.answered(code, offset)
        self._say(f"hear {code} {offset}: {reaction.name}")
        if self._draining:
            if twin.in_flight == 0:
                self._surprise(self._draining)
        elif reaction is Reaction.GO:
            self.track.moves()
        else:
            self._react(reaction, sent)

    def _react(self, reaction: Reaction, sent: Sent) -> None:
        if reaction is Reaction.HOLE:
            self.track.holes.add(sent.chain)
        self.track.raise_epoch |= reaction is Reaction.RENEW
        self._drop(reaction.name)

    def _drop(self, why: str) -> None:
        """Throw the twin away, when nothing of it is on its way any more."""
        twin = self.track.twin
        if twin is None:
            return
        if not self._rules.drain:
            self._surprise(why)
            return
        twin.close()
        if twin.in_flight == 0:
            self._surprise(why)
        else:
            self._draining = why

    # The broker

    def _handle(self) -> None:
        connection = self._connection
        if connection is not None and connection.requests:
            connection.answers.append(self._do(connection))

    def _handle_late(self, which: Connection | None = None) -> None:
        waiting = [one for one in self._broken if one.requests]
        if which is None and not waiting:
            return
        connection = which if which is not None else self._choices.of(waiting)
        if self._choices.one_in(4):
            connection.requests.clear()  # never arrived
        else:
            self._say(f"late: {self._do(connection)}")

    def _do(self, connection: Connection) -> tuple[int, int | None]:
        request = connection.requests.popleft()
        if connection.leader != self.standby.leader:
            return NOT_LEADER, -1
        refused, self._refuse = self._refuse, OK
        after, self._refuse_after = self._refuse_after, OK
        if isinstance(request, Markers):
            return self._mark(request, refused, after)
        if refused:
            return refused, -1
        code, offset = self.standby.append(request.view)
        if code == OK and after:
            return after, -1
        if code == OK:
            self.standby.replicate()
        return code, offset

    def _mark(self, request: Markers, refused: int, after: int) -> tuple[int, int | None]:
        """Markers one by one; the answer tells of the last one only."""
        code = OK
        for number in range(request.number):
            if refused and number == self._choices.below(request.number):
                code, refused = refused, OK
                continue
            code = self.standby.mark(*request.link)
        if code == OK and after:
            code = after
        elif code == OK:
            self.standby.replicate()
        rules = self._rules
        unread = rules.one_without_end if request.number == 1 else rules.several_without_end
        return code, None if unread else self.standby.end

    def _break(self, why: str) -> None:
        connection, twin = self._connection, self.track.twin
        if connection is None:
            return
        self._say(f"break with {len(connection.requests)} requests")
        connection.unguarded = any(_is_unguarded(request) for request in connection.requests)
        self._broken.append(connection)
        self._connection = None
        if twin is not None and twin.in_flight:
            self._surprise(self._draining or why)
        elif twin is not None:
            self._connection = Connection(connection.leader)  # an idle twin goes on with another writer

    def _change_leader(self) -> None:
        self.standby.change_leader(self._choices.below(6))
        self._say(f"leader {self.standby.leader}, log end {self.standby.end}")

    def _say(self, what: str) -> None:
        self.story.append(what)


def _is_unguarded(request: Produce | Markers) -> bool:
    """True if the broker may take it twice."""
    return isinstance(request, Markers) or read(request.view).header.max_timestamp_ms < YOUNG_MS
