"""What Spark says of a query is read as people want to know it."""

from __future__ import annotations

from pathlib import Path

from twinlog.streams.board import Board, News, behind_records, late_records, read_board, write_board


def source(end: object, latest: object) -> dict[str, object]:
    return {"sources": [{"endOffset": end, "latestOffset": latest}]}


def test_records_that_were_not_read_are_counted_over_all_partitions() -> None:
    assert behind_records(source({"t": {"0": 5, "1": 7}}, {"t": {"0": 9, "1": 7}})) == 4
    assert behind_records(source('{"t": {"0": 5}}', '{"t": {"0": 5, "1": 2}}')) == 2


def test_query_that_does_not_tell_its_offsets_is_behind_by_nobody_knows_what() -> None:
    assert behind_records(source({"t": {"0": 5}}, None)) is None


def test_rows_behind_the_watermark_are_counted_over_all_state() -> None:
    told = {"stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}, {}]}
    assert late_records(told) == 3


def test_board_is_read_as_it_was_written(tmp_path: Path) -> None:
    board = Board(pid=7, site="a", queries=[News("words", "words", state="running", batch=3)])
    write_board(tmp_path / "board.json", board)
    assert read_board(tmp_path / "board.json") == board
    assert board.is_fresh


def test_board_of_nobody_is_none(tmp_path: Path) -> None:
    assert read_board(tmp_path / "board.json") is None
