"""How far a query has to go back when a failover has lost records that it had read or written. Pure.

Spark writes down the offsets of a batch before it runs it, and that it ran behind it. A batch counts as
kept if all that it read is below the promotion points, and all that it wrote too: `ends` has the ends
of its output when it was done. Points of topics that are not mirrored are not known; such topics are
not judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KEPT = 100  # batches, of which a query can go back to any; also what Spark keeps
Offsets = Mapping[str, Mapping[int, int]]  # topic → partition → offset
_STATE_FILE = re.compile(r"(?:.*/)?(\d+)(?:_[^/.]*)?\.(?:zip|changelog|delta|snapshot)(?:\.crc)?")


@dataclass(frozen=True)
class History:
    """What a checkpoint still knows of its batches."""

    planned: Mapping[int, Offsets]  # where each batch ends
    committed: frozenset[int]
    ends: Mapping[int, Offsets]  # of what it had written then; empty for a query that writes no topic


def within(offsets: Offsets, points: Offsets) -> bool:
    """True if nothing stands beyond a point."""
    return all(
        offset <= points[topic][partition]
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
        if partition in points.get(topic, {})
    )


def last_kept(history: History, points: Offsets, *, writes: bool) -> int | None:
    """The last batch of which nothing was lost; None if the checkpoint knows of none."""
    for batch in sorted(history.committed & set(history.planned), reverse=True):
        wrote = not writes or (batch in history.ends and within(history.ends[batch], points))
        if wrote and within(history.planned[batch], points):
            return batch
    return None


def lowered(offsets: Offsets, points: Offsets) -> dict[str, dict[int, int]]:
    """Offsets that are at most the points."""
    return {
        topic: {
            partition: min(offset, points.get(topic, {}).get(partition, offset))
            for partition, offset in partitions.items()
        }
        for topic, partitions in offsets.items()
    }


def read_offsets(text: str) -> dict[str, dict[int, int]]:
    """The offsets in an entry of Spark's log: a line of version, one of metadata, one for each source."""
    found: dict[str, dict[int, int]] = {}
    for source in map(_source, text.splitlines()[2:]):
        for topic, partitions in (source or {}).items():
            own = found.setdefault(topic, {})
            for partition, offset in partitions.items():  # two sources may read one topic
                own[partition] = max(offset, own.get(partition, offset))
    return found


def lower_entry(text: str, points: Offsets) -> str:
    """An entry of Spark's log with offsets that are at most the points."""
    lines = text.splitlines()
    for number, line in enumerate(lines[2:], 2):
        source = _source(line)
        if source is not None:
            lines[number] = json.dumps(lowered(source, points), separators=(",", ":"))
    return "\n".join(lines)


def _source(line: str) -> dict[str, dict[int, int]] | None:
    """The offsets of one source; None for one that had nothing yet."""
    try:
        told: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    return {topic: {int(key): int(value) for key, value in own.items()} for topic, own in told.items()}


def state_version(path: str) -> int | None:
    """The version of the state that a file belongs to; None for one that all versions share.

    State behind batch n has version n + 1.
    """
    match = _STATE_FILE.fullmatch(path)
    return int(match[1]) if match else None


def encode_ends(ends: Mapping[int, Offsets]) -> str:
    """As it is kept beside the checkpoint."""
    return json.dumps(ends)


def decode_ends(text: str | None) -> dict[int, Offsets]:
    """What was kept; nothing if it cannot be read: then a query goes back further than it must."""
    try:
        told = json.loads(text or "{}")
        return {
            int(batch): {
                topic: {int(partition): int(offset) for partition, offset in own.items()}
                for topic, own in offsets.items()
            }
            for batch, offsets in told.items()
        }
    except (ValueError, AttributeError):
        return {}
