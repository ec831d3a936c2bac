"""Logs cut by a process that is killed on the way, or while another process has the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.sites.replica_files import (
    PLACE,
    THREE_SEGMENTS,
    Event,
    Log,
    content,
    held,
    site_of,
    write_events,
    written,
)
from twinlog.errors import SiteError
from twinlog.sites import cutting, replicas
from twinlog.sites.cutting import cut
from twinlog.sites.layout import SiteLayout
from twinlog.wire.batches import CONTROL_BIT, TRANSACTIONAL_BIT


def test_a_disk_that_a_process_has_locked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "LOCK_TIMEOUT_S", 0.2)
    disk = tmp_path / "disk"
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
