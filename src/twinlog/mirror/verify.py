"""Compares both logs of mirrored partitions, offset by offset: the proof that the twin is one.

`link verify` calls it. It reads as a reader of committed records does and changes nothing. Each
partition is compared from where both logs begin, or from where an earlier run got to, to where both
ended when it began. `comparison` judges; here is the order of reading: partitions with the same two
leaders share a fetch session at each, and brokers answer while the last answers are compared.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from twinlog.errors import TwinlogError
from twinlog.mirror import stretch
from twinlog.mirror.checkpoint import VerifyState
from twinlog.mirror.compare import seen
from twinlog.mirror.comparison import Comparison, Found
from twinlog.mirror.lane import Job, Lane
from twinlog.mirror.memory import Twins
from twinlog.mirror.missing import Missing, Side
from twinlog.mirror.outline import NOTHING
from twinlog.mirror.pace import Pace
from twinlog.mirror.report import PartitionReport, Report
from twinlog.mirror.track import TopicPartition
from twinlog.progress import Progress, Silent
from twinlog.wire import configs, offsets, topics
from twinlog.wire.cluster import Cluster

TASK = "comparing"
MOST_ATTEMPTS = 5  # in a row that got no further
PAUSE_S = 0.5
SAVE_EVERY_S = 5.0
_POLICY, _TOMBSTONES = "cleanup.policy", "delete.retention.ms"


class Ends(NamedTuple):
    """Where the logs of one partition begin and end."""

    first: int  # where both have begun
    standby_end: int
    active_end: int
    active_stable: int  # as far as readers get

    @property
    def end(self) -> int:
        """Where the comparison ends."""
        return min(self.standby_end, self.active_stable)


@dataclass
class _Sites:
    """Both clusters, and what is known of the topics there."""

    clusters: Mapping[Side, Cluster]
    ids: Mapping[Side, dict[str, UUID]] = field(default_factory=lambda: {side: {} for side in Side})
    widths: Mapping[Side, dict[str, int]] = field(default_factory=lambda: {side: {} for side in Side})

    def learn(self, names: Iterable[str]) -> None:
        """Look the topics up."""
        wanted = sorted(set(names))
        for side, cluster in self.clusters.items():
            for topic in topics.describe(cluster, wanted):
                self.ids[side][topic.name] = topic.id
                self.widths[side][topic.name] = len(topic.partitions)

    def lacking(self, place: TopicPartition) -> str:
        """Which site does not have a partition, in words; empty if both have it."""
        for side in Side:
            if place[1] >= self.widths[side].get(place[0], 0):
                return f"it does not exist at the {side.value}"
        return ""

    def twins(self, topic: str) -> Twins:
        """The topic's ids."""
        return Twins(*(self.ids[side][topic] for side in (Side.ACTIVE, Side.STANDBY)))


