"""What tasks report, put together; what a watcher reads; how many seconds behind."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from twinlog.mirror.board import Board, Gathering, PartitionNews, read_board, write_board
from twinlog.mirror.watch import Lag


def test_counts_of_tasks_that_ended_stay_counted() -> None:
    gathering = Gathering()
    gathering.hear("one", {"partitions": [], "counts": {"records": 5}})
    gathering.hear("one", {"partitions": [], "counts": {"records": 7}})
    gathering.leave("one")
    gathering.hear("two", {"partitions": [], "counts": {"records": 1, "fills": 2}})
    assert gathering.counts() == {"records": 8, "fills": 2}


def test_the_last_word_about_a_partition_counts() -> None:
    gathering = Gathering()
    for position in (5, 9):
        news = ["orders", 0, position, 10, "", False, 0, 100]
        gathering.hear("one", {"partitions": [news], "counts": {}})
    assert gathering.partitions["orders", 0].position == 9


def test_rates_count_bytes_of_one_holder_after_the_other() -> None:
    gathering = Gathering()
    for holder, copied in (("one", 100), ("one", 300), ("two", 50)):
        news = ["orders", 0, copied, 1000, "", False, 0, copied]
        gathering.hear(holder, {"partitions": [news], "counts": {}})
    assert gathering.rates(10.0) == {("orders", 0): 35.0}
    assert gathering.rates(10.0) == {}


def test_a_board_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "mirror.json"
    assert read_board(path) is None
    board = Board(state="running", partitions=[PartitionNews("orders", 1, 5)], counts={"records": 3})
    write_board(path, board)
    assert read_board(path) == board
    assert board.is_fresh


def test_lag_in_seconds_counts_from_when_the_active_passed_the_standbys_end() -> None:
    lag = Lag()
    assert lag.look(10, 10, now=0.0) == 0.0
    assert lag.look(20, 10, now=1.0) == 0.0  # seen for the first time just now
    assert lag.look(30, 10, now=2.0) == 1.0
    assert lag.look(40, 25, now=3.0) == 1.0  # what it lacks from 25 on was first seen at 2.0
    assert lag.look(40, 40, now=4.0) == 0.0


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=50))
def test_lag_is_never_negative_nor_longer_than_the_watch(steps: list[tuple[int, int]]) -> None:
    lag, active, standby = Lag(), 0, 0
    for now, (more, copied) in enumerate(steps):
        active += more
        standby = min(active, standby + copied)
        seconds = lag.look(active, standby, float(now))
        assert 0.0 <= seconds <= now
        assert (seconds == 0.0) or standby < active
