"""Moves that librdkafka may undo."""

from __future__ import annotations

from twinlog.wire.seeking import AGAIN_S, Seeking

PLACE, OTHER = ("orders", 0), ("orders", 1)


def test_a_move_holds_when_the_wanted_record_comes() -> None:
    seeking = Seeking()
    seeking.note({PLACE: 7}, now=0.0)
    assert seeking and seeking.judge({OTHER: 3}) == {}
    assert seeking.judge({PLACE: 7}) == {}
    assert not seeking and seeking.due(100.0) == {}


def test_a_move_that_was_undone_is_repeated_once_and_then_believed() -> None:
    seeking = Seeking()
    seeking.note({PLACE: 7}, now=0.0)
    assert seeking.judge({PLACE: 0, OTHER: 5}) == {PLACE: 7}
    assert seeking.judge({PLACE: 9}) == {}  # 7 and 8 hold no record
    assert not seeking


def test_a_move_is_repeated_every_second_while_nothing_comes() -> None:
    seeking = Seeking()
    seeking.note({PLACE: 7}, now=0.0)
    assert seeking.due(AGAIN_S / 2) == {}
    assert seeking.due(AGAIN_S) == {PLACE: 7}
    assert seeking.due(AGAIN_S) == {}
    assert seeking.due(2 * AGAIN_S) == {PLACE: 7}


def test_a_partition_that_is_lost_has_no_moves() -> None:
    seeking = Seeking()
    seeking.note({PLACE: 7, OTHER: 3}, now=0.0)
    seeking.forget([PLACE])
    assert seeking.due(AGAIN_S) == {OTHER: 3}


def test_a_second_move_counts_alone() -> None:
    seeking = Seeking()
    seeking.note({PLACE: 7}, now=0.0)
    assert seeking.judge({PLACE: 0}) == {PLACE: 7}
    seeking.note({PLACE: 2}, now=0.5)
    assert seeking.judge({PLACE: 8}) == {PLACE: 2}
    assert seeking.judge({PLACE: 2}) == {}
