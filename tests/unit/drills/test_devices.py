"""What control groups are told when a disk is to be slow, in both versions, and what is said without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from twinlog.drills.devices import Throttle
from twinlog.errors import PrerequisiteError

PID = 4711


def number(disk: Path) -> str:
    device = disk.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def test_first_version_is_told_the_rate_and_the_process_and_no_rate_when_healed(tmp_path: Path) -> None:
    (tmp_path / "blkio").mkdir()
    throttle = Throttle(tmp_path, root=tmp_path)
    throttle.hold(PID, 60)
    assert throttle.group.parent == tmp_path / "blkio"
    limit = throttle.group / "blkio.throttle.write_iops_device"
    assert limit.read_text() == f"{number(tmp_path)} 60"
    assert (throttle.group / "cgroup.procs").read_text() == str(PID)
    throttle.release()
    assert limit.read_text() == f"{number(tmp_path)} 0"


def test_second_version_is_told_the_rate_and_the_process_and_no_rate_when_healed(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu io memory")
    throttle = Throttle(tmp_path, root=tmp_path)
    throttle.hold(PID, 60)
    assert throttle.group.parent == tmp_path
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+io"
    assert (throttle.group / "io.max").read_text() == f"{number(tmp_path)} wiops=60"
    assert (throttle.group / "cgroup.procs").read_text() == str(PID)
    throttle.release()
    assert (throttle.group / "io.max").read_text() == f"{number(tmp_path)} wiops=max"


def test_machine_without_such_groups_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="hold writes back"):
        Throttle(tmp_path, root=tmp_path).hold(PID, 60)


def test_two_disks_have_groups_of_their_own_and_one_that_is_not_slow_has_none(tmp_path: Path) -> None:
    one, other = Throttle(tmp_path / "a", root=tmp_path), Throttle(tmp_path / "b", root=tmp_path)
    assert one.group != other.group
    one.release()
    one.forget()
    assert not one.group.exists()
