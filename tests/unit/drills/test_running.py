"""A story that ends by an error: what is broken is mended, what can be read is, and the reason is kept."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

import pytest

from twinlog.drills.faults import Faults
from twinlog.drills.following import Following
from twinlog.drills.history import Happening, History
from twinlog.drills.load import Load
from twinlog.drills.machines import Network
from twinlog.drills.recording import Recorder, load
from twinlog.drills.running import read_all, tell
from twinlog.drills.scenarios import Scenario
from twinlog.drills.stage import Stage
from twinlog.errors import SiteError
from twinlog.progress import Silent
from twinlog.sites.home import Home
from twinlog.spec.load import load as load_file


class Cable:
    """A network that is mended, or says why not."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.is_whole = True

    def cut(self, *_: str) -> None:
        self.is_whole = False

    def heal(self) -> None:
        if self.refusal:
            raise SiteError(self.refusal)
        self.is_whole = True


class Ground:
    """A stage without load on a bus that was never brought up."""

    def __init__(self, directory: Path) -> None:
        file = directory / "twinlog.yaml"
        file.write_text("bus: told\nsites:\n  a: {brokers: 1}\n  b: {brokers: 1}\n")
        self.home = Home(load_file(file, {}).bus, file)
        self.directory = directory
        recorder = Recorder(directory / "events.jsonl")
        self.following = Following(self.home, recorder)
        self.load = Load(self.home, (), directory, 1.0)
        faults = Faults(self.home, recorder, Silent())
        self.stage = Stage(
            self.home, recorder, self.load, faults, self.following, Silent(), Random(0), 0.0, 1
        )

    def cut(self, cable: Cable) -> None:
        self.stage.faults.cut(cast(Network, cable), "a", "b")

    def tell(self, story: Callable[[Stage], None]) -> list[str]:
        return tell(Scenario("told", "a story", story, ()), self.stage)

    def history(self, name: str) -> History:
        return load([self.directory / name])


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def raising(error: BaseException) -> Callable[[Stage], None]:
    def story(stage: Stage) -> None:
        raise error

    return story


def test_story_that_comes_to_its_end_has_no_trouble_and_everything_is_mended(ground: Ground) -> None:
    cable = Cable()
    assert ground.tell(lambda stage: ground.cut(cable)) == []
    assert cable.is_whole


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SiteError("the standby catches up: not after 180 s", where="somewhere"), "the standby catches up"),
        (subprocess.TimeoutExpired(["mortal"], 120.0), "timed out after 120"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
    ],
)
def test_story_that_ends_by_an_error_is_mended_and_says_why(
    ground: Ground, error: Exception, reason: str
) -> None:
    cable = Cable()
    ground.cut(cable)
    (trouble,) = ground.tell(raising(error))
    assert reason in trouble and "somewhere" not in trouble
    assert cable.is_whole
    events = ground.history("events.jsonl").events
    assert [one.what for one in events] == [Happening.FAULT, Happening.HEALED, Happening.NOTE]
    assert events[-1].text == f"the story did not come to its end: {trouble}"


def test_fault_that_cannot_be_mended_keeps_no_other_one_from_being_mended(ground: Ground) -> None:
    cables = Cable("rusty"), Cable(), Cable("torn"), Cable()
    for cable in cables:
        ground.cut(cable)
    assert ground.tell(raising(SiteError("late"))) == ["late", "rusty", "torn"]
    assert [one.is_whole for one in cables] == [False, True, False, True]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError()])
def test_who_interrupts_a_story_and_what_is_a_mistake_of_ours_is_not_judged(
    ground: Ground, error: BaseException
) -> None:
    with pytest.raises(type(error)):
        ground.tell(raising(error))


def test_sites_that_cannot_be_read_are_named_and_written_down(ground: Ground) -> None:
    trouble = read_all(ground.home, ground.following, ground.load, ground.directory)
    assert [one.partition(":")[0] for one in trouble] == [
        "the sites cannot be compared",
        "the last read of a",
        "the last read of b",
        "the last read of salvage",
    ]
    events = ground.history("final.jsonl").events
    assert [(one.what, one.data) for one in events] == [
        (Happening.LAST_READ, {"sites": ["a", "b"]}),
        (Happening.UNREAD, {"site": "a"}),
        (Happening.UNREAD, {"site": "b"}),
    ]
