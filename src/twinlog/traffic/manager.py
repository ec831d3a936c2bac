"""The traffic manager as a program: `python -m twinlog.traffic.manager FILE`, left behind by `traffic up`.

It has a gate, watches both sites, decides (`decide`) and carries moves out. Nothing depends on it alone:
clients that are connected stay so without it, sites say themselves what they are, and a move that it
left half done is ended by the next manager or by a person. One that is paused watches and does nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from twinlog.durable import write_text
from twinlog.errors import EXIT_FAILED, TwinlogError, UsageError
from twinlog.mirror.watch import LinkStatus, Watch
from twinlog.progress import Progress
from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.spec.model import Role
from twinlog.traffic import beginning, decide, electorate
from twinlog.traffic.clock import clock_s
from twinlog.traffic.crossing import carry_out
from twinlog.traffic.decide import Bus, Observation, Site, Step
from twinlog.traffic.entrance import Entrance
from twinlog.traffic.epochs import Noting
from twinlog.traffic.ground import Ground
from twinlog.traffic.health import Canaries
from twinlog.traffic.inquiry import Inquiry
from twinlog.traffic.journal import DIRECTORY, newest, untold
from twinlog.traffic.moves import Move
from twinlog.traffic.page import View
from twinlog.traffic.votes import MAJORITY, Answer, voter_of

NAME = "manager"
PAUSED = "paused"
TURN_S = 0.25
LAG_EVERY_S = 1.0
NOTE_AGAIN_S = 10.0  # behind a note that could not be written
VOTES_EVERY_S = 0.5
VOTES_TURNS = 2  # of asking, each as long as a voter that hangs makes it; what is older does not count
REPORT_EVERY_S = 1.0
LEAVE_AFTER_S = 8.0
JOIN_TIMEOUT_S = 5.0


def background(home: Home) -> Background:
    """The manager as a process of its own."""
    command = (sys.executable, "-m", "twinlog.traffic.manager", str(home.file))
    return Background(NAME, home.directory / DIRECTORY, command, timeout_s=20.0)


def read_anew(home: Home) -> Home:
    """The bus as its file says now, because a move starts nodes; as it was, while the file is wrong."""
    try:
        return Home(load(home.file, os.environ).bus, home.file)
    except TwinlogError:
        return home


def pause_flag(home: Home) -> Path:
    """A file that is there while the manager is to do nothing by itself."""
    return home.directory / DIRECTORY / PAUSED


class Logged:
    """Progress as lines of the manager's log."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def begin(self, name: str, total: int | None = None) -> None:
        """A task starts."""
        self._log(name)

    def advance(self, name: str, count: int = 1) -> None:
        """Not worth a line."""

    def end(self, name: str, outcome: str = "") -> None:
        """A task is done."""
        self._log(f"{name}: {outcome or 'done'}")

    def note(self, text: str) -> None:
        """Something worth a line."""
        self._log(text)


class Lag:
    """What the standby lacks, looked at every second while both sites answer; the last look stays.

    What a failover needs to know of the active by then is noted at the standby on the same occasion.
    """

    def __init__(self, home: Home, log: Callable[[str], None]) -> None:
        self.link = decide.Link()
        self._home = home
        self._log = log
        self._trouble = ""  # of the last note
        self._again_s = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="lag", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join(JOIN_TIMEOUT_S)

    def _look(self) -> None:
        while not self._ended.is_set():
            try:
                with Watch(self._home) as watch:
                    sides = watch.active, watch.standby
                    noting = Noting(watch.active, self._home.state().term, watch.here, watch.there)
                    while not self._ended.wait(LAG_EVERY_S) and sides == self._sides():
                        self._note(noting)
                        self.link = _lag_in(watch.look())
            except TwinlogError:
                self._ended.wait(LAG_EVERY_S)

    def _note(self, noting: Noting) -> None:
        """Note what can be; where that fails the lag is looked at all the same, and it is said once."""
        if time.monotonic() < self._again_s:
            return
        try:
            noting.look()
            self._trouble = ""
        except TwinlogError as error:
            self._again_s = time.monotonic() + NOTE_AGAIN_S
            if not self._trouble:
                self._log(f"the leader epochs of site {self._home.state().active} are not noted: {error}")
            self._trouble = str(error)

    def _sides(self) -> tuple[str, str]:
        state = self._home.state()
        other = next(site for site in self._home.bus.sites if site != state.active)
        return state.active, other


def _lag_in(found: LinkStatus) -> decide.Link:
    seconds = [one.lag_s for one in found.topics if one.lag_s is not None]
    return decide.Link(sum(one.lag_records for one in found.topics), max(seconds, default=None))


def pause_s(step: Step, now_s: float) -> float:
    """How long until the next turn: not past the time at which a step says that something is due."""
    if isinstance(step, decide.Wait) and step.until_s > now_s:
        return min(TURN_S, step.until_s - now_s)
    return TURN_S


