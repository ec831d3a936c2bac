"""A page for Prometheus about the link, served by its driver where the file says so.

Numbers come from the board; the ends of the logs are asked of the sites by a watch of its own, so
that lag is true also when no task reports. Each scrape is answered from what was known last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from twinlog.mirror import gauges
from twinlog.mirror.board import Board
from twinlog.mirror.watch import PartitionStatus

COUNTERS = {
    "batches": "Batches appended at the standby.",
    "records": "Records appended at the standby.",
    "bytes": "Bytes of batches appended at the standby.",
    "fills": "Gaps filled.",
    "filled": "Offsets filled.",
    "surprises": "Times that a partition was begun again.",
    "refused": "Batches that the standby's guard refused under their producer's name.",
}


class LinkCollector(Collector):
    """What is known about one link."""

    def __init__(self, bus: str, board: Board, watched: Callable[[], Iterable[PartitionStatus]]) -> None:
        self._bus = bus
        self._board = board
        self._watched = watched

    def collect(self) -> Iterable[Metric]:
        """All metrics, as they are now."""
        yield from self._counters()
        yield from self._partitions()
        yield gauges.running(self._bus, self._board.state == "running")

    def _counters(self) -> Iterator[Metric]:
        values = {**self._board.counts, "tasks_lost": self._board.losses}
        for name, help_text in {**COUNTERS, "tasks_lost": "Tasks that ended without a farewell."}.items():
            family = CounterMetricFamily(f"twinlog_link_{name}", help_text, labels=("bus",))
            family.add_metric((self._bus,), values.get(name, 0))
            yield family

    def _partitions(self) -> Iterator[Metric]:
        yield from gauges.lag(self._bus, self._watched())
        stopped = GaugeMetricFamily("twinlog_link_stopped", "1 if it cannot be copied.", labels=gauges.PLACE)
        age = GaugeMetricFamily(
            "twinlog_link_record_age_seconds",
            "Age of the last record when the standby had it; MirrorMaker calls it replication-latency.",
            labels=gauges.PLACE,
        )
        for news in list(self._board.partitions):
            labels = (self._bus, news.topic, str(news.partition))
            stopped.add_metric(labels, 1.0 if news.stopped else 0.0)
            if news.age_ms is not None:
                age.add_metric(labels, news.age_ms / 1000)
        yield from (stopped, age)
