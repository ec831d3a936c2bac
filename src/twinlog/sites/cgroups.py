"""CPU limits of nodes through control groups, version 1 or 2, where this user may make them.

Where it may not, the limit is not applied and the caller gets a remark that says so; a bus runs
without limits rather than not at all.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


def group_name(node_directory: Path) -> str:
    """The group of a node; its directory may be longer than a group's name can be."""
    return "twinlog-" + hashlib.sha256(str(node_directory).encode()).hexdigest()[:16]


def limit(pid: int, node_directory: Path, cpus: float, root: Path = ROOT) -> str:
    """Hold a process to so many CPUs; returns a remark when that could not be done."""
    name = group_name(node_directory)
    quota = int(cpus * PERIOD_US)
    try:
        if (root / "cgroup.controllers").exists():
            group = root / name
            group.mkdir(exist_ok=True)
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        elif (root / "cpu").is_dir():
            group = root / "cpu" / name
            group.mkdir(exist_ok=True)
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            return f"cpus: {cpus:g} is not applied: this machine has no control groups"
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        return f"cpus: {cpus:g} is not applied: control groups cannot be written here ({error.strerror})"
    return ""


def forget(node_directory: Path, root: Path = ROOT) -> None:
    """Remove a node's group once its process is gone."""
    name = group_name(node_directory)
    for group in (root / name, root / "cpu" / name):
        try:
            group.rmdir()
        except OSError:
            continue
