"""Disks of a drill: full when filled, slow when held back, kept at the end. Needs root."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from twinlog.drills import devices, disks

pytestmark = pytest.mark.cluster

WRITES_PER_S = 10


def test_small_disk_is_full_gets_room_again_and_leaves_its_files_behind(tmp_path: Path) -> None:
    disk = tmp_path / "disks" / "a"
    data = disk / "a-broker-1"
    with disks.mounted(disk):
        assert disks.disk_of(data) == disk
        data.mkdir()
        log = data / "0.log"
        log.write_bytes(b"before")
        disks.fill(disk)
        with pytest.raises(OSError) as raised:
            (data / "1.log").write_bytes(b"one block more")
        assert raised.value.errno == errno.ENOSPC
        disks.make_room(disk)
        log.write_bytes(b"after")
        disks.fill(disk)
    assert not disk.is_mount()
    assert [path.name for path in disk.iterdir()] == [data.name]
    assert (data / "0.log").read_bytes() == b"after"


def test_disk_is_gone_when_what_used_it_failed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the drill failed"), disks.mounted(tmp_path / "disk"):
        raise ValueError("the drill failed")
    assert not (tmp_path / "disk").is_mount()


def test_disk_that_is_slowed_down_is_as_fast_as_before_when_released_and_leaves_its_files(
    tmp_path: Path,
) -> None:
    disk = tmp_path / "disks" / "a"
    log = disk / "a-broker-1" / "0.log"
    throttle = devices.Throttle(disk)
    with devices.mounted(disk):
        assert disks.disk_of(log.parent) == disk
        log.parent.mkdir()
        log.write_bytes(b"record")
        stopped = subprocess.Popen(["sleep", "infinity"])
        try:
            throttle.hold(stopped.pid, WRITES_PER_S)
            slow_s = devices.write_s(disk)
            throttle.release()
            assert slow_s >= 1 / WRITES_PER_S > devices.write_s(disk)
        finally:
            stopped.kill()
            stopped.wait()
    assert not disk.is_mount()
    assert not throttle.group.exists()
    assert [path.name for path in disk.parent.iterdir()] == [disk.name]
    assert [path.name for path in disk.iterdir()] == [log.parent.name]
    assert log.read_bytes() == b"record"
