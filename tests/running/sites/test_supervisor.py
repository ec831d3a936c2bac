"""A supervisor at its work: who may be it, and when it ends."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import psutil
import pytest

from twinlog.errors import UsageError
from twinlog.sites.home import Home
from twinlog.sites.supervisor import Supervisor, background, report_of
from twinlog.spec.model import Bus, Site

NODE = "a/broker-1"
WAIT_S = 10.0  # for a thread to start; it takes milliseconds


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(Bus(bus="watched", sites={"a": Site(brokers=1)}), tmp_path / "twinlog.yaml", {})
    made.allocate()
    return made


def test_one_supervisor_runs_and_a_second_is_refused(home: Home) -> None:
    stop, turned = threading.Event(), threading.Event()

    def clock() -> float:
        if report_of(home):  # written at the end of a turn
            turned.set()
        return time.monotonic()

    thread = threading.Thread(target=Supervisor(home, clock=clock, log=lambda line: None).run, args=(stop,))
    thread.start()
    try:
        assert turned.wait(WAIT_S)
        found = background(home).find()
        assert found is not None and found.pid == os.getpid()
        assert report_of(home)[NODE] == "its data directory is gone; it is not formatted again"
        with pytest.raises(UsageError, match="runs already"):
            Supervisor(home).run(threading.Event())
    finally:
        stop.set()
        thread.join(WAIT_S)
    assert background(home).find() is None


def test_a_recycled_pid_is_not_taken_for_the_supervisor(home: Home) -> None:
    parent = psutil.Process().parent()
    assert parent is not None
    (home.directory / "supervisor.lock").write_text(f"{parent.pid} {parent.create_time() - 1}")
    assert background(home).find() is None
    background(home).dismiss()
    assert parent.is_running()


def test_a_supervisor_ends_when_its_bus_is_gone(home: Home) -> None:
    said = threading.Event()
    supervisor = Supervisor(home, log=lambda line: said.set())
    thread = threading.Thread(target=supervisor.run, args=(threading.Event(),))
    thread.start()
    assert said.wait(WAIT_S)
    home.directory.rename(home.directory.with_name("moved"))
    thread.join(WAIT_S)
    assert not thread.is_alive()


def test_a_turn_that_fails_is_said_and_followed_by_the_next(home: Home) -> None:
    said: list[str] = []
    stop = threading.Event()

    def log(line: str) -> None:
        said.append(line)
        if "was never brought up" in line:
            stop.set()
        home.state_file.path.unlink(missing_ok=True)  # from the second turn on nothing can be read

    Supervisor(home, log=log).run(stop)
    assert "gone" in said[0] and "was never brought up" in said[-1]
