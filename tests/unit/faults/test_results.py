"""The file of faults: written, read back, counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.faults.kinds import Kind
from tests.faults.results import Taken, Verification, append, counted, read, table

GOOD = Verification(partitions=4, offsets=900, lines=800, acknowledged=700)
TAKEN = Taken(Kind.WORKER, 7, 0, "2024-01-02T03:04:05Z", 1.5, "worker 12 killed", verification=GOOD)


def test_faults_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "results" / "faults.jsonl"
    broken = replace(TAKEN, verification=replace(GOOD, findings=("crowd-0: lost: ä of offset 3",)))
    append(path, [TAKEN])
    append(path, [broken, replace(TAKEN, settings={"brokers": 2}, leader=True)])
    assert read(path) == [TAKEN, broken, replace(TAKEN, settings={"brokers": 2}, leader=True)]
    assert read(tmp_path / "none") == []


def test_only_faults_that_hit_and_were_verified_count() -> None:
    broken = replace(TAKEN, verification=replace(GOOD, findings=("lost",)))
    unseen = replace(TAKEN, verification=replace(GOOD, lines=0))
    missed = replace(TAKEN, hit=False)
    assert counted([TAKEN, broken, unseen, missed, replace(TAKEN, kind=Kind.DRIVER)]) == {
        Kind.WORKER: 1,
        Kind.DRIVER: 1,
    }


def test_table_has_a_row_for_every_kind_and_counts_each_slice_once() -> None:
    text = table([TAKEN, TAKEN, replace(TAKEN, slice=1, leader=True, kind=Kind.STANDBY_BROKER)])
    for kind in Kind:
        assert f"| {kind} |" in text
    assert "| worker killed | kill -9 of one Python worker of Spark | 2 | 25 | 0 | 0 | 0 |" in text
    assert "1, 1 of them the leader" in text
    assert "3 faults in 2 slices; compared: 1,800 offsets" in text