class Manager:
    """Observes, decides and acts, turn after turn."""

    def __init__(self, home: Home, log: Callable[[str], None]) -> None:
        self._home = home
        self._log = log
        self._progress: Progress = Logged(log)
        self._said = self._put_off = ""
        self._news = threading.Event()
        self.step: Step = decide.Nothing("it has only just begun")
        accesses = {site: home.admin_access(site) for site in home.bus.sites}
        self._entrance = Entrance(home, log, self._dressed)
        self._canaries = Canaries(accesses, home.bus.gate.failover_after)
        self._lag = Lag(home, log)
        self._inquiry = Inquiry(partial(electorate.ask, home), VOTES_EVERY_S)

    def run(self, stop: threading.Event) -> None:
        """Go on until told to stop."""
        report = background(self._home).report
        try:
            with background(self._home).alone(), self._entrance, self._canaries, self._inquiry:
                threading.Thread(target=self._keep_report, args=(report, stop), daemon=True).start()
                while not stop.is_set():
                    self.step = decide.decide(self.observe(), time.monotonic())
                    self._say(f"{type(self.step).__name__}: {self.step.why}")
                    self._act()
                    stop.wait(pause_s(self.step, time.monotonic()))
        finally:
            self._lag.close()

    def _keep_report(self, report: Path, stop: threading.Event) -> None:
        """Tell every second how things are, since a move may take a while; and news at once."""
        while not stop.is_set():
            self._news.clear()
            write_text(report, json.dumps(self._told()) + "\n")
            self._news.wait(REPORT_EVERY_S)

    def observe(self) -> Observation:
        """All that is known now."""
        state, gate = self._home.state(), self._home.bus.gate
        told = self._entrance.standings.told
        move = newest(one.move for one in told.values())
        if move is not None and move.is_done:
            move = None
        answering = {site: one.move for site, one in told.items() if not one.trouble}
        flag = pause_flag(self._home)
        seen, fitness = self._canaries.seen(), self._canaries.fitness()
        votes, sites = self._votes(), {}
        for site, one in told.items():
            role = one.standing.role if one.standing is not None else None
            term = one.standing.term if one.standing is not None else 0
            fit = fitness[site]
            sites[site] = Site(
                seen[site],
                role,
                term,
                fit.quorum_led,
                fit.under_min_isr,
                agent_answers=voter_of(site) in votes,
                holds_lease=sum(one.holder == site and one.wait_s > 0 for one in votes.values()) >= MAJORITY,
            )
        bus = Bus(
            state.active,
            state.term,
            gate.promote,
            gate.failover_after,
            move=str(move) if move is not None else "",
            move_term=move.term if move is not None else 0,
            gives_way=move is not None and move.gives_way(state.active),
            untold=untold(answering),
            paused="twinlog traffic resume lets it go on" if flag.exists() else "",
        )
        return Observation(bus, sites, self._lag.link, votes)

    def _votes(self) -> Mapping[str, Answer]:
        """What the voters know where there are any; too old an answer is none."""
        if not electorate.is_used(self._home):
            return {}
        answer_s = electorate.timing(self._home).answer_s
        return self._inquiry.told(clock_s() - VOTES_TURNS * (VOTES_EVERY_S + answer_s))

    def _act(self) -> None:
        match self.step:
            case decide.Resume():
                self._carry_out(beginning.any_unfinished)
            case decide.Tell():
                self._carry_out(beginning.telling)
            case decide.Promote(term=term, why=why):
                self._carry_out(lambda ground: beginning.decided_failover(ground, why, term))
            case decide.Return():
                self._carry_out(beginning.returning)
            case _:
                self._put_off = ""

    def _carry_out(self, begin: Callable[[Ground], Move | None]) -> None:
        try:
            with (
                self._home.state_file.locked("traffic"),
                Ground(read_anew(self._home), self._progress) as ground,
            ):
                move = begin(ground)
                self._put_off = ""
                if move is not None:
                    carry_out(ground, move)
        except UsageError as error:
            # Another command is changing the bus, perhaps with this very move; or a person must say so.
            put_off = f"not now: {error}" + (f" ({error.hint})" if error.hint else "")
            if put_off != self._put_off:
                self._put_off = put_off
                self._log(put_off)
                self._news.set()
        except TwinlogError as error:
            self._log(f"error: {error}")

    def _dressed(self, view: View) -> View:
        seen = self._canaries.seen()
        lag = self._lag.link
        sites = tuple(
            replace(
                site,
                health=seen[site.name].health,
                sentence=seen[site.name].why,
                lag_records=lag.lag_records if site.role == Role.STANDBY else None,
                lag_s=lag.lag_s if site.role == Role.STANDBY else None,
            )
            for site in view.sites
        )
        return replace(view, sites=sites)

    def _told(self) -> dict[str, object]:
        view = self._entrance.view
        return {
            "pid": os.getpid(),
            "at": time.time(),
            "step": type(self.step).__name__,
            "why": f"{self.step.why}; {self._put_off}" if self._put_off else self.step.why,
            "paused": pause_flag(self._home).exists(),
            "view": asdict(view),
        }

    def _say(self, text: str) -> None:
        # Numbers change every turn and are no news.
        news = "".join(letter for letter in text if not letter.isdigit())
        if news != self._said:
            self._said = news
            self._log(text)
            self._news.set()


def _log(text: str) -> None:
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z {text}", flush=True)


def _leave(stop: threading.Event) -> None:
    """End for certain when told to: a move under way is written down, and anybody can go on with it."""
    stop.wait()
    threading.Event().wait(LEAVE_AFTER_S)
    _log("left in the middle of its work; whoever comes next goes on")
    os._exit(EXIT_FAILED)


def main(file: str) -> int:
    """Run the manager of the bus that this file declares."""
    path = Path(file)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=_leave, args=(stop,), daemon=True).start()
    try:
        Manager(Home(load(path, os.environ).bus, path), _log).run(stop)
    except TwinlogError as error:
        _log(f"error: {error}" + (f" (hint: {error.hint})" if error.hint else ""))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
