"""Commands that are killed or interrupted at any moment, and run again.

Moments are found by watching what the command does on disk and which processes it has started, so
that a slow machine only makes a test longer. Every moment comes in each run, one after the other on
the same bus; each of them on a bus that was left in order, and moments drawn by chance with the seed
shown, are for the long run.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.cluster.conftest import Bus, MakeBus
from twinlog.machine import cache_directory
from twinlog.sites import readiness
from twinlog.sites.processes import MAIN_CLASS
from twinlog.wire.cluster import Cluster

pytestmark = pytest.mark.cluster

FILE = """\
bus: killed
kafka: {broker.session.timeout.ms: 5s, broker.heartbeat.interval.ms: 500ms}
sites:
  a: {brokers: [{data: disks, kafka: {num.io.threads: 8}}], memory: 256MB, controller_memory: 128MB}
"""
CONTENT = """\
topics:
  {name}-one: {{partitions: 2}}
  {name}-two: {{partitions: 2}}
  {name}-three: {{partitions: 2}}
users:
  {name}-first: {{produce: ["{name}-*"], consume: ["{name}-*"], groups: ["{name}-*"]}}
  {name}-second: {{auth: scram-sha-256, produce: ["{name}-one"]}}
"""
MOMENT_TIMEOUT_S = 120.0  # a whole `up` takes a few seconds; the rest is a busy machine
LOOK_AGAIN_S = 0.002
INTERRUPTED = 130


@dataclass(frozen=True)
class View:
    """What can be seen of a bus from outside."""

    bus: Bus

    @property
    def home(self) -> Path:
        """The directory that the program keeps."""
        return self.bus.directory / ".twinlog"

    @property
    def broker(self) -> Path:
        """The directory of the one broker."""
        return self.home / "sites" / "a" / "broker-1"

    @property
    def disk(self) -> Path:
        """The data directory of the one broker."""
        return self.bus.directory / "disks" / "a-broker-1"

    def has(self, pattern: str) -> bool:
        """True if a file of that pattern is in the program's directory."""
        return any(True for _ in self.home.glob(pattern))

    @property
    def name(self) -> str:
        """What the names of declared topics and users begin with."""
        found = re.search(r"^  (\w+)-first:", self.bus.file.read_text(), re.MULTILINE)
        assert found is not None
        return found[1]

    def has_topic(self, name: str) -> bool:
        """True if a broker has begun to keep a topic."""
        return (self.disk / f"{name}-0").exists()

    def has_declared(self, which: str) -> bool:
        """True if a broker has begun to keep one of the declared topics."""
        return self.has_topic(f"{self.name}-{which}")

    def jvms(self) -> list[psutil.Process]:
        """Every JVM that was started for this bus, whatever the program itself thinks of it."""
        return [process for process in self.processes() if MAIN_CLASS in _arguments(process)]

    def processes(self) -> list[psutil.Process]:
        """Every process that has to do with this bus."""
        own = str(self.bus.directory)
        return [
            process
            for process in psutil.process_iter()
            if any(own in argument for argument in _arguments(process))
        ]

    def state(self) -> str:
        """The remembered state, as text."""
        with suppress(FileNotFoundError):
            return (self.home / "state.json").read_text()
        return ""

    def applied(self) -> int:
        """How many passwords of declared users are remembered as given to the site."""
        text = self.state()
        given = json.loads(text)["applied"].get("a", {}) if text else {}
        return sum(user.startswith(f"{self.name}-") for user in given)

    def lock(self) -> str:
        """Which command holds the bus, or held it last."""
        with suppress(FileNotFoundError):
            return (self.home / "lock").read_text()
        return ""


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return [] if process.status() == psutil.STATUS_ZOMBIE else process.cmdline()
    except psutil.Error:
        return []


Moment = Callable[[View], bool]


