"""Drills as a user runs them: all kinds of clients, a bus of their own, a verdict; and some that must fail.

Time limits are for a machine that does nothing else, so here a drill may be slower than it promises, up to
a factor; everything about records must hold. The longer scenarios run in `make drills`.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, program_environment
from twinlog.drills.cast import GROUP, IDEMPOTENT, PLAIN, TWIN
from twinlog.drills.finding import Kind
from twinlog.drills.promises import ALWAYS, Within
from twinlog.drills.running import Options, run
from twinlog.drills.scenarios import SCENARIOS, Scenario
from twinlog.drills.stage import Stage
from twinlog.drills.verdict import STORY_ENDED
from twinlog.machine import cache_directory
from twinlog.progress import Silent
from twinlog.sites import processes
from twinlog.sites.home import Home
from twinlog.spec.load import load

pytestmark = pytest.mark.cluster

RUN_TIMEOUT_S = 1200  # two minutes on a machine that does nothing else; ten of them are `random`'s own
EXIT_FINDINGS = 3
SLOWER = 3.0  # than promised, on a machine that does other things too; beyond that something is wrong
WRITES_PER_S = 500
MOST_MISSING = 0.1  # of the load that was asked for
# A mirror that leaves a batch out and hides it: where the batch was, it says, is nothing to be seen.
BROKEN_MIRROR = """
from twinlog.mirror import steps

whole, dropped = steps.plan, []


def plan(records, aborted, position, *, keep_identity):
    for step in whole(records, aborted, position, keep_identity=keep_identity):
        if not dropped and isinstance(step, steps.Copy) and step.chain is None and step.first > 20:
            dropped.append(step)
            step = steps.Fill(step.first, step.length)
        yield step


steps.plan = plan
"""
# A story that breaks something and does not come to its end.
BROKEN_STORY = """
from twinlog.drills import stories
from twinlog.drills.faults import How
from twinlog.errors import SiteError


def too_late(stage):
    stage.faults.mirror(How.KILL)
    raise SiteError("it is too late")


stories.mirror_dies = too_late
"""


def drill(directory: Path, name: str, *options: str, **environment: str) -> dict[str, Any]:
    """Run a drill by its command and return the JSON, with `exit_code` beside it."""
    ended = subprocess.run(
        [sys.executable, "-m", "twinlog", "drill", "run", name, "-o", "json", *options],
        cwd=directory,
        env=program_environment(cache_directory(), **environment),
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert ended.returncode in (0, EXIT_FINDINGS), ended.stderr
    return {**json.loads(ended.stdout), "exit_code": ended.returncode}


def held_but_for_time(told: dict[str, Any]) -> None:
    """All that a scenario promises about records was kept, and everybody who should be was back, if late."""
    timed = {one.says: one for one in SCENARIOS[told["drill"]].promises if isinstance(one, Within)}
    broken = [one for one in told["promises"] if not one["kept"] and one["says"] not in timed]
    assert broken == [], told["findings"][:20]
    assert [one for one in told["promises"] if is_far_too_late(one, timed.get(one["says"]))] == []
    assert [one["name"] for one in told["clients"] if not one["returned"]] == []
    assert (told["verdict"] == "pass") is (told["exit_code"] == 0)


def is_far_too_late(told: dict[str, Any], promise: Within | None) -> bool:
    """Whether a promise about time was broken by more than a busy machine explains."""
    if promise is None:
        return False
    if told["most_s"] is None:
        return True  # somebody was never back, or nobody was there
    most_late = told["most_s"] > SLOWER * promise.most_s
    return most_late or (promise.median_s is not None and told["median_s"] > SLOWER * promise.median_s)


def left_behind(directory: Path) -> list[int]:
    """Processes of the drill's bus that still run."""
    file = directory / "twinlog.yaml"
    home = Home(load(file, {}).bus, file)
    if home.state_file.read() is None:
        return []
    nodes = [node for site in home.bus.sites for node in home.layout(site).nodes]
    return [process.pid for process in processes.find(nodes).values()]


@pytest.mark.drill
def test_switchover_and_back_loses_and_repeats_nothing(tmp_path: Path) -> None:
    told = drill(tmp_path, "switchover-and-back", "--seconds", "15", "--rate", "20")
    held_but_for_time(told)
    assert told["lost"] == told["duplicated"] == 0
    assert len(told["clients"]) == len(SCENARIOS["switchover-and-back"].clients)
    assert "<svg" in Path(told["report"]).read_text()
    assert left_behind(Path(told["directory"])) == []


