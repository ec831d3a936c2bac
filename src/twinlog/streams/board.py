"""What is known about the jobs, as their runner tells it: written once a second, read by `stream status`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from twinlog.durable import write_text

FRESH_S = 15.0


@dataclass
class News:
    """One query as it was seen last."""

    query: str
    job: str
    state: str = "starting"  # starting, running, waiting
    batch: int | None = None
    records: int = 0  # read since it was started
    records_per_s: float | None = None
    behind_records: int | None = None
    behind_s: float | None = None  # since it was last at the end
    late_records: int = 0  # behind the watermark, left out
    failures: int = 0
    last_error: str = ""


@dataclass
class Board:
    """All queries of a bus."""

    pid: int = 0
    site: str = ""
    written_at: float = 0.0
    queries: list[News] = field(default_factory=list)

    @property
    def is_fresh(self) -> bool:
        """False when its runner has not written it for a while."""
        return time.time() - self.written_at < FRESH_S


def write_board(path: Path, board: Board) -> None:
    """Replace the file."""
    board.written_at = time.time()
    write_text(path, json.dumps(asdict(board)))


def read_board(path: Path) -> Board | None:
    """The board, or None if no runner has written one."""
    try:
        raw = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return Board(**{**raw, "queries": [News(**one) for one in raw["queries"]]})


def behind_records(progress: Mapping[str, Any]) -> int | None:
    """How many records were not read yet, from what Spark says of a query; None if it does not say."""
    total = 0
    for source in progress.get("sources", ()):
        ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if ends is None or latest is None:
            return None
        for topic, partitions in latest.items():
            for partition, offset in partitions.items():
                total += max(0, offset - ends.get(topic, {}).get(partition, 0))
    return total


def late_records(progress: Mapping[str, Any]) -> int:
    """How many rows of a batch came behind the watermark."""
    operators = progress.get("stateOperators", ())
    return sum(int(one.get("numRowsDroppedByWatermark", 0)) for one in operators)


def _offsets(told: Any) -> dict[str, dict[str, int]] | None:
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:
            return None
    return told if isinstance(told, dict) else None
