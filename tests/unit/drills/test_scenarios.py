"""Every scenario has what its promises need: clients of the levels that they speak of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.drills.story import Story
from twinlog.drills.cast import TWIN
from twinlog.drills.history import Outcome
from twinlog.drills.load import Successes
from twinlog.drills.promises import NOT_TWO, AtMost, Listed, LostWithinLag, NoError
from twinlog.drills.scenarios import ALL, SCENARIOS, Scenario, scenario
from twinlog.drills.verdict import About, judge
from twinlog.errors import UsageError

EACH = pytest.mark.parametrize("one", SCENARIOS.values(), ids=lambda one: one.name)


@EACH
def test_scenario_has_clients_for_every_level_that_it_promises_about(one: Scenario) -> None:
    levels = {client.acks for client in one.clients}
    for promise in one.promises:
        if isinstance(promise, AtMost | Listed | LostWithinLag | NoError) and promise.acks is not None:
            assert promise.acks & levels
    assert TWIN in one.clients


@EACH
def test_scenario_can_be_listed_in_a_terminal(one: Scenario) -> None:
    assert len(one.name) + len(one.says) < 110
    assert one.rests >= 1


def test_unknown_scenario_says_where_the_others_are() -> None:
    with pytest.raises(UsageError) as raised:
        scenario("earthquake")
    assert raised.value.hint == "twinlog drill list"


def test_error_that_reached_a_writer_breaks_the_promise_of_none() -> None:
    story = Story()
    promise = NoError("no error", ALL)
    story.write("java-1")
    assert judge(story.history(), (promise,), About("x")).judged[1].kept
    story.write("java-1", outcome=Outcome.UNKNOWN)
    assert not judge(story.history(), (promise,), About("x")).judged[1].kept


def test_promise_of_no_error_needs_writes() -> None:
    story = Story()
    assert not judge(story.history(), (NoError("no error", ALL),), About("x")).judged[1].kept


def test_successes_are_counted_while_the_history_grows(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    successes = Successes(path)
    assert successes.count() == 0
    path.write_bytes(b'{"op":"write","outcome":"unknown"}\n{"op":"write","outcome":"ok"}\n{"op":"re')
    assert successes.count() == 1
    with path.open("ab") as file:
        file.write(b'ad","offset":1}\n')
    assert successes.count() == 2


def test_sites_have_as_many_brokers_as_asked_for_and_never_fewer_than_the_story_needs() -> None:
    size = scenario("switchover-and-back").with_brokers(3).size
    assert (size.brokers, size.standby_brokers, size.controllers) == (3, 3, 1)
    with pytest.raises(UsageError, match="needs 3 brokers a site"):
        scenario("broker-dies").with_brokers(2)


@pytest.mark.parametrize(("name", "kept"), [("agent-hangs", False), ("site-wakes", True)])
def test_drill_of_a_hanging_agent_shows_nothing_where_the_old_site_acknowledged_nothing(
    name: str, kept: bool
) -> None:
    story = Story()
    story.write()
    (promise,) = (
        one for one in scenario(name).promises if isinstance(one, Listed) and one.kinds == NOT_TWO.kinds
    )
    told = judge(story.history(), (promise,), About("x")).judged[1]
    assert (told.kept, told.measured) == (kept, "0 listed")


@pytest.mark.parametrize("acks", ["all", "twin"])
def test_error_of_a_writer_at_each_level_breaks_the_drill_of_brokers(acks: str) -> None:
    story = Story()
    for level in ("all", "twin"):
        story.write(f"c-{level}", acks=level, outcome=Outcome.UNKNOWN if level == acks else Outcome.OK)
        story.write(f"c-{level}", acks=level)
    story.read()
    promises = [one for one in scenario("broker-dies").promises if isinstance(one, NoError)]
    told = judge(story.history(), promises, About("x")).judged[1:-1]
    assert [one.kept for one in told] == [acks != "all", acks != "twin"]
