"""The supervisor: restarts a node that died, on its own disk, with back-off, and knows when to stop.

Run by `twinlog supervise`, or left behind by `up --supervise`. It never formats, replaces or
empties a disk, and never touches a node that is held (stopped by a roll, a fence, a drill or
`down`) or a bus that another command is changing. A node that dies again and again is reported as
a crash loop and left alone until somebody brings it up. `decide` is pure; the loop around it acts.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from twinlog.durable import write_text
from twinlog.errors import TwinlogError, UsageError
from twinlog.sites import holds, processes, storage
from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.sites.java import find_java
from twinlog.sites.layout import Node

TURN_S = 1.0
BACKOFF_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_S = 300.0  # a node that ran this long starts again with the first back-off
LAUNCH_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Seen:
    """One node as the supervisor sees it in a turn."""

    name: str
    running: bool
    held: str = ""
    has_disk: bool = True


@dataclass(frozen=True)
class History:
    """What the supervisor did about one node; times are of its own clock."""

    restarts: int = 0
    last_start_s: float | None = None


@dataclass(frozen=True)
class Step:
    """What to do about one node, and why, in a sentence that is log line and report."""

    node: str
    restart: bool
    why: str


def decide(seen: Seen, history: History, now_s: float) -> Step:
    """What to do about a node now."""
    if seen.running:
        return Step(seen.name, False, "runs")
    if seen.held:
        return Step(seen.name, False, f"held: {seen.held}")
    if not seen.has_disk:
        return Step(seen.name, False, "its data directory is gone; it is not formatted again")
    if history.restarts >= len(BACKOFF_S):
        why = f"crash loop: died {history.restarts + 1} times; not restarted any more"
        return Step(seen.name, False, why)
    if history.last_start_s is not None:
        left_s = history.last_start_s + BACKOFF_S[history.restarts] - now_s
        if left_s > 0:
            return Step(seen.name, False, f"died; restart in {left_s:.0f} s")
    return Step(seen.name, True, f"died; restart {history.restarts + 1} of {len(BACKOFF_S)}")


def remembered(seen: Seen, history: History, now_s: float) -> History:
    """The history that counts: a node that has run steadily for a while starts afresh."""
    steady = history.last_start_s is not None and now_s - history.last_start_s >= STEADY_S
    return History() if seen.running and steady else history


@dataclass
class Supervisor:
    """The loop: observe, decide, act, report."""

    home: Home
    clock: Callable[[], float] = time.monotonic
    log: Callable[[str], None] = print
    histories: dict[int, History] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)

    def run_once(self) -> list[str]:
        """One turn over all nodes; returns the sentences."""
        nodes = self._nodes()
        running = processes.find(nodes)
        steps = []
        for node in nodes:
            seen, now_s = self._look(node, node.id in running), self.clock()
            history = remembered(seen, self.histories.get(node.id, History()), now_s)
            step = decide(seen, history, now_s)
            steps.append(step)
            if step.restart and self._restart(node):
                history = History(history.restarts + 1, self.clock())
            self.histories[node.id] = history
        self._report(steps)
        return [f"{step.node}: {step.why}" for step in steps]

    def run(self, stop: threading.Event) -> None:
        """Turn after turn until told to stop; a failed turn is logged and followed by the next."""
        with background(self.home).alone():
            while not stop.is_set() and self.home.directory.exists():
                try:
                    self.run_once()
                except (TwinlogError, OSError) as error:
                    self._say("supervisor", str(error))
                stop.wait(TURN_S)

    def _nodes(self) -> list[Node]:
        state = self.home.state()
        names = [
            name for name in self.home.local_sites if name in state.sites and name not in state.destroying
        ]
        return [node for name in names for node in self.home.layout(name).local_nodes]

    def _look(self, node: Node, running: bool) -> Seen:
        has_disk = all(storage.read_meta(path) for path in node.data)
        return Seen(node.name, running, holds.reason(node), has_disk)

    def _restart(self, node: Node) -> bool:
        try:
            with self.home.state_file.locked("supervise"):
                # Looked at again under the lock: a command may have held or started it meanwhile.
                if holds.reason(node) or processes.find([node]):
                    return False
                processes.start(node, find_java())
        except UsageError:
            return False  # another command is changing the bus; the next turn looks again
        return True

    def _report(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._say(step.node, step.why)
        report = {
            "pid": os.getpid(),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "nodes": {step.node: step.why for step in steps},
        }
        write_text(background(self.home).report, json.dumps(report) + "\n")

    def _say(self, who: str, what: str) -> None:
        # Countdowns differ every second and are not news.
        news = what.partition("; restart in")[0]
        if self._said.get(who) != news:
            self._said[who] = news
            self.log(f"{datetime.now(UTC).isoformat(timespec='seconds')} {who}: {what}")


def background(home: Home) -> Background:
    """The supervisor as a process of its own."""
    command = (sys.executable, "-m", "twinlog", "supervise", "--file", str(home.file))
    return Background("supervisor", home.directory, command)


def report_of(home: Home) -> Mapping[str, str]:
    """What a running supervisor last said about each node."""
    if background(home).find() is None:
        return {}
    try:
        found = json.loads(background(home).report.read_text())["nodes"]
    except (FileNotFoundError, ValueError, KeyError):
        return {}
    return dict(found)
