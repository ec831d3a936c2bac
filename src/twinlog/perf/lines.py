"""The lines that Kafka's own tools print, for scripts that read them. Pure.

Numbers and words are those of kafka-producer-perf-test, kafka-consumer-perf-test and EndToEndLatency of
Kafka 4.3; latencies are whole milliseconds where theirs are. What was never answered has no latency and is
printed as NaN, as Java prints it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from twinlog.errors import UsageError
from twinlog.perf.figures import MEBIBYTE, PERCENTS, Interval, Read
from twinlog.perf.histogram import Histogram

DATE_FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"
_JAVA_DATE = re.compile(r"'([^']*)'|([A-Za-z])\2*")
_DATE_PARTS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "MMM": "%b",
    "dd": "%d",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "a": "%p",
    "E": "%a",
    "Z": "%z",
}


def warming_up(records: int) -> str:
    """What is said before a measurement that leaves its first records out of a second summary."""
    return f"Warmup first {records} records. Steady state results will print after the complete test summary."


def sent_window(interval: Interval) -> str:
    """One interval of writing."""
    return (
        f"{interval.records} records sent, {interval.records_per_s:.1f} records/sec "
        f"({interval.mib_per_s:.2f} MB/sec), {_number(interval.mean_ms):.1f} ms avg latency, "
        f"{_number(interval.max_ms):.1f} ms max latency."
    )


def sent_total(interval: Interval, histogram: Histogram, *, is_steady: bool = False) -> str:
    """All of a measurement of writing, or what came after its warm-up."""
    shares = [f"{int(share.latency_ms)} ms {share.percent:g}th" for share in histogram.percentiles(PERCENTS)]
    return (
        f"{interval.records}{' steady state' if is_steady else ''} records sent, "
        f"{interval.records_per_s:.6f} records/sec ({interval.mib_per_s:.2f} MB/sec), "
        f"{_number(interval.mean_ms):.2f} ms avg latency, {_number(interval.max_ms):.2f} ms max latency, "
        f"{', '.join(shares) or 'no latencies'}."
    )


def read_header(*, is_detailed: bool) -> str:
    """What the columns of a measurement of reading are."""
    first = "time, threadId" if is_detailed else "start.time, end.time"
    return (
        f"{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
        "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )


def read_total(read: Read, date_format: str) -> str:
    """All of a measurement of reading."""
    total, fetching = read.total, read.fetching
    return (
        f"{java_date(read.began_ms, date_format)}, {java_date(read.ended_ms, date_format)}, "
        f"{total.size_bytes / MEBIBYTE:.4f}, {total.mib_per_s:.4f}, "
        f"{total.records}, {total.records_per_s:.4f}, {read.joining_s * 1000:.0f}, "
        f"{fetching.seconds * 1000:.0f}, {fetching.mib_per_s:.4f}, {fetching.records_per_s:.4f}"
    )


def read_window(
    ended_ms: int, interval: Interval, joining_s: float, *, so_far: Interval, date_format: str
) -> str:
    """One interval of reading; records and bytes are of all until then, rates are of the interval."""
    fetching = Interval(interval.records, interval.size_bytes, interval.seconds - joining_s)
    return (
        f"{java_date(ended_ms, date_format)}, 0, {so_far.size_bytes / MEBIBYTE:.4f}, "
        f"{interval.mib_per_s:.4f}, {so_far.records}, {interval.records_per_s:.4f}, {joining_s * 1000:.0f}, "
        f"{fetching.seconds * 1000:.0f}, {fetching.mib_per_s:.4f}, {fetching.records_per_s:.4f}"
    )


def trip_progress(number: int, latency_ms: float) -> str:
    """One record of a measurement of latency."""
    return f"{number}\t{latency_ms}"


def trip_total(histogram: Histogram) -> list[str]:
    """All of a measurement of latency."""
    shares = [
        f"{share.percent:g}th = {int(share.latency_ms)}"
        for share in histogram.percentiles((50.0, 99.0, 99.9))
    ]
    return [f"Avg latency: {_number(histogram.mean_ms):.4f} ms", f"Percentiles: {', '.join(shares)}"]


def metrics(found: Mapping[str, Any]) -> list[str]:
    """What a client counted, in the order of names."""
    if not found:
        return []
    width = max(map(len, found))
    lines = [f"{'Metric Name':<{width}}   Value"]
    for name, value in sorted(found.items()):
        lines.append(f"{name:<{width}} : {f'{value:.3f}' if isinstance(value, float) else value}")
    return lines


def strftime_of(date_format: str) -> str:
    """A date format of Java in Python's terms; milliseconds become `%f`, cut to three digits when used."""

    def part(match: re.Match[str]) -> str:
        quoted, letter = match.groups()
        if letter is None:
            return quoted.replace("%", "%%") or "'"
        if match[0] == "SSS":
            return "%f"
        known = _DATE_PARTS.get(match[0])
        if known is None:
            raise UsageError(
                f"the part {match[0]} of the date format is not known", hint=f"for example {DATE_FORMAT}"
            )
        return known

    return _JAVA_DATE.sub(part, date_format.replace("%", "%%"))


def java_date(time_ms: int, date_format: str) -> str:
    """A moment as Java's SimpleDateFormat writes it."""
    moment = datetime.fromtimestamp(time_ms / 1000)
    form = strftime_of(date_format).replace("%f", f"{time_ms % 1000:03d}")
    return moment.strftime(form)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
