"""Where reading begins and ends: words, offsets, times and durations, and the offsets they come to.

Pure but for `offsets_of`, which asks the leaders. Used by `twinlog consume`, `twinlog group reset` and
`twinlog topic trim`, so that the same words mean the same offsets in all of them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from twinlog.errors import UsageError
from twinlog.spec.units import UnitError, parse_milliseconds
from twinlog.wire import offsets
from twinlog.wire.cluster import Cluster
from twinlog.wire.offsets import TopicPartition

FORMS = "beginning, end, an offset, -N (N before the end), 10m (ago), or a time like 2026-01-31T12:00"
_DURATION = re.compile(r"[\d.]+\s*[A-Za-z]+")
_EPOCH_MS = re.compile(r"@(\d+)")
_OFFSET = re.compile(r"\d+")
_BEFORE_END = re.compile(r"-(\d+)")


class Kind(Enum):
    """How a place in a partition is named."""

    BEGINNING = "beginning"
    END = "end"
    OFFSET = "offset"
    BEFORE_END = "before end"
    TIME = "time"


@dataclass(frozen=True)
class Where:
    """A place, the same words for every partition; `number` is an offset, a count or a time in ms."""

    kind: Kind
    number: int = 0


@dataclass(frozen=True)
class Bounds:
    """What a partition holds now: the first offset that is kept and where the next record will stand."""

    start: int
    end: int


def parse(text: str, *, now_ms: int | None = None) -> Where:
    """The place that a word, a number, a duration or a time means."""
    given = text.strip()
    for kind in (Kind.BEGINNING, Kind.END):
        if given.lower() == kind.value:
            return Where(kind)
    if _OFFSET.fullmatch(given):
        return Where(Kind.OFFSET, int(given))
    if before := _BEFORE_END.fullmatch(given):
        return Where(Kind.BEFORE_END, int(before[1]))
    if stamp := _EPOCH_MS.fullmatch(given):
        return Where(Kind.TIME, int(stamp[1]))
    if _DURATION.fullmatch(given):
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        return Where(Kind.TIME, now - _milliseconds(given))
    try:
        when = datetime.fromisoformat(given)
    except ValueError:
        raise UsageError(f"'{text}' is no place in a topic", hint=f"it may be {FORMS}") from None
    # Without a zone it is the time of this machine, as a person at it means it.
    return Where(Kind.TIME, int(when.timestamp() * 1000))


def _milliseconds(text: str) -> int:
    try:
        return int(parse_milliseconds(text))
    except UnitError as error:
        raise UsageError(str(error), hint=error.hint) from None


def settle(where: Where, bounds: Bounds, at_time: int | None = None) -> int:
    """The offset that a place comes to; `at_time` is the first offset from its time on, if there is one."""
    wanted = {
        Kind.BEGINNING: bounds.start,
        Kind.END: bounds.end,
        Kind.OFFSET: where.number,
        Kind.BEFORE_END: bounds.end - where.number,
        Kind.TIME: bounds.end if at_time is None else at_time,
    }[where.kind]
    return max(bounds.start, min(bounds.end, wanted))


def bounds_of(cluster: Cluster, places: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
    """What partitions hold now, as consumers see it."""
    wanted = tuple(places)
    starts, ends = offsets.start_offsets(cluster, wanted), offsets.end_offsets(cluster, wanted)
    return {place: Bounds(starts[place], max(starts[place], ends[place])) for place in wanted}


def offsets_of(
    cluster: Cluster, where: Where, bounds: dict[TopicPartition, Bounds]
) -> dict[TopicPartition, int]:
    """The offset that a place comes to in each partition."""
    at_times: dict[TopicPartition, int | None] = {}
    if where.kind is Kind.TIME and bounds:
        at_times = offsets.offsets_at(cluster, dict.fromkeys(bounds, where.number))
    return {place: settle(where, held, at_times.get(place)) for place, held in bounds.items()}


def as_time(timestamp_ms: int) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
