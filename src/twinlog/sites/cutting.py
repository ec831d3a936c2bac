"""Cuts logs at given offsets on sites that we run, while their brokers are stopped.

For a site that returns after a failover: behind the promotion point its logs are not the active's, and
what is there has been salvaged. Afterwards no replica holds a batch at or above the point, nor a
transaction that ends above it: the log may end earlier, and the mirror brings that again. Kafka starts as
if the rest had never been written: it reads the last segment anew, makes its indexes, and knows of each
producer what the batches before the cut say. Topic ids and the note of a clean shutdown stay.
It may be killed at any moment and run again: the batches that go are the last to go.
Transactions must have ended before: a coordinator that comes back writes its markers behind the cut.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from twinlog.durable import write_text
from twinlog.errors import SiteError, UsageError
from twinlog.sites import processes, replicas, storage
from twinlog.sites.layout import Node, SiteLayout
from twinlog.sites.replicas import Cut, Replica, Segment
from twinlog.wire.offsets import TopicPartition

LOCK = ".lock"
LOCK_TIMEOUT_S = 5.0  # a killed process has its files open until the last of its threads is gone
LOOK_AGAIN_S = 0.05
EPOCHS = "leader-epoch-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
# What a disk says of its replicas and must not be past a log's end: high watermark, flushed, cleaned.
POSITIONS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint", CLEANED)


@dataclass(frozen=True)
class Outcome:
    """What became of one partition. With `why_not` it was left as it is and has to be rebuilt."""

    place: TopicPartition
    point: int
    replicas: int
    cut_replicas: int = 0
    cut_bytes: int = 0  # over all replicas
    tail: int = 0  # offsets that its longest replica had behind the point
    why_not: str = ""


@dataclass(frozen=True)
class _Found:
    directory: Path
    replica: Replica
    point: int


def cut(
    site: SiteLayout,
    points: Mapping[TopicPartition, int],
    *,
    emptied: Collection[str] = (),
    dry_run: bool = False,
) -> list[Outcome]:
    """Cut every replica of these partitions; says for each what was done, or why it cannot be cut.

    Topics in `emptied` lose all they hold: what the coordinators of a lost site remember, for one, is
    about a past that no longer happened. A dry run says the same and changes nothing.
    """
    _check(site)
    with _locked(site.brokers):
        found = list(_find(site.brokers, points, frozenset(emptied)))
        outcomes, cuts = _judge(found, points)
        if not dry_run:
            _act(cuts)
    return outcomes


def _check(site: SiteLayout) -> None:
    for node in site.brokers:
        if node.remote:
            raise UsageError(
                f"cannot cut logs of {node.name}: it runs on another machine",
                hint="rebuild its diverged topics from the active instead",
            )
        if not storage.is_formatted(node, site.cluster_id):
            lost = next(path for path in node.data if not storage.read_meta(path))
            raise SiteError(f"{node.name} has no data there", where=str(lost), hint="is the volume mounted?")
    running = processes.find(site.brokers)
    if running:
        names = ", ".join(node.name for node in site.brokers if node.id in running)
        raise SiteError(
            f"cannot cut logs while brokers run: {names}",
            where=f"site {site.name}",
            hint=f"twinlog down --site {site.name}",
        )


@contextmanager
def _locked(nodes: Sequence[Node]) -> Iterator[None]:
    """Hold Kafka's own lock of every disk, so that no broker starts on what is being cut."""
    with ExitStack() as stack:
        for node in nodes:
            for disk in node.data:
                handle = stack.enter_context((disk / LOCK).open("ab"))
                if not _lock(handle):
                    raise SiteError(
                        f"another process has a disk of {node.name} open",
                        where=str(disk),
                        hint=f"which one? fuser -v {disk / LOCK}",
                    )
        yield


def _lock(handle: IO[bytes]) -> bool:
    pause, end = threading.Event(), time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() > end:
                return False
        pause.wait(LOOK_AGAIN_S)


def _find(
    nodes: Sequence[Node], points: Mapping[TopicPartition, int], emptied: frozenset[str]
) -> Iterator[_Found]:
    for disk in (disk for node in nodes for disk in node.data):
        starts, cleaned = (replicas.offsets_in(_text(disk / name)) for name in (LOG_STARTS, CLEANED))
        for directory in sorted(path for path in disk.iterdir() if path.is_dir()):
            place = replicas.place_of(directory.name)
            if place is None or (place not in points and place[0] not in emptied):
                continue
            sizes = {file.name: file.stat().st_size for file in directory.iterdir()}
            replica = Replica(place, sizes, starts.get(place, 0), place in cleaned)
            yield _Found(directory, replica, points.get(place, replica.start))


