"""What is measured: CPU seconds of processes, how a topic fills at the standby, when records arrive.

Used by all measurements of mirrors. Nothing is asked of the mirrors themselves: processes are looked
at from outside, and the standby is asked and read like any client would.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from bench.ground import STANDBY, Ground, records_at
from twinlog.mirror.compare import seen
from twinlog.wire import topics
from twinlog.wire.batches import split
from twinlog.wire.deadlines import Deadline
from twinlog.wire.fetching import FetchLimits, FetchSession
from twinlog.wire.offsets import TopicPartition

SAMPLE_S = 0.2
STILL_S = 120.0  # so long a mirror may copy nothing: far longer than it takes to start, or to take turns
FAMILY_EVERY_S = 1.0
WARM_SHARE = 0.1  # of the records: until then a mirror starts, and its compilers and buffers warm up
FETCH_TIMEOUT_S = 15.0


class Cpu:
    """CPU seconds of a changing family of processes; what ended keeps what it had used."""

    def __init__(self, family: Callable[[], Sequence[psutil.Process]]) -> None:
        self._family = family
        self._known: Sequence[psutil.Process] = ()
        self._known_at = 0.0
        self._used: dict[tuple[int, float], float] = {}

    def seconds(self) -> float:
        """All that was used until now."""
        now = time.monotonic()
        if now - self._known_at > FAMILY_EVERY_S:  # looking for children goes through all of /proc
            self._known, self._known_at = self._family(), now
        for process in self._known:
            try:
                times = process.cpu_times()
                self._used[process.pid, process.create_time()] = times.user + times.system
            except psutil.NoSuchProcess:
                continue
        return sum(self._used.values())


def memory_bytes(processes: Sequence[psutil.Process]) -> int:
    """What processes have for themselves in memory, in all; pages that they share are counted once."""
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().uss
        except psutil.NoSuchProcess:
            continue
    return total


@dataclass(frozen=True)
class Copied:
    """How fast and at what cost a backlog was copied, from the first tenth to the end."""

    first_after_s: float  # from the start of the mirror to the first record
    seconds: float
    records: int
    cpu_s: float
    brokers_cpu_s: float  # of both sites: when it is near what the machine has, brokers are the limit

    @property
    def records_per_s(self) -> float:
        """How fast."""
        return self.records / self.seconds

    @property
    def cpu_s_per_million(self) -> float:
        """At what cost."""
        return self.cpu_s / self.records * 1e6

    def as_json(self) -> dict[str, float]:
        """For the last line."""
        return {
            **asdict(self),
            "records_per_s": self.records_per_s,
            "cpu_s_per_million": self.cpu_s_per_million,
        }


def watch_copying(
    ground: Ground,
    partitions: list[TopicPartition],
    total: int,
    start: Callable[[], None],
    cpu: Cpu,
    timeout_s: float,
    begun: Callable[[], None] = lambda: None,
) -> Copied:
    """Start a mirror and watch the standby until it has all records; `begun` is called at the first.

    Taking too long in all, or copying nothing for long, is the end.
    """
    brokers = Cpu(ground.node_processes)
    began = time.monotonic()
    start()
    first_after_s = -1.0
    warm: tuple[float, int, float, float] | None = None
    last, moved_at = 0, began
    pause = threading.Event()
    with ground.cluster(STANDBY) as standby:
        while True:
            count, now, used = records_at(standby, partitions), time.monotonic(), cpu.seconds()
            if count and first_after_s < 0:
                first_after_s = now - began
                begun()
            if warm is None and count >= total * WARM_SHARE:
                warm = now, count, used, brokers.seconds()
            if count >= total and warm is not None:
                return Copied(
                    first_after_s,
                    now - warm[0],
                    count - warm[1],
                    used - warm[2],
                    brokers.seconds() - warm[3],
                )
            if count != last:
                last, moved_at = count, now
            if now - began > timeout_s or now - moved_at > STILL_S:
                raise TimeoutError(
                    f"{count} of {total} records are at the standby after {now - began:.0f} s,"
                    f" the last ones came {now - moved_at:.0f} s ago"
                )
            pause.wait(SAMPLE_S)


@dataclass(frozen=True)
class Latency:
    """From the time in a record to its arrival at a reader of the standby, in milliseconds."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    records: int

    @classmethod
    def of(cls, ages_ms: Sequence[float]) -> Latency:
        """Of all records that were seen."""
        if len(ages_ms) < 2:
            raise ValueError("no record arrived")
        cuts = statistics.quantiles(ages_ms, n=100, method="inclusive")  # never beyond what was seen
        return cls(cuts[49], cuts[98], max(ages_ms), len(ages_ms))

    def as_json(self) -> dict[str, Any]:
        """For the last line."""
        return asdict(self)


class Arrivals:
    """Reads partitions at the standby, one thread for each leader, and notes how old records are."""

    def __init__(self, ground: Ground, partitions: Sequence[TopicPartition]) -> None:
        self._ended = threading.Event()
        self._ages_ms: list[tuple[float, float]] = []  # when it arrived, and how old it was then
        cluster = ground.cluster(STANDBY)
        ids = {topic.name: topic.id for topic in topics.describe(cluster, sorted({t for t, _ in partitions}))}
        by_leader: dict[int, list[TopicPartition]] = {}
        for place in partitions:
            by_leader.setdefault(cluster.leader(*place), []).append(place)
        limits = FetchLimits(max_wait_ms=500, max_bytes=8 << 20, partition_max_bytes=2 << 20)
        self._threads = []
        for leader, places in by_leader.items():
            session = FetchSession(cluster.broker(leader), limits, ids=ids)
            for place in places:
                session.want(place, 0)
            self._threads.append(threading.Thread(target=self._read, args=(session,), daemon=True))
        for thread in self._threads:
            thread.start()
        self._cluster = cluster

    @property
    def count(self) -> int:
        """Records that have arrived."""
        return len(self._ages_ms)

    def end(self) -> None:
        """Read no more."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._cluster.close()

    def between(self, first: float, last: float) -> list[float]:
        """Ages of the records that were written in this stretch of wall-clock time, in milliseconds."""
        return [age_ms for at, age_ms in self._ages_ms if first <= at - age_ms / 1000 < last]

    def _read(self, session: FetchSession) -> None:
        while not self._ended.is_set():
            session.send(Deadline(FETCH_TIMEOUT_S))
            fetched = session.receive(Deadline(FETCH_TIMEOUT_S))
            now = time.time()
            for one in fetched:
                for batch in split(one.records):
                    session.want((one.topic, one.partition), batch.header.next_offset)
                    for _, record in seen(batch):
                        self._ages_ms.append((now, now * 1000 - record.timestamp_ms))
