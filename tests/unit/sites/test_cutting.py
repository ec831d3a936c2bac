"""Logs cut at an offset: files as a broker leaves them, written here batch by batch."""

from __future__ import annotations

import fcntl
import os
import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sites.replica_files import (
    PLACE,
    THREE_SEGMENTS,
    Event,
    Log,
    batch,
    content,
    held,
    inside,
    site_of,
    snapshot,
    write_disk,
    write_events,
    write_log,
    written,
)
from twinlog.errors import SiteError, UsageError
from twinlog.sites import replicas
from twinlog.sites.cutting import Outcome, cut
from twinlog.sites.replicas import Kept, Replica, Segment
from twinlog.wire.batches import CONTROL_BIT, TRANSACTIONAL_BIT

LOGS = st.builds(
    Log,
    st.lists(st.integers(1, 4), min_size=1, max_size=12),
    st.frozensets(st.integers(0, 10), max_size=5),
)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return tmp_path / "disk"


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
        assert outcome.tail == max(0, (before[-1][1] if before else start) - point)
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
    assert outcome == Outcome(PLACE, 8, 1, tail=end - 8, why_not="its log starts at offset 9")
    assert content(disk) | {".lock": b""} == before | {".lock": b""}
    (outcome,) = cut(site_of(disk), {PLACE: end - 1})
    assert outcome.why_not == "" and outcome.cut_replicas == 1


def test_a_partition_with_one_replica_that_cannot_be_cut_is_cut_nowhere(tmp_path: Path) -> None:
    disks = tmp_path / "one", tmp_path / "two"
    for number, (disk, start) in enumerate(zip(disks, (0, 12), strict=True), 1):
        written(disk, THREE_SEGMENTS, start)
        write_disk(disk, 20, node=number)
    (outcome,) = cut(site_of(*disks), {PLACE: 8})
    assert outcome == Outcome(PLACE, 8, 2, tail=18, why_not="its log starts at offset 12")
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


def test_after_a_cut_a_broker_can_lock_the_disk(disk: Path) -> None:
    written(disk, THREE_SEGMENTS)
    cut(site_of(disk), {PLACE: 8})
    with (disk / ".lock").open("ab") as handle:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


EVENTS = st.lists(
    st.builds(
        Event, st.integers(1, 3), st.sampled_from([0, TRANSACTIONAL_BIT, TRANSACTIONAL_BIT | CONTROL_BIT])
    ),
    min_size=1,
    max_size=30,
)


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
