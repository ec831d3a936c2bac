"""Watches the bus during a drill and writes down what it does: moves step by step, detection, lag.

Moves are followed in the journal beside the bus's state, whoever carries them out: the drill, the traffic
manager, or one after the other. The manager's report says when it found the active lost. A move's times
are those at which its next step was written down, so they are late by a few hundredths of a second.
"""

from __future__ import annotations

import json
from pathlib import Path

from twinlog.drills.history import Happening
from twinlog.drills.recording import Recorder
from twinlog.errors import TwinlogError
from twinlog.mirror.watch import Watch
from twinlog.repeating import Repeating
from twinlog.sites.home import Home
from twinlog.traffic import journal, manager
from twinlog.traffic.moves import STEPS, Kind, Move, Step, decode

LOOK_AGAIN_S = 0.02
LAG_EVERY_S = 1.0
JOIN_TIMEOUT_S = 30.0
LOST = ("ReadyToPromote", "Promote")  # what the manager says when it has found the active lost


class Moves:
    """Turns what the journal and the manager's report say into events."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._seen: Move | None = None
        self.is_lost = False  # the manager has said so of the active
        self.lost: dict[int, str] = {}  # the site that each term's failover left behind

    def move(self, move: Move) -> None:
        """The journal says how far a move is."""
        before = self._seen
        self._seen = move
        is_new = before is None or (before.term, before.begun_at) != (move.term, move.begun_at)
        if not is_new and before is not None and before.step is move.step:
            return
        steps = STEPS[move.kind]
        first = 0 if is_new or before is None else before.progress + 1
        if move.called_off:
            self._recorder.event(Happening.NOTE, str(move))
            return
        for step in steps[first : move.progress + 1]:
            self._begun(move, step)

    def _begun(self, move: Move, step: Step) -> None:
        """A step begins; the one before it is done."""
        steps = STEPS[move.kind]
        planned = move.kind is Kind.SWITCHOVER
        if Step.OPEN in steps and steps.index(step) == steps.index(Step.OPEN) + 1:
            self._opened(move, planned)
        if step is Step.FENCE:
            if not planned:
                self.lost[move.term] = move.source
            self._recorder.event(Happening.FENCED, f"{move.kind}: {step}", site=move.source)
        else:
            self._recorder.event(Happening.STEP, f"{move.kind}: {step}")

    def _opened(self, move: Move, planned: bool) -> None:
        points = {
            topic: {str(partition): offset for partition, offset in found.items()}
            for topic, found in move.points.items()
        }
        site = move.target
        self._recorder.event(
            Happening.PROMOTION, f"{site} took over", site=site, planned=planned, points=points
        )
        self._recorder.event(Happening.OPENED, f"{site} is active", site=site, planned=planned)
        self.is_lost = False

    def decision(self, step: str, why: str) -> None:
        """The manager's report says what it is about to do."""
        found_lost = step in LOST
        if found_lost and not self.is_lost:
            self._recorder.event(Happening.DETECTED, why)
        self.is_lost = found_lost


class Following(Repeating):
    """Two threads that look, from `with` to its end."""

    def __init__(self, home: Home, recorder: Recorder) -> None:
        self._home = home
        self._recorder = recorder
        self.moves = Moves(recorder)
        self.lag_s: float | None = None  # as measured last; None while nobody can say
        threads = {"drill-follow": self._follow, "drill-measure": self._measure}
        super().__init__(threads, end_timeout_s=JOIN_TIMEOUT_S)

    def _follow(self) -> None:
        move_file = self._home.directory / journal.DIRECTORY / journal.FILE
        report = manager.background(self._home).report
        seen: dict[Path, int] = {}
        while not self._ended.wait(LOOK_AGAIN_S):
            for path in (report, move_file):
                text = _changed(path, seen)
                if text is None:
                    continue
                if path == move_file:
                    move = decode(text)
                    if move is not None:
                        self.moves.move(move)
                else:
                    told = json.loads(text)
                    self.moves.decision(told["step"], told["why"])

    def _measure(self) -> None:
        while not self._ended.is_set():
            try:
                with Watch(self._home) as watch:
                    active = watch.active
                    while not self._ended.wait(LAG_EVERY_S) and self._home.state().active == active:
                        found = watch.look()
                        seconds = max(
                            (one.lag_s for one in found.topics if one.lag_s is not None), default=None
                        )
                        records = sum(one.lag_records for one in found.topics)
                        self.lag_s = seconds
                        self._recorder.event(Happening.LAG, "lag", records=records, seconds=seconds)
                self.lag_s = None
            except TwinlogError:
                self.lag_s = None
                self._ended.wait(LAG_EVERY_S)  # a site is down, or roles change


def _changed(path: Path, seen: dict[Path, int]) -> bytes | None:
    """What a file holds, if that is new."""
    try:
        written = path.stat().st_mtime_ns
        if seen.get(path) == written:
            return None
        seen[path] = written
        return path.read_bytes()
    except FileNotFoundError:
        return None
