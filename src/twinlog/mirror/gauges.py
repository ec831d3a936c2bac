"""The link as metrics for Prometheus: whether it runs, and how far each partition is behind. Pure.

Used by the mirror's own page and by the exporter's, so that both say the same under the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from twinlog.mirror.watch import PartitionStatus

PLACE = ("bus", "topic", "partition")


def running(bus: str, is_running: bool) -> Metric:
    """Whether the link copies."""
    family = GaugeMetricFamily("twinlog_link_running", "1 while the link copies.", labels=("bus",))
    family.add_metric((bus,), 1.0 if is_running else 0.0)
    return family


def lag(bus: str, partitions: Iterable[PartitionStatus]) -> Iterator[Metric]:
    """How far the standby is behind, in records and in seconds; what is not known is left out."""
    records = GaugeMetricFamily("twinlog_link_lag_records", "Records that the standby lacks.", labels=PLACE)
    seconds = GaugeMetricFamily("twinlog_link_lag_seconds", "How long it has lacked them.", labels=PLACE)
    for one in partitions:
        labels = (bus, one.topic, str(one.partition))
        records.add_metric(labels, one.lag_records)
        if one.lag_s is not None:
            seconds.add_metric(labels, one.lag_s)
    yield from (records, seconds)
