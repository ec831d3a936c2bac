"""The agent beside a site's brokers: `python -m twinlog.traffic.agent FILE SITE`.

With `promote: automatic` a site is active by lease. Its agent votes for the site's machine, keeps the lease
while the site is active, and ends the brokers when it is over: whoever is cut off from both other votes
stops taking writes before anybody else may begin. It alone starts them again, with a new lease. The
brokers of a standby need none, because nobody may write there. `term_wanted` is pure.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from twinlog.durable import write_text
from twinlog.errors import TwinlogError
from twinlog.sites import holds, processes
from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.sites.java import find_java
from twinlog.sites.layout import Kind, Node
from twinlog.spec.load import load
from twinlog.spec.model import Role
from twinlog.traffic import electorate
from twinlog.traffic.clock import clock_s
from twinlog.traffic.health import Canaries
from twinlog.traffic.inquiry import Inquiry
from twinlog.traffic.journal import DIRECTORY, newest
from twinlog.traffic.moves import STEPS, Move, Step
from twinlog.traffic.moves import Kind as MoveKind
from twinlog.traffic.standings import Standings, Told, Where, where_to
from twinlog.traffic.tenure import Tenure
from twinlog.traffic.votes import MAJORITY, Answer, voter_of
from twinlog.traffic.watching import Health
from twinlog.traffic.witness import Voting

TURN_S = 0.1
REPORT_EVERY_S = 1.0
HELD = "the agent: its lease has ended"
REST_SHARE = 2.0  # of failover_after: so long a site that gave its lease back leaves it to the other
ASK_AGAIN_S = 1.0
FIRST_GRACE_S = 20.0  # for the first lease ever: brokers ran without one before
NO_TERM = 0


def background(home: Home, site: str) -> Background:
    """A site's agent as a process of its own."""
    command = (sys.executable, "-m", "twinlog.traffic.agent", str(home.file), site)
    return Background(f"agent-{site}", home.directory / DIRECTORY, command, timeout_s=20.0)


def term_wanted(site: str, where: Where, move: Move | None, kept: int) -> int:
    """The term in which a site should hold the lease now; none if it should not.

    `kept` is the term in which it last held one, for an agent that begins while no broker answers.
    """
    if move is not None and move.term > where.term and _gives_lease(move):
        return move.term if move.target == site else NO_TERM
    if where.active is not None:
        return max(where.term, kept) if where.active == site else NO_TERM
    return kept


def renewed_term(site: str, ordered: int, told: Mapping[str, Answer], *, is_promoted: bool = False) -> int:
    """The term to ask for by a site that gets no lease in the one that it asks for.

    A term that was given back is over. If a majority knows of nobody after this site, nobody was active
    since, and the site may have the next one; else it waits for whoever is, unless it is being promoted:
    then whoever was, has no lease any more.
    """
    known = [answer for answer in told.values() if not answer.blank]
    newest_known = max((answer.term for answer in known), default=0)
    free = [one for one in known if not one.wait_s and (is_promoted or one.holder == site)]
    agreeing = [one for one in free if one.term == newest_known]
    return newest_known + 1 if newest_known >= ordered and len(agreeing) >= MAJORITY else ordered


def is_deposed(site: str, told: Told, move: Move | None) -> bool:
    """True if a site answers as the active one although a failover has left it behind.

    An agent that was stopped together with its brokers may hear of its successor before it finds its own
    lease over. A switchover ends brokers itself, when they are no longer needed; so does a return.
    """
    standing = told.standing
    if standing is None or told.trouble or standing.role is not Role.ACTIVE or move is None:
        return False
    is_lost = move.kind is MoveKind.FAILOVER and move.source == site and move.term > standing.term
    return is_lost and _asks_for_lease(move)


def _gives_lease(move: Move) -> bool:
    return not move.is_done and _asks_for_lease(move)


def _asks_for_lease(move: Move) -> bool:
    """True from the moment that nothing can be called off: in a failover at once."""
    if move.kind is MoveKind.FAILOVER:
        return True
    steps = STEPS[move.kind]
    return Step.LEASE in steps and move.progress >= steps.index(Step.LEASE)