def run_until(view: View, moment: Moment, how: signal.Signals, *args: str, **environment: str) -> int:
    """Run the program and send it a signal at a moment; returns its exit code.

    If the program ends before the moment was seen, there is nothing to be killed: the caller looks
    at the code, and finds in the test's output what the program said.
    """
    with tempfile.TemporaryFile("w+") as said:
        command = subprocess.Popen(
            view.bus.command(*args),
            cwd=view.bus.directory,
            env=view.bus.environment(**environment),
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        end = time.monotonic() + MOMENT_TIMEOUT_S
        while command.poll() is None and not moment(view):
            assert time.monotonic() < end, "the moment never came"
            time.sleep(LOOK_AGAIN_S)
        command.send_signal(how)
        code = command.wait(MOMENT_TIMEOUT_S)
        said.seek(0)
        print(" ".join(args), "ended with", code, "and said:", said.read())
        return code


def check_declared_state(view: View) -> None:
    """The bus is what the file says, takes writes, and nothing was left behind."""
    bus = view.bus
    bus.done("plan")
    assert [site["state"] for site in bus.json("status")["sites"]] == ["up"]
    with Cluster(bus.home().admin_access("a")) as cluster:
        assert readiness.write_canaries(cluster, 1) == ""
    names = sorted(_arguments(process)[1] for process in view.jvms())
    assert len(names) == 2 and len(set(names)) == 2, names
    assert not [path for path in bus.directory.rglob("*") if is_leftover(path)]
    assert all(node["formatted"] for node in json.loads(view.state())["sites"]["a"]["nodes"].values())


def is_leftover(path: Path) -> bool:
    """True for what a command needs only while it runs."""
    # Half-written files of ours begin with a dot; Kafka has its own for an instant, without one.
    half_written = path.name.startswith(".") and path.name.endswith(".tmp")
    return half_written or path.name.endswith(".formatting") or path.name == "formatting"


def check_nothing_is_left(view: View) -> None:
    """No process, and no file but the user's own."""
    assert view.processes() == []
    assert [path for path in view.bus.directory.rglob("*") if not path.is_dir()] == [view.bus.file]
    assert not view.home.exists()


# Moments of `up`, in their order.
UP: dict[str, Moment] = {
    "the bus is locked": lambda view: "up" in view.lock(),
    "the state is written": lambda view: bool(view.state()),
    "an authority has its key": lambda view: view.has("pki/clients/ca-1.key"),
    "the storage tool runs": lambda view: view.has("sites/a/formatting/*/format.properties"),
    "a controller is formatted": lambda view: view.has("sites/a/controller-*/data/meta.properties"),
    "the broker is formatted": lambda view: (view.disk / "meta.properties").exists(),
    "the broker is configured": lambda view: (view.broker / "jvm.args").exists(),
    "the first process is started": lambda view: view.has("sites/a/controller-*/log/console.log"),
    "all processes are started": lambda view: len(view.jvms()) == 2,
    "the canary is written": lambda view: view.has_topic("__twinlog_canary"),
    "a topic is made": lambda view: view.has_declared("one"),
    "a password is given": lambda view: view.applied() > 0,
}
UP_IN_EVERY_RUN = ("the storage tool runs", "the first process is started", "a topic is made")
# One moment of each phase of `up`, for interrupts.
UP_PHASES = {
    "formatting": UP["the storage tool runs"],
    "starting": UP["all processes are started"],
    "applying": UP["a topic is made"],
}
UP_PHASES_IN_EVERY_RUN = ("starting", "applying")
# Moments of `apply`, each with what has to be applied.
APPLY: dict[str, Moment] = {
    "the bus is locked": lambda view: "apply" in view.lock(),
    "a password is invented": lambda view: view.has(f"secrets/{view.name}-first"),
    "the first topic is made": lambda view: view.has_declared("one"),
    "the last topic is made": lambda view: view.has_declared("three"),
    "a password is given": lambda view: view.applied() > 0,
    "all passwords are given": lambda view: view.applied() > 1,
}
ROLL: dict[str, Moment] = {
    "the broker is held": lambda view: (view.broker / "held").exists(),
    "the broker has ended": lambda view: len(view.jvms()) < 2,
    "the broker is configured anew": lambda view: threads_of(view) == threads_declared(view),
    "the broker is started again": lambda view: (
        threads_of(view) == threads_declared(view) and len(view.jvms()) == 2
    ),
}
APPLY_IN_EVERY_RUN = ("the first topic is made", "a password is given")
ROLL_IN_EVERY_RUN = ("the broker is configured anew",)


def threads_of(view: View) -> int:
    """A setting that only a restart changes, as the broker is configured."""
    found = re.search(
        r"^num.io.threads=(\d+)$", (view.broker / "server.properties").read_text(), re.MULTILINE
    )
    assert found is not None
    return int(found[1])


def threads_declared(view: View) -> int:
    """The same, as the file says."""
    found = re.search(r"num.io.threads: (\d+)", view.bus.file.read_text())
    assert found is not None
    return int(found[1])


def declare(view: View, threads: int, content: str = "") -> None:
    """Write the file."""
    view.bus.file.write_text(FILE.replace("threads: 8", f"threads: {threads}") + content)


def sampled(moments: dict[str, Moment], always: tuple[str, ...]) -> list[object]:
    """All moments as parameters; those that are not chosen are for the long run."""
    return [
        pytest.param(moment, id=name, marks=() if name in always else pytest.mark.slow)
        for name, moment in moments.items()
    ]


@pytest.fixture
def fresh(make_bus: MakeBus) -> Iterator[View]:
    """A bus that was never brought up; gone afterwards."""
    view = View(make_bus(FILE + CONTENT.format(name="up"), up=False))
    yield view
    view.bus.done("destroy", "--yes")
    check_nothing_is_left(view)


@pytest.fixture(scope="module")
def running(make_bus: MakeBus) -> View:
    """A bus that is up; each test declares something more."""
    return View(make_bus(FILE))


@pytest.mark.parametrize("moment", sampled(UP, UP_IN_EVERY_RUN))
def test_up_that_was_killed_is_finished_by_the_next_up(fresh: View, moment: Moment) -> None:
    assert run_until(fresh, moment, signal.SIGKILL, "up") == -signal.SIGKILL
    left = {process.pid for process in fresh.jvms()}
    found = fresh.bus.run("status", "-o", "json")
    if left:  # the brokers go on without the program, and the next command finds them
        assert {node["pid"] for node in json.loads(found.stdout)["nodes"]} - {None} == left
    fresh.bus.done("up")
    assert left <= {process.pid for process in fresh.jvms()}
    check_declared_state(fresh)


def test_up_that_was_killed_at_every_moment_in_turn_is_finished_by_the_last_up(fresh: View) -> None:
    left: set[int] = set()
    for name, moment in UP.items():
        assert run_until(fresh, moment, signal.SIGKILL, "up") == -signal.SIGKILL, name
        now = {process.pid for process in fresh.jvms()}
        assert left <= now, name
        left = now
    fresh.bus.done("up")
    assert left <= {process.pid for process in fresh.jvms()}
    check_declared_state(fresh)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_up_that_was_killed_at_any_time_is_finished_by_the_next_up(fresh: View, seed: int) -> None:
    end = time.monotonic() + random.Random(seed).uniform(0.3, 8.0)
    run_until(fresh, lambda view: time.monotonic() > end, signal.SIGKILL, "up")
    fresh.bus.done("up")
    check_declared_state(fresh)


@pytest.mark.parametrize("moment", sampled(UP_PHASES, UP_PHASES_IN_EVERY_RUN))
def test_interrupted_up_leaves_no_process_that_it_started_in_vain(fresh: View, moment: Moment) -> None:
    assert run_until(fresh, moment, signal.SIGINT, "up") == INTERRUPTED
    # Once the sites are ready they stay: what was interrupted then is the applying.
    assert len(fresh.jvms()) in ((2,) if fresh.has_declared("one") else (0,))
    fresh.bus.done("up")
    check_declared_state(fresh)


def declare_more(running: View) -> None:
    """Declare topics and users that the site does not have yet."""
    declare(running, threads_of(running))
    running.bus.done("apply", "--yes", "--prune")  # away with what the test before declared
    declare(running, threads_of(running), CONTENT.format(name=f"apply{time.monotonic_ns()}"))
    (running.home / "lock").unlink()


@pytest.mark.parametrize("moment", sampled(APPLY, APPLY_IN_EVERY_RUN))
def test_apply_that_was_killed_is_finished_by_the_next_apply(running: View, moment: Moment) -> None:
    declare_more(running)
    assert run_until(running, moment, signal.SIGKILL, "apply") == -signal.SIGKILL
    running.bus.done("apply", "--yes")
    check_declared_state(running)
    assert running.has_declared("three")


def test_apply_that_was_killed_at_every_moment_in_turn_is_finished_by_the_last_apply(running: View) -> None:
    declare_more(running)
    for name, moment in APPLY.items():
        assert run_until(running, moment, signal.SIGKILL, "apply") == -signal.SIGKILL, name
    running.bus.done("apply", "--yes")
    check_declared_state(running)
    assert running.has_declared("three")


@pytest.mark.parametrize("moment", sampled(ROLL, ROLL_IN_EVERY_RUN))
def test_apply_that_was_killed_in_a_rolling_restart_is_finished_by_the_next_apply(
    running: View, moment: Moment
) -> None:
    declare(running, threads_of(running) + 1)
    assert run_until(running, moment, signal.SIGKILL, "apply", "--yes") == -signal.SIGKILL
    check_rolled(running)


def test_apply_that_was_killed_at_every_moment_of_a_rolling_restart_is_finished_by_the_last_apply(
    running: View,
) -> None:
    declare(running, threads_of(running) + 1)
    for name, moment in ROLL.items():
        assert run_until(running, moment, signal.SIGKILL, "apply", "--yes") == -signal.SIGKILL, name
    check_rolled(running)


def check_rolled(view: View) -> None:
    """The next apply ends the rolling restart."""
    view.bus.done("apply", "--yes")
    check_declared_state(view)
    assert threads_of(view) == threads_declared(view)
    assert not (view.broker / "held").exists()


@pytest.mark.slow
def test_up_that_was_killed_while_it_made_the_archive_leaves_nothing_for_the_next_one(
    fresh: View, tmp_path: Path
) -> None:
    cache, archives = tmp_path / "cache", tmp_path / "cache" / "archives"
    shutil.copytree(cache_directory() / "maven", cache / "maven")
    training = View(Bus(archives))

    def is_training(_: View) -> bool:
        return training.jvms() != []

    code = run_until(fresh, is_training, signal.SIGKILL, "up", TWINLOG_CACHE=str(cache))
    assert code == -signal.SIGKILL
    assert training.jvms() != []
    fresh.bus.done("up", TWINLOG_CACHE=str(cache))
    assert training.jvms() == []
    assert len(list(archives.glob("*.jsa")) + list(archives.glob("*.aot"))) == 1
    assert list(archives.glob("training-*")) == []
    check_declared_state(fresh)


def test_down_leaves_no_process_and_spares_strangers_whose_command_line_names_a_node(fresh: View) -> None:
    fresh.bus.done("up")
    marker = f"@{fresh.broker / 'jvm.args'}"
    waiting = "import sys; sys.stdin.read()"
    commands = [
        [sys.executable, "-c", waiting, marker],
        [sys.executable, "-c", waiting, MAIN_CLASS, marker],
        ["tail", "-f", str(fresh.broker / "jvm.args")],
    ]
    strangers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) for command in commands
    ]
    try:
        fresh.bus.done("down")
        assert fresh.jvms() == [] or {process.pid for process in fresh.jvms()} <= {
            stranger.pid for stranger in strangers
        }
        assert [stranger.poll() for stranger in strangers] == [None] * len(strangers)
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()
    assert fresh.jvms() == []