def verify(
    active: Cluster,
    standby: Cluster,
    partitions: Iterable[TopicPartition],
    *,
    state: VerifyState | None = None,
    pace: Pace | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compare partitions at both sites, and say what differs."""
    began = time.monotonic()
    places = sorted(set(partitions))
    work = _Work(active, standby, state, pace or Pace(None), progress or Silent())
    found = work.run(places)
    return Report(tuple(found[place] for place in places), time.monotonic() - began)


class _Work:
    """One call of `verify`."""

    def __init__(
        self,
        active: Cluster,
        standby: Cluster,
        state: VerifyState | None,
        pace: Pace,
        progress: Progress,
    ) -> None:
        self._sites = _Sites({Side.ACTIVE: active, Side.STANDBY: standby})
        self._state = state
        self._pace = pace
        self._progress = progress
        self._saved_s = time.monotonic()

    def run(self, places: list[TopicPartition]) -> dict[TopicPartition, PartitionReport]:
        """Compare them all."""
        self._sites.learn(topic for topic, _ in places)
        reports = {
            place: PartitionReport(*place, skipped=lacking)
            for place in places
            if (lacking := self._sites.lacking(place))
        }
        missing = self._missing({topic for topic, _ in places})
        jobs: list[Job] = []
        for place, told in self._ends([place for place in places if place not in reports]):
            if isinstance(told, str):
                reports[place] = PartitionReport(*place, skipped=told)
            else:
                jobs.append(self._job(place, told, missing.get(place[0])))
        self._progress.begin(TASK, total=sum(job.comparison.end - job.comparison.first for job in jobs))
        try:
            self._compare(jobs)
        finally:
            self._save()
        for job in jobs:
            reports[job.place] = self._judge(job)
        self._save()
        bad = sum(1 for one in reports.values() if one.differences or one.skipped)
        self._progress.end(TASK, f"{bad} of {len(reports)} differ" if bad else "equal")
        return reports

    # What is to be compared

    def _missing(self, names: set[str]) -> dict[str, int]:
        """How long tombstones stay, for each topic that one of the sites compacts."""
        found: dict[str, int] = {}
        for side, cluster in self._sites.clusters.items():
            known = sorted(names & self._sites.ids[side].keys())
            told = configs.describe_many(cluster, configs.Kind.TOPIC, known, (_POLICY, _TOMBSTONES))
            for name, entries in told.items():
                if "compact" in (entries[_POLICY].value or ""):
                    found[name] = min(found.get(name, 1 << 62), int(entries[_TOMBSTONES].value or 0))
        return found

    def _ends(self, places: list[TopicPartition]) -> list[tuple[TopicPartition, Ends | str]]:
        """Where each partition's comparison begins and ends, or why nobody can say."""
        if not places:
            return []
        try:
            found = _read_ends(self._sites, places)
        except TwinlogError as error:
            if len(places) == 1:
                return [(places[0], str(error))]
            return [told for place in places for told in self._ends([place])]
        return [(place, found[place]) for place in places]

    def _job(self, place: TopicPartition, ends: Ends, tombstone_ms: int | None) -> Job:
        first = ends.first
        if self._state is not None:
            first = max(first, self._state.equal_to(place, self._sites.twins(place[0])))
        missing = None
        if tombstone_ms is not None:
            missing = Missing(tombstone_ms, now_ms=time.time_ns() // 1_000_000)
        job = Job(place, Comparison(first, max(first, ends.end), missing))
        if ends.standby_end > ends.active_end:
            what = f"the standby goes on to offset {ends.standby_end}, the active ends here"
            job.comparison.found.append(Found(ends.active_end, what, NOTHING, "records"))
        return job

    # Comparing

    def _compare(self, jobs: list[Job]) -> None:
        left = [job for job in jobs if not job.is_done]
        while left:
            for lane in self._lanes(left):
                lane.run()
            left = [job for job in left if not job.is_done]
            for job in left:
                job.count_attempt(MOST_ATTEMPTS)
            left = [job for job in left if not job.is_done]
            if left:
                for cluster in self._sites.clusters.values():
                    cluster.forget()
                threading.Event().wait(PAUSE_S)
                self._move_on(left)

    def _lanes(self, jobs: list[Job]) -> list[Lane]:
        """Jobs by the two brokers that lead their partitions."""
        by_leaders: dict[tuple[int, int], list[Job]] = defaultdict(list)
        active, standby = (self._sites.clusters[side] for side in (Side.ACTIVE, Side.STANDBY))
        for job in jobs:
            try:
                by_leaders[(active.leader(*job.place), standby.leader(*job.place))].append(job)
            except TwinlogError as error:
                job.trouble = str(error)
        return [
            Lane(
                {Side.ACTIVE: (active, leaders[0]), Side.STANDBY: (standby, leaders[1])},
                self._sites.ids,
                theirs,
                self._pace,
                self._advanced,
            )
            for leaders, theirs in by_leaders.items()
        ]

    def _move_on(self, jobs: list[Job]) -> None:
        """Where a log has lost its beginning meanwhile, go on where both have one."""
        for job in jobs:
            for _, told in self._ends([job.place]):
                job.comparison.begin_at(job.comparison.position if isinstance(told, str) else told.first)

    def _advanced(self, job: Job, count: int) -> None:
        self._progress.advance(TASK, count)
        self._remember(job)
        if time.monotonic() - self._saved_s >= SAVE_EVERY_S:
            self._save()

    def _remember(self, job: Job) -> None:
        if self._state is not None:
            twins = self._sites.twins(job.place[0])
            self._state.found_equal(job.place, twins, job.comparison.equal_to)

    def _save(self) -> None:
        if self._state is not None:
            self._state.save()
        self._saved_s = time.monotonic()

    # The end

    def _judge(self, job: Job) -> PartitionReport:
        comparison = job.comparison
        skipped = job.skipped
        if not skipped:
            try:
                self._look_behind(job)
            except TwinlogError as error:
                skipped = str(error)
            comparison.settle()
        self._remember(job)
        return PartitionReport(
            *job.place,
            comparison.first,
            comparison.end,
            comparison.offsets,
            comparison.records,
            comparison.bytes,
            tuple(comparison.found),
            skipped,
        )

    def _look_behind(self, job: Job) -> None:
        """Look for newer records of missing keys behind the end too: a cleaner may have known them."""
        missing, end = job.comparison.missing, job.comparison.end
        for side, cluster in self._sites.clusters.items():
            if missing is None or not missing.waits(side):
                continue
            last = offsets.last_stable_offsets(cluster, [job.place])[job.place]
            for batch in stretch.batches(cluster, self._sites.ids[side], *job.place, end, last):
                for offset, record in seen(batch):
                    if offset >= end:
                        missing.holds(side, record)


def _read_ends(sites: _Sites, places: list[TopicPartition]) -> dict[TopicPartition, Ends]:
    active, standby = (sites.clusters[side] for side in (Side.ACTIVE, Side.STANDBY))
    # The standby first: what it has by then, the active has had before.
    standby_ends = offsets.log_ends(standby, places)
    active_ends = offsets.log_ends(active, places)
    stable = offsets.last_stable_offsets(active, places)
    starts = [offsets.start_offsets(cluster, places) for cluster in (active, standby)]
    return {
        place: Ends(
            max(start[place] for start in starts), standby_ends[place], active_ends[place], stable[place]
        )
        for place in places
    }
