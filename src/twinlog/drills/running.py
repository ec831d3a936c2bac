"""Runs a drill from nothing to its verdict: a bus of its own, load, the story, healing, the last read.

`drill run` calls `run`. The bus is made in a directory of its own and taken down at the end, whatever
that end is; what was written down about it stays. Nothing of another bus is touched. Once the load runs
there is a verdict: a story that ends by an error is judged by what was written down until then.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import psutil

from twinlog import __version__
from twinlog.drills import declaration, devices, disks, last_read, recording
from twinlog.drills.content import JSON_FILE
from twinlog.drills.faults import Faults
from twinlog.drills.following import Following
from twinlog.drills.history import Happening, Operation
from twinlog.drills.load import Load, must_go_on
from twinlog.drills.machines import Network, network
from twinlog.drills.page import page
from twinlog.drills.recording import Recorder
from twinlog.drills.scenarios import Scenario
from twinlog.drills.spread import Spread
from twinlog.drills.stage import Stage
from twinlog.drills.stories import FAILOVER_AFTER_S
from twinlog.drills.verdict import About, Verdict, judge
from twinlog.durable import write_text
from twinlog.errors import SiteError, TwinlogError, UsageError
from twinlog.mirror import link
from twinlog.ops import apply
from twinlog.progress import Progress
from twinlog.sites import local, processes, removal
from twinlog.sites.home import Home
from twinlog.sites.local import Kafka
from twinlog.spec.model import KAFKA_VERSION, Promote
from twinlog.traffic import staff
from twinlog.wire.driver import librdkafka_version

BEGIN_TIMEOUT_S = 240.0  # JVMs start and groups form, on a machine that does other things too
EQUAL_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 10.0
# What a story can end by, beside its end: a bus that does not do what it should, or does not answer.
TROUBLE = (TwinlogError, OSError, subprocess.SubprocessError, psutil.Error)


@dataclass(frozen=True)
class Options:
    """What the caller may choose; None is what the scenario says."""

    directory: Path
    seed: int = 0
    seconds: float | None = None
    rate: float = 30.0  # records a second and writer
    times: int = 1
    report: Path | None = None
    keep: bool = False
    promote: Promote = Promote.ASK  # who promotes the standby: the drill as a person would, or the voters


@dataclass(frozen=True)
class Ran:
    """A drill that came to its end."""

    verdict: Verdict
    directory: Path
    report: Path

    @property
    def json_file(self) -> Path:
        """Where all of it is, for programs."""
        return self.directory / JSON_FILE

    def as_json(self) -> dict[str, Any]:
        """The verdict, and where it lies."""
        return {
            **self.verdict.as_json(),
            "report": str(self.report),
            "directory": str(self.directory),
            "json": str(self.json_file),
        }


def run(scenario: Scenario, options: Options, progress: Progress) -> Ran:
    """Play a scenario; what was written down stays in its directory, the bus only if it is needed."""
    directory = _new_directory(options.directory, scenario.name)
    try:
        with ExitStack() as held:
            joined = held.enter_context(network(declaration.PLACES)) if scenario.apart else None
            for disk in declaration.own_disks(scenario):
                mount = devices.mounted if scenario.slow_disks else disks.mounted
                held.enter_context(mount(directory / disk))
            promote = Promote.AUTOMATIC if joined is not None else options.promote
            home = declaration.declare(directory, scenario, promote, joined)
            verdict = _run(scenario, options, home, joined, progress)
    except TwinlogError as error:
        if not error.where:
            error.where = str(directory)
        raise
    report = options.report if options.report is not None else directory / "report.html"
    write_text(report, page(verdict))
    ran = Ran(verdict, directory, report)
    write_text(ran.json_file, json.dumps(ran.as_json(), indent=1) + "\n")
    return ran


def _run(
    scenario: Scenario, options: Options, home: Home, joined: Network | None, progress: Progress
) -> Verdict:
    """Bring the bus up, play, and take it down, whatever happens."""
    spread = Spread(home, joined) if joined is not None else None
    passed = False
    try:
        kafka = local.ensure_kafka(progress)
        link.need_spark()
        if spread is not None:
            spread.bring_up(progress)
        else:
            _bring_up(home, progress)
        verdict = _play(scenario, options, home, kafka, spread, progress)
        passed = verdict.passed
        return verdict
    finally:
        if spread is not None:
            spread.close()
        take_down(home, progress, delete=passed and not options.keep)


def take_down(home: Home, progress: Progress, *, delete: bool) -> None:
    """End everything of a bus, and delete it or leave it to be looked at."""
    state = home.state_file.read()
    if state is None:
        return
    for background in (*reversed(list(staff.everybody(home))), link.background(home)):
        try:
            background.dismiss()
        except SiteError:
            left = background.find()
            processes.end([left] if left is not None else [], signal.SIGKILL)
    names = list(state.sites)
    if delete:
        removal.destroy(home, names, progress)
    else:
        local.down(home, names, progress, timeout_s=STOP_TIMEOUT_S)


def _new_directory(parent: Path, name: str) -> Path:
    directory = parent.absolute() / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise UsageError("a drill began there this very second", where=str(directory)) from None
    return directory


def _bring_up(home: Home, progress: Progress) -> None:
    names = list(home.bus.sites)
    with home.state_file.locked("drill"):
        local.up(home, names, progress)
        apply.settle(home, names, progress, yes=False)
    with _told(progress, "starting the mirror"):
        link.background(home).launch()
    with _told(progress, "opening the gate"):
        staff.launch(home)


def _play(
    scenario: Scenario,
    options: Options,
    home: Home,
    kafka: Kafka,
    spread: Spread | None,
    progress: Progress,
) -> Verdict:
    """Load, the story, healing, the last read, the verdict."""
    history = home.file.parent / "history"
    history.mkdir()
    place = spread.place if spread is not None else (lambda client: [])
    clients = Load(home, scenario.clients, history, options.rate, place)
    busy_before = os.getloadavg()[0]
    with Recorder(history / "events.jsonl") as recorder:
        active = home.state().active
        recorder.event(Happening.OPENED, f"{active} is active", site=active, planned=True)
        faults = Faults(home, recorder, progress)
        following = Following(home, recorder)
        stage = Stage(
            home,
            recorder,
            clients,
            faults,
            following,
            progress,
            Random(options.seed),
            options.seconds if options.seconds is not None else scenario.seconds,
            scenario.rests,
            options.times,
            spread,
        )
        try:
            with following:
                with _told(progress, "load"):
                    clients.start(kafka)
                    must_go_on(clients, BEGIN_TIMEOUT_S, history)
                with _told(progress, f"drill {scenario.name}"):
                    trouble = tell(scenario, stage)
                with _told(progress, "clients end"):
                    for name in clients.stop(recorder):
                        recorder.event(Happening.NOTE, f"{name} did not end, and was killed")
        finally:
            faults.let_go()
            clients.kill()
    with _told(progress, "last read"):
        trouble += read_all(home, following, clients, history)
    paths = [*clients.histories, history / "events.jsonl", history / "final.jsonl"]
    about = _about(scenario, options, stage, busy_before, kafka)
    promises = (*scenario.promises, *stage.seen)
    return judge(recording.load(paths), promises, about, "; ".join(trouble))


def tell(scenario: Scenario, stage: Stage) -> list[str]:
    """Play the story and mend what it left broken; returns what kept it from its end."""

    def story() -> None:
        stage.rest()
        scenario.story(stage)

    trouble = _tried(story)
    # The next call goes on behind a fault that could not be mended.
    while (unmended := _tried(stage.faults.heal_all)) and unmended[0] not in trouble:
        trouble += unmended
    if trouble:  # else clients that had no time to come back would be said to be away for good
        trouble += _tried(stage.rest)
    for reason in trouble:
        stage.recorder.event(Happening.NOTE, f"the story did not come to its end: {reason}")
        stage.progress.note(reason)
    return trouble


def _tried(act: Callable[[], object], what: str = "") -> list[str]:
    """Do something; returns what went wrong, in words."""
    try:
        act()
    except TROUBLE as error:
        reason = error.what if isinstance(error, TwinlogError) else str(error)
        return [f"{what}: {reason}" if what else reason]
    return []


def read_all(home: Home, following: Following, clients: Load, history: Path) -> list[str]:
    """Read both sites and salvage, each as far as it can be had; returns what could not be read."""
    with Recorder(history / "final.jsonl") as recorder:

        def equal() -> None:
            if behind := last_read.wait_until_equal(home, EQUAL_TIMEOUT_S):
                recorder.event(Happening.UNEQUAL, behind)

        def add(found: Iterable[Operation]) -> None:
            for one in list(found):  # half a log would look like a loss
                recorder.add(one)

        recorder.event(Happening.LAST_READ, "the last read begins", sites=list(home.bus.sites))
        trouble = _tried(equal, "the sites cannot be compared")
        for site in home.bus.sites:
            finals = last_read.finals(home, site, clients.names)
            if failed := _tried(partial(add, finals), f"the last read of {site}"):
                recorder.event(Happening.UNREAD, failed[0], site=site)
                trouble += failed
        salvaged = last_read.salvaged(home, following.moves.lost, clients.names)
        return trouble + _tried(partial(add, salvaged), "the last read of salvage")


def _about(scenario: Scenario, options: Options, stage: Stage, busy_before: float, kafka: Kafka) -> About:
    size = scenario.size
    return About(
        scenario.name,
        options.seed,
        {
            "twinlog": __version__,
            "kafka": " → ".join(dict.fromkeys((scenario.kafka_version, KAFKA_VERSION))),
            "librdkafka": librdkafka_version(),
            "confluent-kafka": version("confluent-kafka"),
            "java": kafka.java.release,
            "spark": version("pyspark"),
            "python": platform.python_version(),
        },
        {
            "brokers": f"{size.brokers} and {size.standby_brokers}",
            "controllers of the active": str(size.controllers),
            "clients": ", ".join(client.name for client in scenario.clients),
            "records a second and writer": f"{options.rate:g}",
            "seconds": f"{stage.seconds:g}",
            "times": str(options.times),
            "failover_after": f"{FAILOVER_AFTER_S:g} s",
            "promote": stage.home.bus.gate.promote,
            "processors": str(os.cpu_count()),
            "load average, before and after": f"{busy_before:.1f}, {os.getloadavg()[0]:.1f}",
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
    )


@contextmanager
def _told(progress: Progress, name: str) -> Iterator[None]:
    progress.begin(name)
    yield
    progress.end(name)
