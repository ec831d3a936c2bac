"""Disks of a drill: full when filled, with room again afterwards, and kept at the end. Needs root."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from twinlog.drills import disks

pytestmark = pytest.mark.cluster


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
