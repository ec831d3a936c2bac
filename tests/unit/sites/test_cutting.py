"""Logs cut at an offset: files as a broker leaves them, written here batch by batch."""

from __future__ import annotations

import fcntl
import os
import random
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import SiteError, UsageError
from twinlog.sites import cutting, replicas
from twinlog.sites.cutting import Outcome, cut
from twinlog.sites.layout import Kind, Node, SiteLayout
from twinlog.sites.replicas import Kept, Replica, Segment
from twinlog.wire.batches import CONTROL_BIT, TRANSACTIONAL_BIT, split
from twinlog.wire.records import Record, encode_batch

PLACE = ("orders", 0)
CLUSTER = "cluster"


class Log(NamedTuple):
    """A log to be written: sizes of its batches, and after which of them a new segment begins."""

    batches: Sequence[int]
    rolls: frozenset[int]


LOGS = st.builds(
    Log,
    st.lists(st.integers(1, 4), min_size=1, max_size=12),
    st.frozensets(st.integers(0, 10), max_size=5),
)


def batch(base: int, count: int) -> bytes:
    """A batch of that many records at an offset."""
    made = bytearray(encode_batch([Record(f"value {base + n}".encode(), 1000) for n in range(count)]))
    struct.pack_into(">q", made, 0, base)
    return bytes(made)


