"""Promises held against histories: what passes, what fails, and the figures."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.unit.drills.story import TOPIC, Story
from twinlog.drills.finding import LOSSES, Kind
from twinlog.drills.history import Event, Happening, History, Operation, Outcome, Read, Write
from twinlog.drills.promises import (
    ALWAYS,
    WITHOUT_FAILOVER,
    AtMost,
    Back,
    Listed,
    LostWithinLag,
    Promise,
    Within,
)
from twinlog.drills.verdict import LOAD_WAS_THERE, NOTHING_ELSE, About, Verdict, judge

ALL, TWIN = frozenset({"all"}), frozenset({"twin"})


def verdict(history: History, *promises: Promise) -> Verdict:
    return judge(history, promises, About("site-dies", seed=5, versions={"kafka": "4.3.1"}))


def broken(history: History, *promises: Promise) -> list[str]:
    """What was promised and not kept."""
    return [one.says for one in verdict(history, *promises).judged if not one.kept]


def both_levels() -> Story:
    story = Story()
    story.write(acks="twin")
    story.write()
    return story


def test_clean_history_keeps_all_promises() -> None:
    story = both_levels()
    story.read()
    assert broken(story.history(), *ALWAYS, *WITHOUT_FAILOVER) == []
    assert verdict(story.history()).word == "pass"


def test_finding_that_no_promise_speaks_of_breaks_the_drill() -> None:
    story = both_levels()
    history = story.with_value_at(2, "ghost")
    assert broken(history) == [NOTHING_ELSE]
    assert broken(history, Listed("strangers", frozenset({Kind.PHANTOM}))) == []


def test_documented_retry_and_lost_write_without_acks_break_nothing() -> None:
    story = both_levels()
    story.write("rd", key=1, acks="0")
    story.write("rd", key=1, acks="0", idempotent=False, outcome=Outcome.UNKNOWN)
    history = story.with_value_at(0, "rd:1", partition=1)
    assert {one.kind for one in verdict(history).findings} == {Kind.LOST, Kind.REPEATED}
    assert broken(history) == []


@pytest.mark.parametrize("promise", [AtMost("x", LOSSES, TWIN), LostWithinLag("x", TWIN), Within("x", 5.0)])
def test_promise_without_evidence_is_not_kept(promise: Promise) -> None:
    story = Story()
    story.write()
    assert broken(story.history(), promise) == ["x"]


def test_drill_without_load_fails() -> None:
    assert broken(Story().history()) == [LOAD_WAS_THERE]
    assert broken(History()) == [LOAD_WAS_THERE]


def test_at_most_counts_its_own_levels_only() -> None:
    story = both_levels()
    history = story.without("java-1:1")
    assert broken(history, AtMost("none", LOSSES, ALL)) == ["none"]
    assert broken(history, AtMost("one", LOSSES, ALL, most=1)) == []
    assert broken(history, AtMost("none", LOSSES, TWIN)) == [NOTHING_ELSE]


def failed_over() -> Story:
    """Two writes at each level, then one that is lost, then a failover and two more."""
    story = both_levels()
    story.tick(1.0)
    story.write("java-1", mirrored=False)
    story.failover()
    story.tick(1.0)
    story.write(acks="twin")
    story.write()
    return story


def test_losses_within_the_lag_that_were_salvaged_are_allowed() -> None:
    within = LostWithinLag("within the lag", ALL)
    history = failed_over().history()
    assert broken(history, within) == []
    judged = verdict(history, within).judged[1]
    assert judged.measured == "1 lost, 1 of them salvaged"
    assert [finding.value for finding in judged.findings] == ["java-1:2"]


def test_loss_that_was_not_salvaged_breaks_the_promise_unless_the_site_stays_away() -> None:
    history = replace(failed_over().history(), salvaged=())
    assert broken(history, LostWithinLag("within", ALL)) == ["within"]
    assert broken(history, LostWithinLag("within", ALL, salvaged=False)) == []


def test_loss_below_the_promotion_point_breaks_the_promise() -> None:
    story = failed_over()
    history = story.without("java-1:1")
    judged = verdict(history, LostWithinLag("within", ALL, salvaged=False)).judged[1]
    assert not judged.kept
    assert [finding.value for finding in judged.findings] == ["java-1:1"]


@pytest.mark.parametrize(("age_s", "is_kept"), [(1.45, True), (1.55, False)])
def test_loss_older_than_the_measured_lag_breaks_the_promise(age_s: float, is_kept: bool) -> None:
    history = failed_over().history()
    fault_s = next(event.time_s for event in history.events if event.what is Happening.FAULT)
    lag = Event(Happening.LAG, fault_s - 0.1, "lag", {"records": 3, "seconds": 0.4})
    events = tuple(lag if event.what is Happening.LAG else event for event in history.events)
    writes = tuple(
        replace(write, start_s=fault_s - age_s - 0.1, end_s=fault_s - age_s)
        if write.value == "java-1:2"
        else write
        for write in history.writes
    )
    # 0.4 s of lag, 0.1 s since it was sampled, a margin of a second.
    aged = replace(history, writes=writes, events=events)
    assert (broken(aged, LostWithinLag("within", ALL)) == []) is is_kept


def test_loss_is_held_against_the_promotion_point_of_its_own_failover() -> None:
    story = failed_over()
    for _ in range(3):
        story.write()
    story.read()
    story.failover()
    story.write()
    history = story.without("java-1:5")  # mirrored, and far behind the first promotion point
    judged = verdict(history, LostWithinLag("within", ALL, salvaged=False)).judged[1]
    assert [finding.value for finding in judged.findings] == ["java-1:5"]
    assert not judged.kept


def test_loss_acknowledged_by_the_old_site_after_the_move_has_no_age() -> None:
    story = failed_over()
    late = Write("late", "java", "all", True, TOPIC, "late:0", Outcome.OK, story.now_s, story.now_s + 0.01)
    story.told.append(replace(late, site="a", partition=0, offset=50))
    story.tick(30.0)
    story.failover()
    told = verdict(story.history(), LostWithinLag("within", ALL, salvaged=False))
    assert told.judged[1].kept
    assert {finding.kind for finding in told.findings} == {Kind.SALVAGED, Kind.LOST, Kind.STALE}
    assert told.figures.levels[0].rpo_s == verdict(failed_over().history()).figures.levels[0].rpo_s


def test_rpo_is_the_age_of_the_oldest_lost_write_at_the_fault() -> None:
    history = failed_over().history()
    (all_, twin) = verdict(history).figures.levels
    fault_s = next(event.time_s for event in history.events if event.what is Happening.FAULT)
    lost = next(write for write in history.writes if write.value == "java-1:2")
    assert lost.end_s is not None
    assert (all_.acks, all_.lost, all_.salvaged) == ("all", 1, 1)
    assert all_.rpo_s == pytest.approx(fault_s - lost.end_s)
    assert (twin.acks, twin.lost, twin.rpo_s) == ("twin", 0, 0.0)


@pytest.mark.parametrize(("faults", "is_known"), [(1, True), (2, False)])
def test_rpo_is_unknown_when_any_of_several_faults_may_have_lost_the_write(
    faults: int, is_known: bool
) -> None:
    story = Story()
    story.write()
    for number in range(faults):
        story.event(Happening.FAULT, "a broker is killed", fault=f"{number}", site="a")
        story.tick(5.0)
        story.write()
    level = verdict(story.without("java-1:0")).figures.levels[0]
    assert level.lost == 1
    assert (level.rpo_s is not None) is is_known


def timed(acks_at: list[float], *events: Operation, client: str = "c") -> History:
    """A client whose writes are acknowledged at these times, by a until 10 and by b after that."""
    writes = [
        Write(
            client,
            "java",
            "all",
            True,
            TOPIC,
            f"{client}:{number}",
            Outcome.OK,
            at,
            at,
            site="a" if at < 10 else "b",
        )
        for number, at in enumerate(acks_at)
    ]
    opened = Event(Happening.OPENED, 1.0, "a", {"site": "a", "planned": True})
    return History.of([opened, *writes, *events])


FAULT = Event(Happening.FAULT, 10.0, "site killed", {"fault": "kill", "site": "a"})
DETECTED = Event(Happening.DETECTED, 12.0, "a is lost")
OPENED = Event(Happening.OPENED, 15.0, "b opened", {"site": "b"})


def test_rto_is_counted_from_the_fault_to_the_first_write_at_the_site_that_opened() -> None:
    figures = verdict(timed([8.0, 9.5, 16.5, 17.0], FAULT, DETECTED, OPENED)).figures
    (one,) = figures.disturbances
    assert (one.detected_s, one.opened_s, one.site, one.planned) == (12.0, 15.0, "b", False)
    (client,) = figures.clients
    assert client.rto_s == pytest.approx(6.5)
    assert client.passages[0].outage_s == pytest.approx(7.0)
    assert client.longest_pause_s == figures.longest_pause_s == pytest.approx(7.0)


def test_planned_move_is_counted_from_the_fence() -> None:
    fenced = Event(Happening.FENCED, 11.0, "fenced a", {"site": "a"})
    opened = replace(OPENED, data={"site": "b", "planned": True})
    figures = verdict(timed([8.0, 9.0, 16.0], fenced, opened)).figures
    assert [one.text for one in figures.disturbances] == ["switchover to b"]
    assert figures.clients[0].rto_s == pytest.approx(5.0)


def test_failover_belongs_to_the_fault_at_the_active_even_if_others_came_later() -> None:
    later = Event(Happening.FAULT, 11.0, "manager killed", {"fault": "manager"})
    moves = [
        (one.text, one.opened_s)
        for one in verdict(timed([9.0, 16.0], FAULT, later, OPENED)).figures.disturbances
    ]
    assert moves == [("site killed", 15.0), ("manager killed", None)]


def test_acknowledgement_of_the_old_site_is_not_the_first_one_at_the_new() -> None:
    history = timed([8.0, 9.5, 15.5, 16.5], FAULT, OPENED)
    writes = tuple(replace(one, site="a") if one.end_s == 15.5 else one for one in history.writes)
    (client,) = verdict(replace(history, writes=writes)).figures.clients
    assert client.rto_s == pytest.approx(6.5)


def test_outage_counts_for_the_disturbance_that_it_began_with() -> None:
    later = Event(Happening.FAULT, 20.0, "broker killed", {"fault": "broker"})
    (client,) = verdict(timed([9.0, 12.0, 14.0, 17.0, 19.5, 25.0, 26.0], FAULT, later)).figures.clients
    assert [passage.outage_s for passage in client.passages] == [3.0, 5.5]


def test_failover_without_a_fault_begins_with_its_fence() -> None:
    fenced = Event(Happening.FENCED, 11.0, "fenced a", {"site": "a"})
    (one,) = verdict(timed([8.0, 9.0, 16.0], fenced, OPENED)).figures.disturbances
    assert (one.text, one.began_s, one.planned) == ("failover to b", 11.0, False)


def test_fault_without_a_move_is_the_longest_pause_across_it() -> None:
    fault = replace(FAULT, text="broker killed")
    (client,) = verdict(timed([8.0, 9.0, 10.1, 10.2, 13.2, 13.3], fault)).figures.clients
    assert client.rto_s == pytest.approx(3.0)


def test_client_that_falls_silent_while_others_go_on_is_out_until_the_end() -> None:
    silent = timed([8.0, 9.0, 10.1], FAULT, client="silent")
    others = timed([8.0, 9.0, 10.1, 20.0, 30.0, 40.0], client="busy")
    history = replace(silent, writes=silent.writes + others.writes)
    rto = {client.name: client.rto_s for client in verdict(history).figures.clients}
    assert rto["silent"] == pytest.approx(29.9)
    stopped = Event(Happening.STOPPED, 10.5, "stopped", {"client": "silent"})
    history = replace(history, events=(*history.events, stopped))
    rto = {client.name: client.rto_s for client in verdict(history).figures.clients}
    assert rto["silent"] == pytest.approx(1.1)


def test_client_that_never_writes_at_the_other_site_breaks_every_limit() -> None:
    silent = timed([8.0, 9.0], FAULT, OPENED, client="silent")
    others = timed([8.0, 9.0, 16.0], client="busy")
    history = replace(silent, writes=silent.writes + others.writes)
    judged = verdict(history, Within("back", 1e9)).judged[1]
    assert (judged.kept, judged.measured) == (False, "never again: silent")
    assert verdict(history).as_json()["rto_s"] == {"busy": 6.0, "silent": None}


@pytest.mark.parametrize(("at", "is_kept"), [(16.0, False), (21.0, True)])
def test_client_that_does_nothing_after_the_last_healing_is_not_back(at: float, is_kept: bool) -> None:
    """Also if it did something between the fault and that."""
    healed = Event(Happening.HEALED, 20.0, "site returned", {"fault": "kill"})
    stuck = timed([8.0, 9.0, at], FAULT, OPENED, healed, client="stuck")
    others = timed([8.0, 9.0, 22.0], client="busy")
    history = replace(stuck, writes=stuck.writes + others.writes)
    judged = verdict(history, Back("back")).judged[1]
    assert (judged.kept, judged.measured) == (is_kept, "all of them" if is_kept else "never again: stuck")


def test_members_of_a_group_are_timed_together() -> None:
    history = timed([8.0, 9.0, 16.0], FAULT, OPENED)
    reads = tuple(
        Read(member, "stock", TOPIC, 0, number, f"c:{number}", at)
        for number, (member, at) in enumerate([("one", 8.5), ("two", 9.5), ("two", 16.25)])
    )
    figures = verdict(replace(history, reads=reads)).figures
    assert {client.name: client.rto_s for client in figures.clients} == {"c": 6.0, "group stock": 6.25}


@pytest.mark.parametrize(
    ("most_s", "median_s", "by_outage", "is_kept"),
    [(6.5, None, False, True), (6.4, None, False, False), (6.5, 6.0, False, False), (6.9, None, True, False)],
)
def test_limits_of_time_hold_for_the_slowest_and_for_the_median(
    most_s: float, median_s: float | None, by_outage: bool, is_kept: bool
) -> None:
    history = timed([8.0, 9.5, 16.5], FAULT, OPENED)
    promise = Within("back", most_s, median_s, by_outage=by_outage)
    assert verdict(history, promise).judged[1].kept is is_kept


def test_json_has_the_verdict_the_numbers_and_every_finding() -> None:
    told = verdict(failed_over().history(), *ALWAYS).as_json()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert (told["drill"], told["verdict"], told["seed"]) == ("site-dies", "fail", 5)
    assert (told["lost"], told["salvaged"], told["duplicated"], told["repeated"]) == (1, 1, 0, 0)
    assert set(told["rto_s"]) == {"java-1"}
    assert told["acks"]["all"]["lost"] == 1
    assert [one["value"] for one in told["findings"]] == ["java-1:2"]
    assert [one["kept"] for one in told["promises"]].count(False) == 1
    assert told["disturbances"][0]["detected_s"] == pytest.approx(2.01)


def test_json_has_the_lag_and_the_rates_of_the_timeline_and_what_events_carry() -> None:
    story = both_levels()
    story.event(Happening.LAG, records=7, seconds=0.25)
    story.event(Happening.LAG, records=None, seconds=None)
    story.switchover()
    story.tick(5.0)
    story.write()
    told = json.loads(json.dumps(verdict(story.history()).as_json()))
    assert [(one["records"], one["seconds"]) for one in told["timeline"]["lag"]] == [(7, 0.25), (None, None)]
    assert told["timeline"]["every_s"] == 1.0
    rates = told["timeline"]["writes_per_s"]
    assert {site: sum(row) for site, row in rates.items()} == {"a": 2.0, "b": 1.0}
    assert [place for place, rate in enumerate(rates["b"]) if rate] == [5]
    assert "lag" not in {one["what"] for one in told["events"]}
    opened = [one["data"] for one in told["events"] if one["what"] == "opened"]
    assert opened[-1] == {"site": "b", "planned": True}


def paced(seconds: float, story: Story) -> None:
    """A write every tenth of a second."""
    for _ in range(int(seconds * 10)):
        story.write()
        story.tick(0.08)


def test_load_is_measured_where_nothing_is_disturbed_and_writers_are_back() -> None:
    story = Story()
    paced(10.0, story)
    story.event(Happening.FAULT, "a broker killed", fault="x", site="a")
    story.tick(20.0)
    for _ in range(500):  # what had to wait
        story.write()
    story.event(Happening.HEALED, "a broker killed: healed", fault="x")
    story.tick(1.0)
    paced(10.0, story)
    told = verdict(story.history())
    assert told.figures.load_per_s == pytest.approx(10.0, rel=0.05)
    assert told.as_json()["load_per_s"] == pytest.approx(10.0, rel=0.05)


def test_load_of_a_drill_that_was_disturbed_all_the_time_is_not_known() -> None:
    story = Story()
    story.write()
    story.event(Happening.FAULT, "a broker killed", fault="x", site="a")
    paced(10.0, story)
    assert verdict(story.history()).as_json()["load_per_s"] is None


def test_promise_about_time_has_its_numbers_in_the_json() -> None:
    story = both_levels()
    story.switchover()
    story.tick(3.0)
    story.write()
    story.write(acks="twin")
    told = verdict(story.history(), Within("back", 8.0), AtMost("lost", LOSSES)).as_json()["promises"]
    back, lost = (one for one in told if one["says"] in ("back", "lost"))
    assert 3.0 < back["median_s"] <= back["most_s"] < 4.0
    assert lost["most_s"] is None