def test_destroy_that_was_killed_is_finished_by_the_next_one_and_up_says_so(fresh: View) -> None:
    assert run_until(fresh, UP["the broker is formatted"], signal.SIGKILL, "up") == -signal.SIGKILL
    gone = run_until(
        fresh, lambda view: '"destroying": [\n' in view.state(), signal.SIGKILL, "destroy", "--yes"
    )
    assert gone == -signal.SIGKILL
    refused = fresh.bus.run("up")
    assert refused.returncode == 1
    assert "hint: twinlog destroy --yes" in refused.stderr
    fresh.bus.done("destroy", "--yes")
    check_nothing_is_left(fresh)


def test_a_lost_disk_is_not_formatted_again_even_if_the_first_up_was_killed(fresh: View) -> None:
    assert run_until(fresh, UP["the broker is formatted"], signal.SIGKILL, "up") == -signal.SIGKILL
    assert run_until(fresh, UP["all processes are started"], signal.SIGKILL, "up") == -signal.SIGKILL
    fresh.bus.done("down")
    fresh.disk.rename(fresh.disk.with_name("elsewhere"))
    refused = fresh.bus.run("up")
    assert refused.returncode == 1
    assert "a/broker-1 has lost its data" in refused.stderr
    assert fresh.jvms() == [] and not fresh.disk.exists()
    os.rename(fresh.disk.with_name("elsewhere"), fresh.disk)
