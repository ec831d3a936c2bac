"""A move of partitions, written down before it begins, so that a killed one goes on or is called off.

Kept with the bus, one for each site. Kafka itself remembers only what it is copying now; which partitions
are still to follow, and how it was before, stand here. Whoever carries a move out looks in between
whether it is still there: `move cancel` takes it away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from twinlog.durable import write_text
from twinlog.ops.assignment import Assignment, Change, Replicas, changes, from_file, to_file
from twinlog.sites.home import Home
from twinlog.sites.state import make_home_directory
from twinlog.wire.offsets import TopicPartition

FILE = "move.json"


@dataclass(frozen=True)
class Intended:
    """A move that is not finished."""

    before: Assignment
    after: Assignment
    size_bytes: Mapping[TopicPartition, int]
    rate_bytes: int | None = None  # a second, at each broker; None is no limit

    @property
    def changes(self) -> list[Change]:
        """The partitions that it is about."""
        return changes(self.before, self.after, self.size_bytes)


class MoveJournal:
    """The unfinished move of one site, if there is one."""

    def __init__(self, home: Home, site: str) -> None:
        self._home = home
        self.path: Path = home.directory / "moves" / site / FILE

    def read(self) -> Intended | None:
        """What was written."""
        try:
            raw = json.loads(self.path.read_text())
        except FileNotFoundError:
            return None
        where = str(self.path)
        sizes: dict[TopicPartition, int] = {(topic, index): size for topic, index, size in raw["size_bytes"]}
        return Intended(_read(raw["before"], where), _read(raw["after"], where), sizes, raw["rate_bytes"])

    def write(self, intended: Intended) -> None:
        """Replace what was written."""
        make_home_directory(self._home.directory)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        raw = {
            "before": json.loads(to_file(intended.before)),
            "after": json.loads(to_file(intended.after)),
            "size_bytes": [[*place, size] for place, size in sorted(intended.size_bytes.items())],
            "rate_bytes": intended.rate_bytes,
        }
        write_text(self.path, json.dumps(raw) + "\n")

    def end(self) -> None:
        """It is done, or called off."""
        self.path.unlink(missing_ok=True)


def _read(document: object, where: str) -> dict[TopicPartition, Replicas]:
    return from_file(json.dumps(document), where)
