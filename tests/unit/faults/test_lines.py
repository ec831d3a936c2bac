"""Two printed logs, and each way in which they can differ."""

from __future__ import annotations

import pytest

from tests.faults.lines import Log, Place, against_acknowledged, compare, parse, value_of, without

CROWD = Place("crowd", 0)


def line(offset: int, name: str, *, time: int = 5, key: str = "k", partition: int = 0) -> str:
    return f"CreateTime:{time}\tPartition:{partition}\tOffset:{offset}\tn:1\t{key}\t{value_of('crowd', name)}"


def log(*printed: str) -> Log:
    return parse(printed)


HERE = log(line(0, "w:0"), line(1, "w:1"), line(4, "w:2"))


def test_lines_are_sorted_by_topic_and_partition() -> None:
    found = log(line(3, "w:0"), "LogAppendTime:9\tPartition:2\tOffset:0\tNO_HEADERS\tnull\tspread|x:1")
    assert found.keys() == {CROWD, Place("spread", 2)}
    assert found[CROWD][0].offset == 3
    assert found[Place("spread", 2)][0].value == "spread|x:1"


def test_lines_that_are_no_records_are_left_out() -> None:
    assert log("[2024-01-02] ERROR no record came for a while", line(0, "w:0"), "") == log(line(0, "w:0"))


def test_equal_logs_have_no_differences() -> None:
    assert compare(HERE, log(line(0, "w:0"), line(1, "w:1"), line(4, "w:2"))) == []


@pytest.mark.parametrize(
    ("there", "kind"),
    [
        (log(line(0, "w:0"), line(4, "w:2")), "lost: crowd|w:1 of offset 1"),
        (log(line(0, "w:0"), line(1, "w:1"), line(3, "w:2")), "shifted: crowd|w:2 of offset 4 is at [3]"),
        (log(line(0, "w:0"), line(1, "w:1"), line(2, "w:1"), line(4, "w:2")), "repeated: crowd|w:1"),
        (log(line(1, "w:1"), line(0, "w:0"), line(4, "w:2")), "reordered: offset 0 came behind 1"),
        (log(line(0, "w:0"), line(1, "w:1"), line(2, "w:9"), line(4, "w:2")), "foreign: crowd|w:9"),
        (log(line(0, "w:0"), line(1, "w:1", time=6), line(4, "w:2")), "changed at offset 1"),
        (log(line(0, "w:0"), line(1, "w:1", key="j"), line(4, "w:2")), "changed at offset 1"),
        ({}, "lost: crowd|w:0 of offset 0"),
    ],
)
def test_each_difference_is_named(there: Log, kind: str) -> None:
    assert any(kind in found for found in compare(HERE, there))


def test_what_the_other_log_lacks_is_left() -> None:
    assert without(HERE, log(line(0, "w:0"), line(4, "w:2"))) == {CROWD: [HERE[CROWD][1]]}
    assert without(HERE, HERE) == {}


def test_acknowledged_write_must_stand_where_it_was_acknowledged() -> None:
    told = {"crowd|w:0": ("crowd", 0, 0), "crowd|w:1": ("crowd", 0, 2), "crowd|old:7": ("crowd", 0, 0)}
    assert against_acknowledged(HERE, told, {CROWD: 1}) == [
        "crowd-0: acknowledged: crowd|w:1 at offset 2, where nothing stands"
    ]
    assert len(against_acknowledged(HERE, told, {})) == 2
