"""Faults on processes that stand in for a bus's: begun, written down, healed, and never left stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from twinlog.drills.faults import Faults, How
from twinlog.drills.history import Happening
from twinlog.drills.recording import Recorder, load
from twinlog.errors import SiteError
from twinlog.progress import Silent
from twinlog.sites.home import Home
from twinlog.spec.load import load as load_file

WAIT_S = 30.0
# Says, when it is ended, whether another process had ended before.
LATER = """
import psutil, signal, sys
first = psutil.Process(int(sys.argv[1]))
def ended(*_):
    over = not first.is_running() or first.status() == psutil.STATUS_ZOMBIE
    print("the first was gone" if over else "the first runs", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, ended)
print("ready", flush=True)
signal.pause()
"""
FILE = "bus: faults\nsites:\n  a: {brokers: 1}\n"


class Ground:
    """Faults of a bus that does not run, and a process to break."""

    def __init__(self, directory: Path) -> None:
        file = directory / "twinlog.yaml"
        file.write_text(FILE)
        self.events = directory / "events.jsonl"
        self.faults = Faults(Home(load_file(file, {}).bus, file), Recorder(self.events), Silent())
        self.child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        self.mended: list[str] = []

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.child.pid)

    def begin(self, how: How, found: list[psutil.Process] | None = None) -> Callable[[], None]:
        processes = [self.process] if found is None else found
        fault = self.faults._begin(how, "a", f"it is {how}", processes, lambda: self.mended.append("up"))
        return lambda: self.faults.heal(fault)

    def told(self) -> list[Happening]:
        return [one.what for one in load([self.events]).events]


def wait_for(condition: Callable[[], bool]) -> None:
    """A signal is delivered a moment after it was sent."""
    pause, end = threading.Event(), time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end
        pause.wait(0.01)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    yield made
    made.child.kill()
    made.child.wait()


def test_killed_process_is_gone_when_the_fault_has_begun_and_is_mended_once(ground: Ground) -> None:
    heal = ground.begin(How.KILL)
    assert ground.child.wait(1) == -signal.SIGKILL
    heal()
    assert ground.mended == ["up"]
    assert ground.told() == [Happening.FAULT, Happening.HEALED]


def test_stopped_process_goes_on_when_healed_and_nothing_else_is_done(ground: Ground) -> None:
    heal = ground.begin(How.HANG)
    wait_for(lambda: ground.process.status() == psutil.STATUS_STOPPED)
    heal()
    wait_for(lambda: ground.process.status() != psutil.STATUS_STOPPED)
    assert ground.mended == []


def test_what_is_still_stopped_at_the_end_is_let_go(ground: Ground) -> None:
    ground.begin(How.HANG)
    wait_for(lambda: ground.process.status() == psutil.STATUS_STOPPED)
    ground.faults.let_go()
    wait_for(lambda: ground.process.status() != psutil.STATUS_STOPPED)


def test_stopped_process_that_somebody_killed_is_healed_without_an_error(ground: Ground) -> None:
    heal = ground.begin(How.HANG)
    ground.child.kill()
    ground.child.wait()
    heal()


def test_fault_that_hits_nothing_is_an_error_and_not_in_the_history(ground: Ground) -> None:
    with pytest.raises(SiteError, match="nothing is there"):
        ground.begin(How.KILL, [])
    assert ground.told() == []


def test_what_comes_second_is_ended_when_the_first_has_ended(ground: Ground) -> None:
    later = subprocess.Popen([sys.executable, "-c", LATER, str(ground.child.pid)], stdout=subprocess.PIPE)
    assert later.stdout is not None
    assert later.stdout.readline() == b"ready\n"
    ended = [psutil.Process(later.pid)]
    ground.faults._begin(How.END, "a", "both are ended", [ground.process], lambda: None, ended)
    assert later.communicate(timeout=WAIT_S)[0] == b"the first was gone\n"


def test_all_that_is_open_is_healed_together(ground: Ground) -> None:
    ground.begin(How.HANG)
    ground.begin(How.KILL)
    ground.faults.heal_all()
    assert ground.told().count(Happening.HEALED) == 2