@dataclass
class Agent:
    """Looks at the lease without pause, and acts on it."""

    home: Home
    site: str
    log: Callable[[str], None]
    _kept: int = field(init=False)
    _wanted: int = NO_TERM
    _ordered: int = NO_TERM
    _ordered_s: float = 0.0  # by the clock of leases
    _was_healthy: bool = False  # since its brokers were started
    _rests_until_s: float = 0.0
    _begun_s: float = field(default_factory=time.monotonic)
    _said: str = ""

    def __post_init__(self) -> None:
        self._file = self.home.directory / DIRECTORY / f"agent-{self.site}.term"
        try:
            self._kept = int(self._file.read_text())
        except (FileNotFoundError, ValueError):
            self._kept = NO_TERM
        # One that had a lease before gets the next at once, or its brokers have run without for too long.
        timing = electorate.timing(self.home)
        self._grace_s = timing.lease_s if self._kept else FIRST_GRACE_S
        self._inquiry = Inquiry(partial(electorate.ask, self.home), ASK_AGAIN_S)

    def run(self, stop: threading.Event) -> None:
        """Go on until told to stop."""
        home, timing = self.home, electorate.timing(self.home)
        seat = electorate.seat(home, voter_of(self.site))
        accesses = {site: home.admin_access(site) for site in home.bus.sites}
        with (
            background(home, self.site).alone(),
            Voting(seat, timing),
            Tenure(self.site, timing, electorate.addresses(home), seat.papers) as tenure,
            Standings(accesses) as standings,
            Canaries({self.site: accesses[self.site]}, home.bus.gate.failover_after) as canaries,
            self._inquiry,
        ):
            threading.Thread(target=self._keep_report, args=(tenure, stop), daemon=True).start()
            while not stop.is_set():
                try:
                    self._turn(tenure, standings.told, canaries.seen()[self.site].health)
                except (TwinlogError, OSError) as error:
                    self._say(f"error: {error}")  # a full disk, say; whoever goes away now ends no broker
                stop.wait(TURN_S)

    def _turn(self, tenure: Tenure, told: Mapping[str, Told], health: Health) -> None:
        where, move = where_to(told), newest(one.move for one in told.values())
        wanted = term_wanted(self.site, where, move, self._kept)
        self._was_healthy = self._was_healthy or health is Health.HEALTHY
        ill = self._was_healthy and health is Health.DEAD
        standing = told[self.site].standing
        is_active = standing.role is Role.ACTIVE if standing is not None else self._kept > 0
        is_promoted = where.active is None and wanted > self._kept
        self._wanted = wanted
        if is_deposed(self.site, told[self.site], move):
            self._end_brokers(f"the other site has followed: {move}")
        self._act(tenure, wanted, ill=ill, is_active=is_active, is_promoted=is_promoted)

    def _act(self, tenure: Tenure, wanted: int, *, ill: bool, is_active: bool, is_promoted: bool) -> None:
        now_s = time.monotonic()
        state = tenure.state()
        if not wanted:
            self._keep(NO_TERM)
            if state.valid:
                self._say("the other site is to be active: the lease is given back")
                self._give_back(tenure)
            elif self._ordered:
                tenure.drop()
                self._ordered = NO_TERM
            return
        if state.valid and ill:
            self._end_brokers("no broker takes writes")
            self._give_back(tenure)
            self._rests_until_s = now_s + REST_SHARE * self.home.bus.gate.failover_after
        elif state.valid:
            self._keep(max(state.term, wanted))
            self._start_brokers()
        elif now_s >= self._rests_until_s:
            # A standby that is to become active runs without one: nobody may write there yet.
            if is_active and now_s - self._begun_s > self._grace_s:
                self._end_brokers(state.why)
            self._order(tenure, wanted, is_promoted)

    def _order(self, tenure: Tenure, wanted: int, is_promoted: bool) -> None:
        """Have the lease asked for, again and again, in a term that voters can give."""
        term = wanted
        if wanted <= self._ordered:
            told = self._inquiry.told(self._ordered_s)
            term = renewed_term(self.site, self._ordered, told, is_promoted=is_promoted)
        if term != self._ordered:
            self._ordered, self._ordered_s = term, clock_s()
            tenure.take(term)

    def _give_back(self, tenure: Tenure) -> None:
        self._ordered = NO_TERM  # whatever was asked for: the next lease begins with a new order
        tenure.give_back(electorate.timing(self.home).answer_s)

    def _keep(self, term: int) -> None:
        if term != self._kept:
            self._kept = term
            write_text(self._file, f"{term}\n")

    def _brokers(self) -> list[Node]:
        nodes = self.home.layout(self.site).local_nodes
        return [node for node in nodes if node.kind is Kind.BROKER]

    def _end_brokers(self, why: str) -> None:
        nodes = self._brokers()
        running = list(processes.find(nodes).values())
        self._was_healthy = False  # the next ones are ill only after they were well
        if not running:
            return
        for node in nodes:
            if not holds.reason(node):
                holds.hold(node, HELD)
        processes.end(running, signal.SIGKILL)
        self._say(f"{len(running)} brokers were ended: {why}")

    def _start_brokers(self) -> None:
        for node in self._brokers():
            if holds.reason(node) == HELD:
                holds.release(node)
                self._was_healthy = False
                processes.start(node, find_java())
                self._say(f"{node.name} is started: the site has its lease")

    def _keep_report(self, tenure: Tenure, stop: threading.Event) -> None:
        """Tell every second how things are; apart, because the disk may take its time."""
        report = background(self.home, self.site).report
        while True:
            state = tenure.state()
            told = {
                "pid": os.getpid(),
                "at": time.time(),
                "site": self.site,
                "wanted": self._wanted,
                "valid": state.valid,
                "term": state.term,
                "why": state.why,
                "silent": tenure.silent(),
            }
            with suppress(OSError):
                write_text(report, json.dumps(told) + "\n")
            if stop.wait(REPORT_EVERY_S):
                return

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self.log(text)


def _log(text: str) -> None:
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z {text}", flush=True)


def main(file: str, site: str) -> int:
    """Run the agent of one site of the bus that this file declares."""
    path = Path(file)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        Agent(Home(load(path, os.environ).bus, path), site, _log).run(stop)
    except TwinlogError as error:
        _log(f"error: {error}" + (f" (hint: {error.hint})" if error.hint else ""))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
