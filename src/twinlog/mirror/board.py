"""What is known about the link, as its driver tells it: gathered from tasks, written once a second.

`link status` reads it. Ends of logs are not here: they are asked of the sites, because lag needs
nothing from the mirror. A board that is older than a few seconds belongs to a driver that is gone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from twinlog.durable import write_text
from twinlog.wire.offsets import TopicPartition

FRESH_S = 10.0


@dataclass
class PartitionNews:
    """One partition as its holder last told."""

    topic: str
    partition: int
    position: int = -1
    active_end: int = -1
    trouble: str = ""
    stopped: bool = False
    holes: int = 0
    bytes: int = 0  # by the present holder
    age_ms: int | None = None  # of the last record when the standby had acknowledged it


@dataclass
class Board:
    """The whole link."""

    state: str = "starting"  # starting, running, paused, stopping, ended
    generation: int = 0
    pid: int = 0
    master: str = ""
    epoch: int = 0
    tasks: int = 0
    written_at: float = 0.0
    last_error: str = ""
    last_error_at: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)  # of all tasks since the driver began
    holders: int = 0  # tasks that hold partitions now
    losses: int = 0  # tasks that ended without a farewell
    missing: dict[str, str] = field(default_factory=dict)  # topic → why it is not mirrored
    groups: dict[str, Any] = field(default_factory=dict)
    partitions: list[PartitionNews] = field(default_factory=list)

    @property
    def is_fresh(self) -> bool:
        """False when its driver has not written it for a while."""
        return time.time() - self.written_at < FRESH_S


def write_board(path: Path, board: Board) -> None:
    """Replace the file."""
    board.written_at = time.time()
    write_text(path, json.dumps(asdict(board)))


def read_board(path: Path) -> Board | None:
    """The board, or None if there never was a driver."""
    try:
        raw = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    raw["partitions"] = [PartitionNews(**one) for one in raw["partitions"]]
    return Board(**raw)


class Gathering:
    """Puts together what tasks report."""

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, PartitionNews] = {}
        self._copied: dict[TopicPartition, int] = {}  # bytes since `rates` was asked last
        self._done: dict[str, int] = {}
        self._running: dict[object, Mapping[str, int]] = {}

    def hear(self, task: object, report: Mapping[str, Any]) -> None:
        """Take in one report of a task."""
        for topic, partition, *told in report["partitions"]:
            key, news = (topic, partition), PartitionNews(topic, partition, *told)
            before = self.partitions.get(key)
            # A new holder counts from nothing again.
            since = before.bytes if before is not None and before.bytes <= news.bytes else 0
            self._copied[key] = self._copied.get(key, 0) + news.bytes - since
            self.partitions[key] = news
        self._running[task] = report["counts"]

    def rates(self, over_s: float) -> dict[TopicPartition, float]:
        """Bytes per second of each partition in the time since this was asked last."""
        copied, self._copied = self._copied, {}
        return {key: count / over_s for key, count in copied.items()} if over_s > 0 else {}

    def leave(self, task: object) -> None:
        """A task has ended: what it did stays counted."""
        for name, count in self._running.pop(task, {}).items():
            self._done[name] = self._done.get(name, 0) + count

    def counts(self) -> dict[str, int]:
        """What was done in all."""
        total = dict(self._done)
        for counts in self._running.values():
            for name, count in counts.items():
                total[name] = total.get(name, 0) + count
        return total
