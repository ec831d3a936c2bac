"""Lines as Kafka's tools print them: compared with lines that those tools printed."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from twinlog.errors import UsageError
from twinlog.perf import lines
from twinlog.perf.figures import Interval, Meter, Read
from twinlog.perf.histogram import Histogram

# Printed by the tools of Kafka 4.3.1.
WINDOW = "1 records sent, 0.1 records/sec (0.00 MB/sec), 1138.0 ms avg latency, 1138.0 ms max latency."
TOTAL = (
    "2000 records sent, 129.341008 records/sec (0.01 MB/sec), 1294.23 ms avg latency, "
    "15184.00 ms max latency, 1332 ms 50th, 1583 ms 95th, 1605 ms 99th, 1611 ms 99.9th."
)
STEADY = (
    "1500 steady state records sent, 876.168224 records/sec (0.08 MB/sec), 1206.70 ms avg latency, "
    "1537.00 ms max latency, 1071 ms 50th, 1523 ms 95th, 1537 ms 99th, 1537 ms 99.9th."
)
WARMING = "Warmup first 500 records. Steady state results will print after the complete test summary."
HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def shape(line: str) -> str:
    """A line with its numbers taken out; how many digits follow the point stays."""
    return re.sub(
        r"\d+(\.\d+)?",
        lambda found: "N" + "." * (found[1] is not None) + "n" * (len(found[1] or ".") - 1),
        line,
    )


def histogram(*values_ms: float) -> Histogram:
    made = Histogram()
    made.add([value / 1000 for value in values_ms])
    return made


def test_lines_of_writing_have_the_shape_of_kafkas() -> None:
    interval, taken = Interval(4989, 4989000, 5.0, 1.6, 241.0), histogram(1.0, 1.0, 2.0, 241.0)
    assert shape(lines.sent_window(interval)) == shape(WINDOW)
    assert shape(lines.sent_total(interval, taken)) == shape(TOTAL)
    assert shape(lines.sent_total(interval, taken, is_steady=True)) == shape(STEADY)
    assert lines.warming_up(500) == WARMING
    assert lines.sent_total(interval, taken).startswith(
        "4989 records sent, 997.800000 records/sec (0.95 MB/sec)"
    )


def test_a_run_in_which_nothing_was_answered_still_has_a_line() -> None:
    line = lines.sent_total(Interval(0, 0, 1.0), Histogram())
    assert line.startswith("0 records sent, 0.000000 records/sec (0.00 MB/sec), nan ms avg latency")


def test_lines_of_reading_have_kafkas_columns() -> None:
    assert lines.read_header(is_detailed=False) == HEADER
    read = Read(Interval(1000, 1024 * 1024, 2.0), 0, 2000, joining_s=1.0, windows=(), wanted=1000)
    cells = lines.read_total(read, lines.DATE_FORMAT).split(", ")
    assert cells[2:] == ["1.0000", "0.5000", "1000", "500.0000", "1000", "1000", "1.0000", "1000.0000"]
    assert len(cells) == len(HEADER.split(", "))


def test_lines_of_latency_are_kafkas() -> None:
    assert lines.trip_total(histogram(1.0, 2.5, 9.0)) == [
        "Avg latency: 4.1667 ms",
        "Percentiles: 50th = 2, 99th = 9, 99.9th = 9",
    ]


def test_dates_are_written_as_java_writes_them() -> None:
    time_ms = int(datetime(2026, 1, 31, 12, 5, 9).timestamp() * 1000) + 45
    assert lines.java_date(time_ms, lines.DATE_FORMAT) == "2026-01-31 12:05:09:045"
    assert lines.java_date(time_ms, "dd.MM.yy 'at' HH%mm") == "31.01.26 at 12%05"
    with pytest.raises(UsageError, match="QQ"):
        lines.strftime_of("QQ yyyy")


def test_the_steady_state_leaves_the_warm_up_out() -> None:
    meter = Meter(began_s=0.0, warmup_records=2)
    meter.count([1.0], 10, now_s=1.0)
    meter.count([1.0, 0.1, 0.3], 30, now_s=2.0)
    assert meter.steady is not None
    assert (meter.total(3.0).records, meter.steady.total(3.0)) == (4, Interval(2, 20, 2.0, 200.0, 300.0))
    assert meter.steady.histogram.max_s == 0.3
    assert meter.window(3.0, every_s=5.0) is None
    window = meter.window(5.0, every_s=5.0)
    assert window is not None and (window.records, window.size_bytes, window.seconds) == (4, 40, 5.0)
    assert meter.window(20.0, every_s=5.0) is None  # nothing came since
