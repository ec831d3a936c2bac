"""What readers can see in a stretch of a log, and whether two logs show the same. Pure.

The start check and `link verify` both rest on it. Batches are only packaging: a twin may hold the
same records in other batches (a thinned or re-timed one), so records are compared, by offset,
timestamp, key, value and headers. Markers and aborted records are nothing to see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from twinlog.wire.batches import Batch
from twinlog.wire.recode import entries


class Seen(NamedTuple):
    """A record as a reader sees it: its time, and key, value and headers as they are encoded."""

    timestamp_ms: int
    content: bytes


class Difference(NamedTuple):
    """The first offset at which two logs differ, and how."""

    offset: int
    what: str


def seen(batch: Batch) -> Iterator[tuple[int, Seen]]:
    """Every record of a batch by its offset."""
    for entry in entries(batch):
        yield entry.offset, Seen(entry.timestamp_ms, bytes(entry.rest))


def first_difference(
    active: Mapping[int, Seen], standby: Mapping[int, Seen], *, compacted: bool
) -> Difference | None:
    """Where the logs begin to differ; a compacted topic may lack a record on either side."""
    for offset in sorted(active.keys() | standby.keys()):
        here, there = active.get(offset), standby.get(offset)
        if here == there or (compacted and (here is None or there is None)):
            continue
        if there is None:
            return Difference(offset, "the standby lacks a record")
        if here is None:
            return Difference(offset, "the standby has a record that the active has not")
        if here.content != there.content:
            return Difference(offset, "key, value or headers differ")
        return Difference(offset, f"times differ: {here.timestamp_ms} and {there.timestamp_ms}")
    return None