@pytest.mark.drill
def test_site_that_dies_loses_only_its_lag_and_all_of_that_is_salvaged(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    told = drill(
        tmp_path, "site-dies", "--seconds", "15", "--rate", "20", "--seed", "1", "--report", str(report)
    )
    held_but_for_time(told)
    assert told["lost"] == told["salvaged"]
    assert told["acks"]["twin"]["lost"] == 0
    assert told["acks"]["twin"]["acknowledged"] > 0
    assert [one["opened"] for one in told["disturbances"]] == ["b"]
    assert report.exists()
    beside = json.loads(Path(told["json"]).read_text())
    assert beside == {key: value for key, value in told.items() if key != "exit_code"}
    assert left_behind(Path(told["directory"])) == []


def test_mirror_that_drops_a_batch_makes_the_drill_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN_MIRROR)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(REPOSITORY / "src")]))
    clients = (PLAIN, IDEMPOTENT, TWIN, GROUP)
    calm = Scenario("calm", "nothing is broken but the mirror", Stage.rest, ALWAYS, clients=clients)
    ran = run(calm, Options(tmp_path / "drills", seconds=6.0, rate=20.0), Silent())
    assert not ran.verdict.passed
    assert {finding.kind for finding in ran.verdict.findings} == {Kind.DIVERGED}
    assert {finding.client for finding in ran.verdict.findings} == {PLAIN.name}
    # What is needed to understand it stays; nothing of it runs.
    assert (ran.directory / ".twinlog").exists()
    assert left_behind(ran.directory) == []


def test_story_that_ends_by_an_error_is_judged_and_fails_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN_STORY)
    path = os.pathsep.join([str(tmp_path), str(REPOSITORY / "src")])
    told = drill(tmp_path, "mirror-dies", "--seconds", "6", "--rate", "20", PYTHONPATH=path)
    assert (told["exit_code"], told["verdict"], told["cut_short"]) == (
        EXIT_FINDINGS,
        "fail",
        "it is too late",
    )
    assert [one["says"] for one in told["promises"] if not one["kept"]] == [STORY_ENDED]
    # What was broken is mended, what could be read was, and the report is there.
    assert [one["what"] for one in told["events"] if one["what"] in ("fault", "healed")] == [
        "fault",
        "healed",
    ]
    assert told["lost"] == 0 and told["acks"]["all"]["acknowledged"] > 0
    assert "the story did not come to its end: it is too late" in Path(told["report"]).read_text()
    assert left_behind(Path(told["directory"])) == []


@pytest.mark.drill
@pytest.mark.parametrize(
    "name", [name for name in SCENARIOS if name not in ("switchover-and-back", "site-dies", "random")]
)
def test_scenario_keeps_its_promises(tmp_path: Path, name: str) -> None:
    held_but_for_time(drill(tmp_path, name, "--seed", "1"))


@pytest.mark.drill
@pytest.mark.parametrize("name", ["site-dies", "site-hangs", "site-comes-home"])
def test_drill_in_which_nobody_confirms_keeps_its_promises(tmp_path: Path, name: str) -> None:
    held_but_for_time(drill(tmp_path, name, "--promote", "automatic", "--seed", "1"))


@pytest.mark.drill
def test_switchover_and_back_three_times_under_500_writes_a_second(tmp_path: Path) -> None:
    writers = sum(client.writes for client in SCENARIOS["switchover-and-back"].clients)
    rate = str(math.ceil(WRITES_PER_S / writers))
    told = drill(tmp_path, "switchover-and-back", "--times", "3", "--rate", rate)
    held_but_for_time(told)
    assert told["load_per_s"] > WRITES_PER_S * (1 - MOST_MISSING)


@pytest.mark.drill
@pytest.mark.parametrize("seed", ["1", "2", "3", "4", "5"])
def test_random_faults_break_no_promise(tmp_path: Path, seed: str) -> None:
    held_but_for_time(drill(tmp_path, "random", "--seed", seed, "--seconds", "600"))


@pytest.mark.drill
def test_random_faults_break_no_promise_where_voters_decide(tmp_path: Path) -> None:
    held_but_for_time(drill(tmp_path, "random", "--seed", "1", "--seconds", "600", "--promote", "automatic"))