def write_log(directory: Path, log: Log, start: int = 0) -> int:
    """Write segments with their indexes and snapshots; returns where the log ends."""
    directory.mkdir(parents=True)
    base = end = start
    content, bases = b"", [start]
    for number, count in enumerate(log.batches):
        content += batch(end, count)
        end += count
        if number in log.rolls:
            (directory / replicas.file_name(base)).write_bytes(content)
            base, content = end, b""
            bases.append(base)
    (directory / replicas.file_name(base)).write_bytes(content)
    for base in bases:
        for kind in ("index", "timeindex"):
            (directory / replicas.file_name(base, kind)).write_bytes(b"\0" * 16)
    for offset in (*bases[1:], end):
        (directory / replicas.file_name(offset, "snapshot")).write_bytes(b"producers")
    epochs = sorted({start, (start + end) // 2, end - 1})
    lines = [f"{number} {offset}" for number, offset in enumerate(epochs)]
    (directory / "leader-epoch-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    return end


def write_disk(disk: Path, end: int, *, node: int = 1, cluster: str = CLUSTER) -> None:
    """What a broker keeps beside its replicas."""
    disk.mkdir(parents=True, exist_ok=True)
    (disk / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={node}\n")
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (disk / name).write_text(f"0\n2\norders 0 {end}\nother 3 77\n")
    (disk / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')


def site_of(*disks: Path, remote: bool = False) -> SiteLayout:
    """A site with one broker on each of the disks."""
    nodes = tuple(
        Node("a", number, Kind.BROKER, disk, (disk,), ("x",), "127.0.0.1", "127.0.0.1", {}, 1, remote=remote)
        for number, disk in enumerate(disks, 1)
    )
    return SiteLayout("a", 0, CLUSTER, 0, nodes, ())


def written(disk: Path, log: Log, start: int = 0) -> tuple[Path, int]:
    """A disk with one replica; gives its directory and its end."""
    directory = disk / "orders-0"
    end = write_log(directory, log, start)
    write_disk(disk, end)
    return directory, end


def held(directory: Path) -> list[tuple[int, int]]:
    """First and next offset of each batch in a replica, in order."""
    return [
        (one.header.base_offset, one.header.next_offset)
        for path in sorted(directory.glob("*.log"))
        for one in split(memoryview(path.read_bytes()))
    ]


def content(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return tmp_path / "disk"


THREE_SEGMENTS = Log((2, 3, 1, 4, 2, 2), frozenset({1, 3}))  # 0-1 2-4 | 5 6-9 | 10-11 12-13


@given(LOGS, st.integers(0, 50), st.integers(0, 3))
def test_a_cut_log_keeps_every_batch_that_ends_before_the_point_and_no_other(
    log: Log, point: int, start: int
) -> None:
    with TemporaryDirectory() as scratch:
        disk = Path(scratch)
        directory, _ = written(disk, log, start)
        point += start
        before = held(directory)
        (outcome,) = cut(site_of(disk), {PLACE: point})
        kept = [pair for pair in before if pair[1] <= point]
        assert held(directory) == kept
        assert outcome.cut_replicas == (kept != before)
        end = kept[-1][1] if kept else start
        names = set(os.listdir(directory))
        snapshots = sorted(int(name[:20]) for name in names if name.endswith(".snapshot"))
        assert kept == before or all(offset <= end for offset in snapshots)
        # Kafka reads the last segment anew only if it has no index.
        last = max(int(name[:20]) for name in names if name.endswith(".log"))
        assert (replicas.file_name(last, "index") in names) == (kept == before)
        assert {name[:20] for name in names if name.endswith("index")} <= {
            name[:20] for name in names if name.endswith(".log")
        }
        # A second time there is nothing to do.
        after = content(disk)
        assert cut(site_of(disk), {PLACE: point}) == [Outcome(PLACE, point, 1)]
        assert content(disk) == after


def test_checkpoints_of_a_cut_partition_are_not_past_its_end_and_others_stay(disk: Path) -> None:
    directory, _ = written(disk, THREE_SEGMENTS)
    cut(site_of(disk), {PLACE: 8})
    assert held(directory)[-1] == (5, 6)  # the batch of 6 to 9 goes whole
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        assert (disk / name).read_text() == "0\n2\norders 0 6\nother 3 77\n"
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert (directory / "partition.metadata").exists()
    assert (disk / ".kafka_cleanshutdown").exists()


def test_a_cut_at_a_segments_beginning_keeps_the_snapshot_that_knows_up_to_there(disk: Path) -> None:
    directory, _ = written(disk, THREE_SEGMENTS)
    (outcome,) = cut(site_of(disk), {PLACE: 10})
    assert outcome.cut_bytes == len(batch(10, 2)) + len(batch(12, 2))
    assert {path.name for path in directory.glob("*.snapshot")} == {
        replicas.file_name(5, "snapshot"),
        replicas.file_name(10, "snapshot"),
    }
    assert {path.name for path in directory.glob("*.index")} == {
        replicas.file_name(0, "index"),
        replicas.file_name(5, "index"),
    }
    assert (directory / replicas.file_name(10)).read_bytes() == b""


def test_a_log_cut_where_it_starts_keeps_an_empty_segment_there(disk: Path) -> None:
    directory, _ = written(disk, THREE_SEGMENTS, start=100)
    cut(site_of(disk), {PLACE: 100})
    assert [path.name for path in directory.glob("*.log")] == [replicas.file_name(100)]
    assert held(directory) == []


def test_a_log_that_starts_above_the_point_is_left_alone_and_said_to_need_a_rebuild(disk: Path) -> None:
    _, end = written(disk, THREE_SEGMENTS)
    (disk / "log-start-offset-checkpoint").write_text("0\n1\norders 0 9\n")
    before = content(disk)
    (outcome,) = cut(site_of(disk), {PLACE: 8})
    assert outcome == Outcome(PLACE, 8, 1, why_not="its log starts at offset 9")
    assert content(disk) | {".lock": b""} == before | {".lock": b""}
    (outcome,) = cut(site_of(disk), {PLACE: end - 1})
    assert outcome.why_not == "" and outcome.cut_replicas == 1


def test_a_partition_with_one_replica_that_cannot_be_cut_is_cut_nowhere(tmp_path: Path) -> None:
    disks = tmp_path / "one", tmp_path / "two"
    for number, (disk, start) in enumerate(zip(disks, (0, 12), strict=True), 1):
        written(disk, THREE_SEGMENTS, start)
        write_disk(disk, 20, node=number)
    (outcome,) = cut(site_of(*disks), {PLACE: 8})
    assert outcome == Outcome(PLACE, 8, 2, why_not="its log starts at offset 12")
    assert held(disks[0] / "orders-0")[-1] == (12, 14)


@pytest.mark.parametrize(("point", "is_refused"), [(4, True), (9, True), (10, False), (12, False)])
def test_a_log_that_was_compacted_is_cut_only_where_the_cleaner_cannot_have_been(
    disk: Path, point: int, is_refused: bool
) -> None:
    written(disk, THREE_SEGMENTS)
    (disk / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    (outcome,) = cut(site_of(disk), {PLACE: point})
    assert bool(outcome.why_not) == is_refused


def test_a_log_whose_cleaning_was_interrupted_counts_as_compacted(disk: Path) -> None:
    directory, _ = written(disk, THREE_SEGMENTS)
    (directory / (replicas.file_name(0) + ".swap")).write_bytes(b"")
    (outcome,) = cut(site_of(disk), {PLACE: 4})
    assert "compacted" in outcome.why_not


def test_an_emptied_topic_loses_all_even_if_it_was_compacted(disk: Path) -> None:
    written(disk, THREE_SEGMENTS)
    write_log(disk / "__transaction_state-3", THREE_SEGMENTS)
    (disk / "cleaner-offset-checkpoint").write_text("0\n1\n__transaction_state 3 5\n")
    outcomes = cut(site_of(disk), {}, emptied=["__transaction_state"])
    assert [(one.place, one.point, one.cut_replicas) for one in outcomes] == [
        (("__transaction_state", 3), 0, 1)
    ]
    assert held(disk / "__transaction_state-3") == []
    assert (disk / "cleaner-offset-checkpoint").read_text() == "0\n1\n__transaction_state 3 0\n"
    assert held(disk / "orders-0")[-1] == (12, 14)


def test_a_replica_on_its_way_to_another_disk_is_cut_too_and_a_deleted_one_is_not(disk: Path) -> None:
    written(disk, THREE_SEGMENTS)
    moving, gone = (disk / f"orders-0.{'ab' * 16}-{what}" for what in ("future", "delete"))
    for directory in (moving, gone):
        write_log(directory, THREE_SEGMENTS)
    (outcome,) = cut(site_of(disk), {PLACE: 5})
    assert (outcome.replicas, outcome.cut_replicas) == (2, 2)
    assert held(moving)[-1] == (2, 5)
    assert held(gone)[-1] == (12, 14)


def test_a_batch_that_a_crash_tore_ends_the_log_and_is_left_to_kafka(disk: Path) -> None:
    directory, _ = written(disk, Log((2, 3), frozenset()))
    last = directory / replicas.file_name(0)
    last.write_bytes(last.read_bytes() + batch(5, 3)[:-4])
    before = last.read_bytes()
    assert cut(site_of(disk), {PLACE: 6}) == [Outcome(PLACE, 6, 1)]
    assert last.read_bytes() == before
    cut(site_of(disk), {PLACE: 2})
    assert last.read_bytes() == batch(0, 2)


def test_zeros_behind_the_last_batch_are_no_batches() -> None:
    data = batch(7, 2) + bytes(200)

    def read(position: int, length: int) -> bytes:
        return data[position : position + length]

    assert replicas.find_cut(Segment(7, len(data), read), 100) == Kept(9, len(batch(7, 2)), reached=False)


def test_a_partition_that_no_disk_has_is_told(disk: Path) -> None:
    write_disk(disk, 0)
    (outcome,) = cut(site_of(disk), {PLACE: 8})
    assert outcome == Outcome(PLACE, 8, 0, why_not="no broker of the site has a replica")


def test_a_dry_run_says_the_same_and_changes_nothing(disk: Path) -> None:
    written(disk, THREE_SEGMENTS)
    site = site_of(disk)
    would = cut(site, {PLACE: 8}, dry_run=True)
    assert held(disk / "orders-0")[-1] == (12, 14)
    assert cut(site, {PLACE: 8}) == would


def test_a_disk_of_another_cluster_is_refused(disk: Path) -> None:
    written(disk, THREE_SEGMENTS)
    write_disk(disk, 14, cluster="other")
    with pytest.raises(SiteError, match="cluster other"):
        cut(site_of(disk), {PLACE: 8})


def test_a_disk_that_is_not_there_is_refused(disk: Path) -> None:
    disk.mkdir()
    with pytest.raises(SiteError, match="has no data there"):
        cut(site_of(disk), {PLACE: 8})


def test_a_broker_on_another_machine_is_refused(disk: Path) -> None:
    with pytest.raises(UsageError, match="a/broker-1: it runs on another machine"):
        cut(site_of(disk, remote=True), {PLACE: 8})


def test_a_disk_that_a_process_has_locked_is_refused(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "LOCK_TIMEOUT_S", 0.2)
    written(disk, THREE_SEGMENTS)
    holder = (
        "import fcntl, sys; handle = open(sys.argv[1], 'ab'); "
        "fcntl.lockf(handle, fcntl.LOCK_EX); print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holder, str(disk / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"locked\n"
        with pytest.raises(SiteError, match="another process has a disk of a/broker-1 open"):
            cut(site_of(disk), {PLACE: 8})
        assert other.stdin is not None
        other.stdin.close()
    assert cut(site_of(disk), {PLACE: 8})[0].cut_replicas == 1


def test_after_a_cut_a_broker_can_lock_the_disk(disk: Path) -> None:
    written(disk, THREE_SEGMENTS)
    cut(site_of(disk), {PLACE: 8})
    with (disk / ".lock").open("ab") as handle:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Event(NamedTuple):
    """A batch of one record, in a producer's transaction or not, or the marker that ends one."""

    producer: int
    bits: int


EVENTS = st.lists(
    st.builds(
        Event, st.integers(1, 3), st.sampled_from([0, TRANSACTIONAL_BIT, TRANSACTIONAL_BIT | CONTROL_BIT])
    ),
    min_size=1,
    max_size=30,
)


def inside(events: Sequence[Event]) -> dict[int, int]:
    """The producers whose transactions are open behind these, with their first offsets."""
    found: dict[int, int] = {}
    for offset, (producer, bits) in enumerate(events):
        if bits & CONTROL_BIT:
            found.pop(producer, None)
        elif bits:
            found.setdefault(producer, offset)
    return found


def snapshot(opened: dict[int, int]) -> bytes:
    entries = [struct.pack(">qhiqiqiq", one, 0, 0, 0, 0, 0, 0, opened.get(one, -1)) for one in (1, 2, 3, 9)]
    covered = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", 1, crc32c.crc32c(covered)) + covered


def write_events(disk: Path, events: Sequence[Event], rolls: frozenset[int], lost: frozenset[int]) -> Path:
    """A log of these, one record each, with true snapshots but for some that are lost."""
    directory = disk / "orders-0"
    directory.mkdir(parents=True)
    bases = sorted({0, *(roll for roll in rolls if roll < len(events))})
    for base, end in zip(bases, [*bases[1:], len(events)], strict=True):
        content = bytearray()
        for offset in range(base, end):
            made = bytearray(batch(offset, 1))
            made[22] |= events[offset].bits
            struct.pack_into(">q", made, 43, events[offset].producer)
            content += made
        (directory / replicas.file_name(base)).write_bytes(content)
        (directory / replicas.file_name(base, "index")).write_bytes(b"")
        if base and base not in lost:
            (directory / replicas.file_name(base, "snapshot")).write_bytes(snapshot(inside(events[:base])))
    write_disk(disk, len(events))
    return directory


@given(EVENTS, st.frozensets(st.integers(1, 30)), st.frozensets(st.integers(1, 30)), st.integers(0, 31))
def test_a_cut_log_ends_where_no_transaction_is_open(
    events: list[Event], rolls: frozenset[int], lost: frozenset[int], point: int
) -> None:
    with TemporaryDirectory() as scratch:
        directory = write_events(Path(scratch), events, rolls, lost)
        cut(site_of(Path(scratch)), {PLACE: point})
        settled = [end for end in range(min(point, len(events)) + 1) if not inside(events[:end])]
        assert len(held(directory)) == settled[-1]


def test_a_replica_that_lags_behind_does_not_move_the_cut_of_the_others(tmp_path: Path) -> None:
    # A transaction of 1 and 2 whose marker is at 3; one replica has it only up to 2.
    events = [Event(1, 0), *[Event(2, TRANSACTIONAL_BIT)] * 2, Event(2, TRANSACTIONAL_BIT | CONTROL_BIT)]
    events += [Event(1, 0)] * 4
    disks = [tmp_path / name for name in ("one", "two", "behind")]
    for number, disk in enumerate(disks, 1):
        write_events(disk, events[:3] if disk.name == "behind" else events, frozenset(), frozenset())
        write_disk(disk, len(events), node=number)
    (outcome,) = cut(site_of(*disks), {PLACE: 6})
    assert outcome.cut_replicas == 2
    assert [len(held(disk / "orders-0")) for disk in disks] == [6, 6, 3]


def test_a_transaction_that_loses_its_end_goes_at_every_replica_that_has_some_of_it(tmp_path: Path) -> None:
    events = [Event(1, 0), *[Event(2, TRANSACTIONAL_BIT)] * 4, Event(2, TRANSACTIONAL_BIT | CONTROL_BIT)]
    disks = [tmp_path / name for name in ("one", "behind")]
    for number, disk in enumerate(disks, 1):
        write_events(disk, events[:3] if disk.name == "behind" else events, frozenset({2}), frozenset())
        write_disk(disk, len(events), node=number)
    cut(site_of(*disks), {PLACE: 4})
    assert [len(held(disk / "orders-0")) for disk in disks] == [1, 1]


@pytest.mark.parametrize("damaged", [b"", b"\0" * 10, snapshot({2: 7})[:-1], b"\0\2" + snapshot({})[2:]])
def test_a_snapshot_that_is_damaged_says_nothing(damaged: bytes) -> None:
    assert replicas.opened_in(damaged) is None
    assert replicas.opened_in(snapshot({2: 7})) == frozenset({2})


CHANGES = ("os.remove", "os.rename", "os.truncate")


def killed_before(change: int, site: SiteLayout, points: dict[tuple[str, int], int]) -> bool:
    """Cut in a process that ends, without a word, before its change of that number; False if it finished."""
    child = os.fork()
    if child == 0:
        seen = 0

        def count(event: str, _: object) -> None:
            nonlocal seen
            if event in CHANGES:
                seen += 1
                if seen > change:
                    os._exit(9)

        sys.addaudithook(count)
        cut(site, points)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 9


def changes(make: Path, log: Log, point: int) -> Iterator[Path]:
    """A disk for each change that a cut makes, left as a kill before that change leaves it."""
    change = 0
    while True:
        disk = make / f"killed-{change}"
        written(disk, log)
        if not killed_before(change, site_of(disk), {PLACE: point}):
            return
        yield disk
        change += 1


@pytest.mark.parametrize("point", [0, 3, 5, 8, 10, 13])
def test_a_cut_that_was_killed_before_any_of_its_changes_is_finished_by_the_next(
    tmp_path: Path, point: int
) -> None:
    whole = tmp_path / "whole"
    written(whole, THREE_SEGMENTS)
    cut(site_of(whole), {PLACE: point})
    wanted = content(whole)
    killed = 0
    for disk in changes(tmp_path, THREE_SEGMENTS, point):
        killed += 1
        cut(site_of(disk), {PLACE: point})
        assert content(disk) == wanted
    assert killed > 5


def test_a_cut_of_a_transaction_that_was_killed_before_any_of_its_changes_is_finished_by_the_next(
    tmp_path: Path,
) -> None:
    events = (
        [Event(1, 0)] * 2 + [Event(2, TRANSACTIONAL_BIT)] * 9 + [Event(2, TRANSACTIONAL_BIT | CONTROL_BIT)]
    )
    change = 0
    while True:
        disk = tmp_path / str(change)
        directory = write_events(disk, events, frozenset({4, 6, 8}), frozenset())
        was_killed = killed_before(change, site_of(disk), {PLACE: 9})
        cut(site_of(disk), {PLACE: 9})
        assert held(directory) == [(0, 1), (1, 2)]
        assert sorted(os.listdir(directory)) == [replicas.file_name(0)]
        if not was_killed:
            break
        change += 1
    assert change > 8


def test_a_log_is_never_without_a_stretch_in_its_middle_while_it_is_cut(tmp_path: Path) -> None:
    for disk in changes(tmp_path, THREE_SEGMENTS, 3):
        found = held(disk / "orders-0")
        assert found == [(0, 2), (2, 5), (5, 6), (6, 10), (10, 12), (12, 14)][: len(found)]


def test_places_are_read_from_names_of_directories() -> None:
    assert replicas.place_of("a-b-12") == ("a-b", 12)
    assert replicas.place_of("orders-0." + "0f" * 16 + "-future") == PLACE
    assert replicas.place_of("orders-0." + "0f" * 16 + "-delete") is None
    assert replicas.place_of("orders") is None


def test_an_empty_checkpoint_stays_empty() -> None:
    assert replicas.lowered("", {PLACE: 3}) == ""
    assert replicas.epochs_before("", 3) == ""
    assert replicas.offsets_in("") == {}


def test_a_replica_without_files_starts_at_its_checkpoint() -> None:
    empty = Replica(PLACE, {}, 7)
    assert (empty.start, empty.segments) == (7, [])
    assert replicas.why_not(replace(empty, was_cleaned=True), 9) == ""


@given(st.randoms(), st.integers(0, 30))
def test_lowered_positions_are_at_most_the_ends(rng: random.Random, end: int) -> None:
    positions = {(f"topic-{n}", n): rng.randrange(40) for n in range(5)}
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in positions.items()]
    text = "\n".join(["0", str(len(lines)), *lines, ""])
    ends = {("topic-1", 1): end, ("topic-4", 4): end}
    changed = replicas.offsets_in(replicas.lowered(text, ends))
    assert changed == {place: min(was, ends.get(place, was)) for place, was in positions.items()}