def _judge(
    found: Sequence[_Found], points: Mapping[TopicPartition, int]
) -> tuple[list[Outcome], list[tuple[Path, Cut]]]:
    """A partition is cut at all its replicas or at none."""
    by_place: dict[TopicPartition, list[_Found]] = defaultdict(list)
    for one in found:
        by_place[one.replica.place].append(one)
    outcomes: list[Outcome] = []
    cuts: list[tuple[Path, Cut]] = []
    for place, point in points.items():
        if place not in by_place:
            outcomes.append(Outcome(place, point, 0, why_not="no broker of the site has a replica"))
    for place, here in sorted(by_place.items()):
        point = here[0].point
        reason = _why_not(here, point)
        at = point
        if not reason:
            # A replica that lags behind is settled earlier and needs no cut for that.
            at = min(point, max(_settled(one) for one in here))
            reason = _why_not(here, at)
        planned = [] if reason else [(one.directory, done) for one in here if (done := _plan(one, at))]
        cuts += planned
        removed = sum(done.bytes for _, done in planned)
        tail = max(0, max(_end(one) for one in here) - point)
        outcomes.append(Outcome(place, point, len(here), len(planned), removed, tail, reason))
    return outcomes, cuts


def _why_not(found: Sequence[_Found], point: int) -> str:
    return next((why for one in found if (why := replicas.why_not(one.replica, point))), "")


def _end(found: _Found) -> int:
    """Where a replica's log ends."""
    if not found.replica.segments:
        return found.replica.start
    with _opened(found, found.replica.segments[-1]) as segment:
        return replicas.find_cut(segment, replicas.NO_CUT).end


def _settled(found: _Found) -> int:
    """The last offset up to the point at which a replica has no transaction open."""
    replica = found.replica
    if not replica.segments:
        return replica.start
    last = replicas.last_segment(replica, found.point)
    segments: list[Segment] = []
    with ExitStack() as stack:
        # Mostly in the last segment; what was open when a segment began is in the snapshot of that offset.
        for base in sorted((base for base in replica.segments if base <= last), reverse=True):
            segments.insert(0, stack.enter_context(_opened(found, base)))
            path = found.directory / replicas.file_name(base, "snapshot")
            inside = replicas.opened_in(path.read_bytes()) if path.exists() else None
            if inside is None and base == replica.segments[0]:
                inside = frozenset()
            if inside is not None:
                settled = replicas.last_settled(segments, inside, found.point)
                if settled is not None:
                    return max(settled, replica.start)
    return replica.start


def _plan(found: _Found, point: int) -> Cut | None:
    if not found.replica.segments:
        return None
    last = replicas.last_segment(found.replica, point)
    with _opened(found, last) as segment:
        return replicas.plan(found.replica, last, replicas.find_cut(segment, point))


@contextmanager
def _opened(found: _Found, base: int) -> Iterator[Segment]:
    name = replicas.file_name(base)
    with (found.directory / name).open("rb") as file:
        yield Segment(base, found.replica.sizes[name], partial(_read, file))


def _read(file: IO[bytes], position: int, length: int) -> bytes:
    return os.pread(file.fileno(), length, position)


def _act(cuts: Sequence[tuple[Path, Cut]]) -> None:
    by_disk: dict[Path, list[tuple[Path, Cut]]] = defaultdict(list)
    for directory, planned in cuts:
        by_disk[directory.parent].append((directory, planned))
    for disk, here in by_disk.items():
        ends = {planned.place: planned.end for _, planned in here}
        try:
            for name in POSITIONS:
                _replace(disk / name, replicas.lowered(_text(disk / name), ends))
            for directory, planned in here:
                _cut(directory, planned)
        except OSError as error:
            raise SiteError(
                f"cutting logs was not finished: {error.strerror}",
                where=str(error.filename or disk),
                hint="mend it and run the same again: what is done stays done",
            ) from error


def _cut(directory: Path, planned: Cut) -> None:
    # First what makes Kafka look at the last segment anew. In this order, because after a clean
    # shutdown, with an index and without a snapshot, it would take it that there were no producers.
    for name in (*planned.indexes, *planned.snapshots):
        (directory / name).unlink(missing_ok=True)
    _replace(directory / EPOCHS, replicas.epochs_before(_text(directory / EPOCHS), planned.end))
    _flush(directory)
    for name in planned.segments:
        (directory / name).unlink(missing_ok=True)
    name, size = planned.shorten
    with (directory / name).open("r+b") as file:
        os.ftruncate(file.fileno(), size)
        os.fsync(file.fileno())
    _flush(directory)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def _replace(path: Path, text: str) -> None:
    if text != _text(path):
        write_text(path, text)


def _flush(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
