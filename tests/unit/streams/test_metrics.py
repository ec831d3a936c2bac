"""The page for Prometheus has the numbers of the board, and leaves out what is not known."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from twinlog.streams.board import Board, News
from twinlog.streams.metrics import COUNTERS, GAUGES, BoardCollector


def page(board: Board) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(BoardCollector("mill", board))
    lines = generate_latest(registry).decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_page_has_a_line_for_each_number_of_each_query() -> None:
    news = News("words", "words", "running", 7, 100, 50.5, 3, 1.25, 2, 0)
    found = page(Board(site="a", queries=[news, News("words.lines.dead", "words", "waiting", failures=4)]))
    own = '{bus="mill",job="words",query="words"}'
    dead = '{bus="mill",job="words",query="words.lines.dead"}'
    assert found['twinlog_stream_site{bus="mill",site="a"}'] == 1
    assert found[f"twinlog_stream_running{own}"] == 1
    assert found[f"twinlog_stream_running{dead}"] == 0
    assert found[f"twinlog_stream_failures{dead}"] == 4
    assert found[f"twinlog_stream_lag_seconds{own}"] == 1.25
    assert found[f"twinlog_stream_lag_records{own}"] == 3
    assert found[f"twinlog_stream_records_total{own}"] == 100
    assert found[f"twinlog_stream_late_records_total{own}"] == 2


def test_what_is_not_known_is_left_out() -> None:
    found = page(Board(queries=[News("words", "words")]))
    names = {name.partition("{")[0].removeprefix("twinlog_stream_").removesuffix("_total") for name in found}
    assert names == {*GAUGES, *COUNTERS} - {"batch", "records_per_second", "lag_records", "lag_seconds"}
