"""Reads at a site that is not the active any more: told by the record, as no reader can."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.drills.story import found
from twinlog.drills.finding import Kind
from twinlog.drills.history import (
    Event,
    Final,
    Happening,
    History,
    Operation,
    Outcome,
    Read,
    Salvaged,
    Write,
)
from twinlog.drills.index import Index
from twinlog.drills.progress import LONGEST_HELD_S
from twinlog.drills.verdict import About, judge

OPENED_S = 100.0
OLD = Write("rd", "librdkafka", "all", True, "orders", "rd:0", Outcome.UNKNOWN, 90.0, 95.0)
NEW = replace(OLD, value="rd:1", outcome=Outcome.OK, start_s=101.0, end_s=101.1, partition=0, offset=3)
LATE = Read("rd-group", "group", "orders", 0, 3, "rd:0", OPENED_S + 2.0)
MOVED = Read("rd-group", "group", "orders", 0, 3, "rd:1", OPENED_S + 1.5)


def history(*told: Operation, salvaged: bool = True) -> History:
    """Site a was lost with rd:0 at offset 3, where b has rd:1; b opened at 100 s."""
    world: list[Operation] = [
        Event(Happening.OPENED, 1.0, "a is active", {"site": "a", "planned": True}),
        Event(Happening.OPENED, OPENED_S, "b is active", {"site": "b", "planned": False}),
        NEW,
        *(Final(site, "orders", 0, 3, "rd:1", 0) for site in ("a", "b")),
    ]
    kept = [Salvaged("a", "orders", 0, 3, "rd:0")] if salvaged else []
    return History.of([*world, *kept, *told])


def kinds(told: History) -> list[Kind]:
    return [one.kind for one in found(told)]


@pytest.mark.parametrize(
    ("start_s", "end_s", "is_stale"),
    [(0.5, 0.6, True), (-1.0, 0.6, False), (-1.0, 1.5, False), (None, 1.5, True), (None, 0.6, False)],
)
def test_record_that_only_the_old_site_had_is_stale_if_it_was_written_after_the_other_opened(
    start_s: float | None, end_s: float, is_stale: bool
) -> None:
    write = replace(OLD, start_s=None if start_s is None else OPENED_S + start_s, end_s=OPENED_S + end_s)
    told = history(write, LATE)
    assert kinds(told) == [Kind.STALE if is_stale else Kind.HELD]
    (finding,) = found(told)
    assert (finding.value, finding.position) == ("rd:0", ("orders", 0, 3))
    assert "2.000 s after b had opened" in finding.what


def test_record_of_the_old_site_after_one_of_the_new_is_stale() -> None:
    assert kinds(history(OLD, MOVED, LATE)) == [Kind.STALE]
    # Another partition may still hand out what it had fetched, and so may another reader.
    assert kinds(history(OLD, replace(MOVED, partition=1), LATE)) == [Kind.HELD]
    assert kinds(history(OLD, replace(MOVED, client="java-new", group="other"), LATE)) == [Kind.HELD]


def test_record_of_the_old_site_that_nobody_can_have_held_so_long_is_stale() -> None:
    late = replace(LATE, time_s=OPENED_S + LONGEST_HELD_S + 0.1)
    assert kinds(history(OLD, late)) == [Kind.STALE]


def test_record_of_the_old_site_before_the_other_opened_is_nothing() -> None:
    assert kinds(history(OLD, replace(LATE, time_s=OPENED_S - 1))) == []


def test_record_that_was_written_again_is_told_by_its_place() -> None:
    again = Final("b", "orders", 0, 9, "rd:0", 0), Final("a", "orders", 0, 9, "rd:0", 0)
    index = Index(history(OLD, *again))
    assert index.site_of_read(LATE) == "a"
    assert index.site_of_read(replace(LATE, offset=9)) is None


def test_site_of_a_read_is_what_its_reader_says_or_the_only_one_that_has_the_record() -> None:
    index = Index(history(Final("a", "orders", 0, 4, "rd:0", 0), salvaged=False))
    assert index.site_of_read(replace(LATE, site="b")) == "b"
    assert index.site_of_read(replace(LATE, offset=4)) == "a"
    assert index.site_of_read(LATE) is None
    assert index.site_of_read(MOVED) is None


def test_salvage_of_a_site_that_nobody_can_name_tells_nothing() -> None:
    told = history(OLD, LATE, Salvaged("", "orders", 0, 3, "rd:0"), salvaged=False)
    assert kinds(told) == []


def test_record_that_a_consumer_may_have_held_is_listed_and_breaks_nothing() -> None:
    told = judge(history(OLD, LATE), (), About("x"))
    assert told.passed
    assert told.as_json()["findings"][0]["kind"] == "handed out late"


def test_first_record_at_the_new_site_is_none_of_the_old_one() -> None:
    """The time that a group was away ends with a record that the old site cannot have given it."""
    fault = Event(Happening.FAULT, 99.0, "a killed", {"fault": "1", "site": "a"})
    reads = [
        Read("rd-group", "group", "orders", 0, 2, "rd:9", 98.0),
        LATE,
        replace(MOVED, time_s=OPENED_S + 5.0),
    ]
    figures = judge(history(OLD, fault, *reads), (), About("x")).figures
    (group,) = (one for one in figures.clients if one.name == "group group")
    assert group.rto_s == pytest.approx(6.0)
