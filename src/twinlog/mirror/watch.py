"""How the link is: the ends of both sites asked now, beside what its driver has put on the board.

Lag in records is a difference of offsets. Lag in seconds is the time since the active's end first
passed where the standby's end is now, so it takes a watcher that looks more than once: the first
look takes the driver's word. A partition that stands still behind an open transaction is named with
the producer that holds it.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from twinlog.errors import TwinlogError
from twinlog.mirror import link
from twinlog.mirror.board import Board, read_board
from twinlog.mirror.following import Wanted
from twinlog.sites.home import Home
from twinlog.wire import offsets, producers, topics
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.offsets import TopicPartition

PATIENCE = Patience(connect_s=2.0, request_s=5.0, total_s=5.0)
OPEN_TOO_LONG_S = 5.0
COUNTS = ("batches", "records", "bytes", "fills", "filled", "surprises", "refused")


class Lag:
    """Seconds that one partition is behind. Pure: it is told the ends and the time."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._seen_at: list[float] = []

    def look(self, active_end: int, standby_end: int, now: float) -> float:
        """How long ago the active's end was where the standby's is now; 0 when they are equal."""
        if not self._ends or active_end > self._ends[-1]:
            self._ends.append(active_end)
            self._seen_at.append(now)
        if standby_end >= active_end:
            self._ends, self._seen_at = [active_end], [now]
            return 0.0
        # The first look at which the active had more than the standby has now.
        first = bisect_right(self._ends, standby_end)
        del self._ends[: max(0, first - 1)], self._seen_at[: max(0, first - 1)]
        first = bisect_right(self._ends, standby_end)
        return now - self._seen_at[min(first, len(self._seen_at) - 1)]


@dataclass
class PartitionStatus:
    """One partition."""

    topic: str
    partition: int
    active_end: int
    standby_end: int
    lag_records: int
    lag_s: float | None
    bytes_per_s: float | None = None
    waiting_for: str = ""
    trouble: str = ""
    stable_end: int | None = None  # of the active: what is behind it waits for an open transaction


@dataclass
class TopicStatus:
    """One topic: its partitions together."""

    topic: str
    partitions: int = 0
    lag_records: int = 0
    lag_s: float | None = None
    bytes_per_s: float | None = None
    waiting_for: str = ""
    trouble: str = ""


@dataclass
class LinkStatus:
    """All that a look found."""

    link: dict[str, Any]
    runs: bool
    partitions: list[PartitionStatus]
    topics: list[TopicStatus]
    findings: list[str] = field(default_factory=list)


class Watch:
    """Looks at the link again and again."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.active, self.standby = link.sides(home)
        self.here = Cluster(home.admin_access(self.active), patience=PATIENCE)
        self.there = Cluster(home.admin_access(self.standby), patience=PATIENCE)
        self._lags: dict[TopicPartition, Lag] = {}
        self._bytes: dict[TopicPartition, tuple[float, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let both sites go."""
        self.here.close()
        self.there.close()

    def look(self) -> LinkStatus:
        """How the link is now."""
        process = link.background(self._home)
        board = read_board(process.report)
        runs = process.find() is not None and board is not None and board.is_fresh
        board = board if board is not None else Board(state="ended")
        keys = self._mirrored()
        active = offsets.end_offsets(self.here, keys)
        stable = offsets.last_stable_offsets(self.here, keys)
        standby = offsets.end_offsets(self.there, keys)
        news = {(one.topic, one.partition): one for one in board.partitions} if runs else {}
        now = time.monotonic()
        found = []
        for key in keys:
            told = news.get(key)
            lag_s = self._lags.setdefault(key, Lag()).look(active[key], standby[key], now)
            behind = max(0, active[key] - standby[key])
            found.append(
                PartitionStatus(
                    *key,
                    active[key],
                    standby[key],
                    behind,
                    lag_s,
                    self._rate(key, told.bytes, now) if told else None,
                    self._holding(key, stable[key], active[key]),
                    told.trouble if told else "",
                    stable[key],
                )
            )
        return self._put_together(board, runs, found)

    def _mirrored(self) -> list[TopicPartition]:
        wanted = Wanted.of(self._home.bus)
        there = {topic.name: len(topic.partitions) for topic in topics.describe(self.there)}
        return [
            (topic.name, number)
            for topic in topics.describe(self.here)
            if wanted.means(topic.name)
            for number in range(min(len(topic.partitions), there.get(topic.name, 0)))
        ]

    def _rate(self, key: TopicPartition, done: int, now: float) -> float | None:
        before = self._bytes.get(key)
        self._bytes[key] = (now, done)
        if before is None or now <= before[0] or done < before[1]:
            return None
        return (done - before[1]) / (now - before[0])

    def _holding(self, key: TopicPartition, stable: int, end: int) -> str:
        """Who has held a transaction open for a while, if that is what the mirror waits for."""
        if stable >= end:
            return ""
        try:
            states = producers.describe(self.here, [key])[key]
        except TwinlogError as error:
            return f"an open transaction ({error})"
        now_ms = time.time() * 1000
        for producer_id, state in sorted(states.items(), key=lambda one: one[1].current_txn_start_offset):
            if state.current_txn_start_offset >= 0:
                age_s = max(0.0, (now_ms - state.last_timestamp_ms) / 1000)
                if age_s > OPEN_TOO_LONG_S:
                    return (
                        f"a transaction of producer {producer_id}, open since offset "
                        f"{state.current_txn_start_offset}, silent for {age_s:.0f} s"
                    )
        return ""

    def _put_together(self, board: Board, runs: bool, found: list[PartitionStatus]) -> LinkStatus:
        told = {
            "state": board.state if runs else "down",
            "active": self.active,
            "standby": self.standby,
            "epoch": board.epoch,
            "generation": board.generation,
            "pid": board.pid if runs else None,
            **{
                name: board.counts.get(name, 0) for name in ("batches", "records", "bytes", "fills", "filled")
            },
            "surprises": board.counts.get("surprises", 0),
            "refused": board.counts.get("refused", 0),
            "tasks_lost": board.losses,
            "last_error": board.last_error,
            "missing": board.missing,
            "groups": board.groups,
        }
        findings = [] if runs else ["the mirror does not run"]
        findings += [f"{topic}: {why}" for topic, why in board.missing.items()]
        findings += [f"{one.topic}-{one.partition}: {one.trouble}" for one in found if one.trouble]
        findings += [f"{one.topic}-{one.partition}: {one.waiting_for}" for one in found if one.waiting_for]
        return LinkStatus(told, runs, found, _by_topic(found), findings)


def _by_topic(found: Iterable[PartitionStatus]) -> list[TopicStatus]:
    by_topic: dict[str, TopicStatus] = {}
    for one in found:
        topic = by_topic.setdefault(one.topic, TopicStatus(one.topic))
        topic.partitions += 1
        topic.lag_records += one.lag_records
        topic.lag_s = max((known for known in (topic.lag_s, one.lag_s) if known is not None), default=None)
        if one.bytes_per_s is not None:
            topic.bytes_per_s = (topic.bytes_per_s or 0.0) + one.bytes_per_s
        topic.waiting_for = topic.waiting_for or one.waiting_for
        topic.trouble = topic.trouble or one.trouble
    return list(by_topic.values())
