"""A page for Prometheus about the jobs, served by their runner where `pipeline: {metrics: …}` says.

The numbers are the board's, those of `twinlog stream status`. What is not known is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from twinlog.streams.board import Board, News

LABELS = ("bus", "job", "query")
RUNNING = "running"
_Value = Callable[[News], float | None]
GAUGES: dict[str, tuple[str, _Value]] = {
    "running": ("1 while the query runs.", lambda one: float(one.state == RUNNING)),
    "batch": ("The number of its last batch.", lambda one: one.batch),
    "records_per_second": ("How fast it worked off its last batch.", lambda one: one.records_per_s),
    "lag_records": ("Records that it has not read yet.", lambda one: one.behind_records),
    "lag_seconds": ("How long it has not been at the end of its topics.", lambda one: one.behind_s),
    "failures": ("How often it has failed in a row.", lambda one: one.failures),
}
COUNTERS: dict[str, tuple[str, _Value]] = {
    "records": ("Records read since the runner was started.", lambda one: one.records),
    "late_records": (
        "Records left out because they were behind the watermark.",
        lambda one: one.late_records,
    ),
}


class BoardCollector(Collector):
    """What is known about the jobs of one bus."""

    def __init__(self, bus: str, board: Board) -> None:
        self._bus = bus
        self._board = board

    def collect(self) -> Iterable[Metric]:
        """All metrics, as they are now."""
        site = GaugeMetricFamily(
            "twinlog_stream_site", "1 for the site at which jobs run.", labels=("bus", "site")
        )
        if self._board.site:
            site.add_metric((self._bus, self._board.site), 1.0)
        yield site
        for name, (text, value) in GAUGES.items():
            yield self._filled(GaugeMetricFamily(f"twinlog_stream_{name}", text, labels=LABELS), value)
        for name, (text, value) in COUNTERS.items():
            yield self._filled(CounterMetricFamily(f"twinlog_stream_{name}", text, labels=LABELS), value)

    def _filled(self, family: GaugeMetricFamily | CounterMetricFamily, value: _Value) -> Metric:
        for one in list(self._board.queries):
            told = value(one)
            if told is not None:
                family.add_metric((self._bus, one.job, one.query), float(told))
        return family
