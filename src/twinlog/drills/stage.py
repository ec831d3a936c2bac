"""What a scenario's story is told with: the bus, its load, faults, moves, and time to rest.

The runner sets the stage and hands it to the story. Moves are carried out here, in the drill's own
process, as a person would with a command; where the file lets the traffic manager decide alone, the
stage only waits for it. Every wait has an end; a client that does not come back is the verdict's
business, not an error.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from twinlog.drills import last_read, probe
from twinlog.drills.cast import Client, Program
from twinlog.drills.faults import Faults
from twinlog.drills.finding import Finding
from twinlog.drills.following import Following
from twinlog.drills.history import Happening
from twinlog.drills.load import Load
from twinlog.drills.promises import Facts, Judged
from twinlog.drills.recording import Recorder
from twinlog.drills.spread import Spread
from twinlog.errors import SiteError, UsageError
from twinlog.mirror import link
from twinlog.progress import Progress
from twinlog.sites.home import Home
from twinlog.spec.model import Promote
from twinlog.traffic import agent, beginning
from twinlog.traffic.crossing import carry_out
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Move

BACK_TIMEOUT_S = 120.0  # for clients to come back; they need seconds, the library a standby
DETECT_TIMEOUT_S = 60.0
CLOSE_S, CLOSE_TIMEOUT_S = 2.0, 180.0
LACKING_S = 1.0  # so far behind, the standby lacks something of every writer
FIT_TIMEOUT_S = 60.0
MOVE_TIMEOUT_S = 240.0
LOOK_AGAIN_S = 0.02


@dataclass(frozen=True)
class Seen:
    """A promise that the story itself has held against what it saw."""

    says: str
    kept: bool
    measured: str

    def covers(self, finding: Finding) -> bool:
        """It speaks of no record."""
        return False

    def judge(self, facts: Facts) -> Judged:
        """As it was seen."""
        return Judged(self.says, self.kept, self.measured)


@dataclass
class Stage:
    """One drill while it runs."""

    home: Home
    recorder: Recorder
    load: Load
    faults: Faults
    following: Following
    progress: Progress
    random: Random
    seconds: float  # of load beside the moves, in all
    rests: int  # the parts that this is divided into
    times: int = 1
    spread: Spread | None = None  # where the bus is on machines of its own
    began_s: float = field(default_factory=time.monotonic)
    seen: list[Seen] = field(default_factory=list)
    pause: threading.Event = field(default_factory=threading.Event)

    @property
    def active(self) -> str:
        """The site that is active now."""
        return self.home.state().active

    @property
    def standby(self) -> str:
        """The other one."""
        return next(site for site in self.home.bus.sites if site != self.active)

    @property
    def is_automatic(self) -> bool:
        """True if the voters promote the standby, and nobody asks."""
        return self.home.bus.gate.promote is Promote.AUTOMATIC

    @property
    def is_over(self) -> bool:
        """True when the load has run for as long as it should; for stories without an end of their own."""
        return time.monotonic() - self.began_s >= self.seconds

    @property
    def is_close(self) -> bool:
        """True if the standby lacks little."""
        lag_s = self.following.lag_s
        return lag_s is not None and lag_s <= CLOSE_S

    def rest(self) -> None:
        """Let the load run for a while, and before that every client come back."""
        self._rest(self.load.clients)

    def rest_without_twin(self) -> None:
        """The same for those whom a lost site keeps from nothing: who do not insist on it, or wait for it."""
        clients = self.load.clients
        self._rest([one for one in clients if one.program is not Program.LIBRARY and one.tuned])

    def readable(self, site: str) -> int:
        """How many records a reader finds at a site now."""
        return last_read.readable(self.home, site)

    def probe(self, site: str) -> Counter[str]:
        """What a site answers to writes with acks=all now, each tried once."""
        return probe.probe(self.home, site, self.recorder)

    def _rest(self, clients: Sequence[Client]) -> None:
        if waiting := self.load.wait_until_going_on(BACK_TIMEOUT_S, clients):
            text = f"not back after {BACK_TIMEOUT_S:g} s: {', '.join(waiting)}"
            self.recorder.event(Happening.NOTE, text)
            self.progress.note(text)
        self.pause.wait(self.seconds / self.rests)

    def fall_behind(self) -> None:
        """Pause the link until the standby lacks something."""
        link.pause_flag(self.home).touch()
        self.wait(
            lambda: (self.following.lag_s or 0.0) >= LACKING_S, CLOSE_TIMEOUT_S, "the standby falls behind"
        )

    def catch_up(self) -> None:
        """Let the link go on."""
        link.pause_flag(self.home).unlink()

    def switchover(self) -> Move:
        """Move the active role, as planned, when the standby is close behind."""
        self.wait(lambda: self.is_close, CLOSE_TIMEOUT_S, "the standby catches up")
        return self._move(beginning.switchover)

    def promote(self) -> None:
        """Have the standby promoted: by the traffic manager, or as soon as it says that it is ready to."""
        before = self.active
        if self.is_automatic:
            self.wait(lambda: self.active != before, MOVE_TIMEOUT_S, "the manager promotes the standby")
            self.ended()
            return
        self.wait(lambda: self.following.moves.is_lost, DETECT_TIMEOUT_S, "the manager finds the active lost")
        self._move(lambda ground: beginning.failover(ground, "a drill confirmed it", force=True))

    def bring_back(self) -> None:
        """Take the lost site back, with what only it has in salvage.

        Where the manager decides alone, it does so when the site's agent answers.
        """
        if not self.is_automatic:
            self._move(beginning.returning)
            return
        for site in self.home.local_sites:
            agent.background(self.home, site).launch()
        self.wait(lambda: not self.home.state().lost, MOVE_TIMEOUT_S, "the manager takes the lost site back")
        self.ended()

    def ended(self) -> None:
        """Wait until no move is under way."""
        with Ground(self.home, self.progress) as ground:
            self.wait(
                lambda: beginning.any_unfinished(ground) is None, MOVE_TIMEOUT_S, "the move comes to its end"
            )

    def wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Wait for something that must come."""
        end = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end:
                raise SiteError(f"{what}: not after {timeout_s:g} s", where=str(self.home.file.parent))
            self.pause.wait(LOOK_AGAIN_S)

    def _move(self, begin: Callable[[Ground], Move]) -> Move:
        """Begin a move as soon as the bus is free and fit for it, and carry it out."""
        end = time.monotonic() + FIT_TIMEOUT_S
        while True:
            begun = None
            try:
                with self.home.state_file.locked("drill"), Ground(self.home, self.progress) as ground:
                    begun = begin(ground)
                    return carry_out(ground, begun)
            except (UsageError, SiteError):
                # Another command holds the bus for a moment, or a site is not ready yet.
                if begun is not None or time.monotonic() > end:
                    raise
                self.pause.wait(LOOK_AGAIN_S)
