"""Promises that need more than a count: no error, a measured lag, each way, a read of both logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.unit.drills.story import GROUP, TOPIC, Story
from twinlog.drills.finding import LOSSES, Kind
from twinlog.drills.history import (
    Commit,
    Event,
    Happening,
    History,
    Operation,
    Outcome,
    Read,
    Step,
    Transaction,
    Write,
)
from twinlog.drills.promises import (
    ALWAYS,
    NOT_TWO,
    AtMost,
    Judged,
    LostWithinLag,
    NoError,
    Promise,
    Shown,
    Within,
)
from twinlog.drills.scenarios import SCENARIOS
from twinlog.drills.verdict import STORY_ENDED, About, judge

ALL = frozenset({"all"})
WRITERS, CLIENTS = NoError("none", ALL), NoError("none", ALL, groups=True)


def judged(history: History, promise: Promise) -> Judged:
    return judge(history, (promise,), About("x")).judged[1]


def worked(*more: Operation) -> History:
    """A bus that works, with more told about it."""
    story = Story()
    story.write()
    story.transaction("t1", [0])
    story.transaction("t2", [0], Step.ABORT)
    story.read()
    story.told += more
    return story.history()


def commit(outcome: Outcome, error: str = "") -> Commit:
    return Commit("reader", GROUP, TOPIC, 0, 1, 2000.0, outcome, error)


def step(what: Step, error: str) -> Transaction:
    return Transaction("tx", "t9", what, Outcome.UNKNOWN, 2000.0, error)


def test_bus_that_works_keeps_the_promise_of_no_error() -> None:
    assert judged(worked(), WRITERS).kept
    assert (judged(worked(), CLIENTS).kept, judged(worked(), CLIENTS).measured) == (True, "0")


@pytest.mark.parametrize("what", [Step.COMMIT, Step.ABORT])
def test_transaction_that_its_library_gave_up_is_an_error(what: Step) -> None:
    told = judged(worked(step(what, "fenced")), WRITERS)
    assert (told.kept, told.measured) == (False, f"1, first {what} of t9 (fenced)")


def test_transaction_that_its_library_would_have_tried_again_is_no_error() -> None:
    assert judged(worked(step(Step.COMMIT, "")), WRITERS).kept


def test_transaction_of_writers_of_another_level_is_not_counted() -> None:
    assert judged(worked(step(Step.COMMIT, "fenced")), NoError("none", frozenset({"twin"}))).measured == "0"


@pytest.mark.parametrize(
    ("told", "first"),
    [
        (
            Event(Happening.ERROR, 2000.0, "rd-group was told: no", {"client": "rd-group"}),
            "rd-group was told: no",
        ),
        (commit(Outcome.UNKNOWN, "no right"), f"commit of group {GROUP} (no right)"),
    ],
)
def test_error_that_reached_a_group_breaks_the_promise_to_clients_alone(told: Operation, first: str) -> None:
    assert judged(worked(told), WRITERS).kept
    broken = judged(worked(told), CLIENTS)
    assert (broken.kept, broken.measured) == (False, f"1, first {first}")


def test_commit_that_the_next_one_makes_good_is_told_and_is_no_error() -> None:
    told = judged(worked(commit(Outcome.UNKNOWN)), CLIENTS)
    assert (told.kept, told.measured) == (True, "0; 1 commits were left to the next one")


def test_promise_to_groups_without_a_group_is_not_kept() -> None:
    story = Story()
    story.write()
    assert not judged(story.history(), CLIENTS).kept


def lost_with(*samples: float | None, opened_anew: bool = False) -> Judged:
    """A write that is lost with its site half a second after it, with the lag as it was measured before."""
    story = Story()
    for seconds in samples:
        story.event(Happening.LAG, records=3, seconds=seconds)
    if opened_anew:
        story.switchover()
    story.write(mirrored=False)
    story.tick(0.5)
    story.event(Happening.LAG, records=3, seconds=None)
    story.failover()
    story.write()
    told = story.history()
    events = tuple(one for one in told.events if one.data.get("seconds") != 3600.0)
    return judged(replace(told, events=events), LostWithinLag("within", ALL))


def test_lag_that_nobody_measured_excuses_no_loss() -> None:
    assert not lost_with().kept
    assert not lost_with(None).kept


def test_lag_that_was_measured_once_grows_until_the_fault() -> None:
    assert lost_with(0.0).kept
    assert lost_with(0.0, None).kept


def test_lag_of_the_other_direction_says_nothing() -> None:
    assert not lost_with(9.0, opened_anew=True).kept


@pytest.mark.parametrize("client", ["rd-idempotent", "java-1"])
def test_client_that_has_lost_nothing_has_not_shown_how_it_fares_with_a_loss(client: str) -> None:
    story = Story()
    story.write(client, mirrored=False)
    story.failover()
    story.write("rd-idempotent")
    told = judged(story.history(), Shown("lacked", LOSSES, "rd-idempotent"))
    lost = client == "rd-idempotent"
    assert (told.kept, told.measured) == (lost, str(int(lost)))


def moves(*outages_s: float) -> History:
    """A writer that writes every second, but for so long at each switchover to b, to a, to b and so on."""
    told: list[Operation] = [Event(Happening.OPENED, 1.0, "a", {"site": "a", "planned": True})]
    times = [float(second) for second in range(2, 60 * (len(outages_s) + 1))]
    for number, outage_s in enumerate(outages_s, start=1):
        fenced_s, site = 60.0 * number, "ab"[number % 2]
        told += [
            Event(Happening.FENCED, fenced_s, "fenced", {}),
            Event(Happening.OPENED, fenced_s + 0.5, site, {"site": site, "planned": True}),
        ]
        times = [at for at in times if not fenced_s - 1.0 < at < fenced_s - 1.0 + outage_s]
    writes = [
        Write("c", "java", "all", True, TOPIC, f"c:{number}", Outcome.OK, at, at)
        for number, at in enumerate(times)
    ]
    return History.of([*told, *writes])


def test_half_of_the_moves_of_one_way_do_not_hide_the_other_way() -> None:
    told = moves(2.0, 7.0, 2.0, 7.0, 2.0, 7.0, 2.0)
    both = Within("both", 10.0, 5.0, by_outage=True)
    assert judged(told, both).kept
    assert judged(told, replace(both, to="b")).measured == "at most 2.00 s (c), median 2.00 s"
    back = judged(told, replace(both, to="a"))
    assert (back.kept, back.measured) == (False, "at most 7.00 s (c), median 7.00 s")


def test_way_that_nobody_went_keeps_no_promise() -> None:
    assert not judged(moves(2.0), Within("x", 10.0, by_outage=True, to="a")).kept


def test_time_limit_may_be_about_some_clients_alone() -> None:
    assert judged(moves(2.0), Within("x", 10.0, by_outage=True, only=frozenset({"c"}))).kept
    assert not judged(moves(2.0), Within("x", 10.0, by_outage=True, only=frozenset({"d"}))).kept


def test_switchover_promises_a_time_each_way_and_to_every_client() -> None:
    timed = [one for one in SCENARIOS["switchover-and-back"].promises if isinstance(one, Within)]
    assert [one.to for one in timed if one.median_s is not None] == ["b", "a"] * 2
    assert len({one.says for one in timed}) == len(timed)
    clients = SCENARIOS["switchover-and-back"].clients
    spoken_of = {
        client.name
        for client in clients
        for one in timed
        if client.writes is (one.does == "writes")
        and (one.acks is None or client.acks in one.acks)
        and (one.only is None or client.figure in one.only)
        and client.figure not in one.apart
    }
    assert spoken_of == {client.name for client in clients}


def unread(history: History, *sites: str) -> History:
    """The history without the last read of some sites."""
    finals = tuple(one for one in history.finals if one.site not in sites)
    events = [Event(Happening.UNREAD, 2000.0, "no answer", {"site": site}) for site in sites]
    return replace(history, finals=finals, events=(*history.events, *events))


@pytest.mark.parametrize("sites", [("a",), ("b",), ("a", "b")])
def test_log_that_could_not_be_read_keeps_no_promise_about_records_and_proves_no_loss(
    sites: Sequence[str],
) -> None:
    history = unread(worked(), *sites)
    found = judge(history, (), About("x")).findings
    assert [(one.kind, one.what.split()[0]) for one in found] == [(Kind.NOT_READ, site) for site in sites]
    for promise in (
        AtMost("lost", LOSSES),
        AtMost("same", frozenset({Kind.DIVERGED})),
        LostWithinLag("x", ALL),
    ):
        told = judged(history, promise)
        assert (told.kept, told.measured) == (
            False,
            f"unknown: the last read of {' and '.join(sites)} failed",
        )
    assert judged(history, NOT_TWO).kept
    assert (judge(history, (), About("x")).as_json()["lost"] is None) is ("a" in sites)


def test_history_that_does_not_say_what_was_to_be_read_keeps_no_promise_about_records() -> None:
    history = worked()
    silent = replace(
        history, events=tuple(one for one in history.events if one.what is not Happening.LAST_READ)
    )
    told = judged(silent, AtMost("same", frozenset({Kind.DIVERGED})))
    assert not told.kept and told.measured.startswith("unknown: nobody wrote down")


def test_story_that_was_cut_short_fails_with_its_reason_whatever_was_kept() -> None:
    history = worked()
    assert judge(history, (), About("x")).passed
    told = judge(history, ALWAYS[1:], About("x"), "the manager did not answer")
    assert not told.passed
    assert [(one.says, one.measured) for one in told.judged if not one.kept] == [
        (STORY_ENDED, "the manager did not answer")
    ]
    assert (told.as_json()["verdict"], told.as_json()["cut_short"]) == ("fail", "the manager did not answer")
    assert judge(history, (), About("x")).as_json()["cut_short"] is None


def test_reader_that_was_read_by_nobody_else_counts_as_a_group() -> None:
    """Reads without a group are no group's."""
    story = Story()
    story.write()
    story.told.append(Read("lone", None, TOPIC, 0, 0, "java-1:0", story.tick()))
    assert judged(story.history(), CLIENTS).measured == "no group was there to see it"
