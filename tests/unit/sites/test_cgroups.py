"""CPU limits through control groups of both versions."""

from __future__ import annotations

from pathlib import Path

from twinlog.sites import cgroups

NODE = Path("/bus/.twinlog/sites/a/broker-1")


def test_version_2_gets_quota_and_period(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    assert cgroups.limit(4711, NODE, 0.75, tmp_path) == ""
    (group,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert (group / "cpu.max").read_text() == "75000 100000"
    assert (group / "cgroup.procs").read_text() == "4711"


def test_version_1_gets_quota_and_period(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    assert cgroups.limit(4711, NODE, 2, tmp_path) == ""
    (group,) = (tmp_path / "cpu").iterdir()
    assert (group / "cpu.cfs_quota_us").read_text() == "200000"
    assert (group / "cpu.cfs_period_us").read_text() == "100000"
    assert (group / "cgroup.procs").read_text() == "4711"


def test_a_machine_without_groups_gets_a_remark_and_no_error(tmp_path: Path) -> None:
    assert "not applied" in cgroups.limit(4711, NODE, 0.5, tmp_path)


def test_groups_that_cannot_be_written_get_a_remark_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu")
    name = cgroups.group_name(NODE)
    (tmp_path / name).write_text("a file where the group should be")
    assert "cannot be written here" in cgroups.limit(4711, NODE, 0.5, tmp_path)


def test_forget_removes_the_empty_group_and_minds_none(tmp_path: Path) -> None:
    cgroups.forget(NODE, tmp_path)
    (tmp_path / cgroups.group_name(NODE)).mkdir()
    cgroups.forget(NODE, tmp_path)
    assert list(tmp_path.iterdir()) == []
