"""Disks that a drill can slow down: block devices of their own, which the kernel holds to a rate of writes.

The runner mounts them for a scenario that asks for them, `faults` slows them down. A device is a file (loop)
with ext4 on it, mounted so that each write goes to the device before it is answered (`sync`); else memory
would hide for minutes how slow it is. A broker is slowed down by a control group, version 1 or 2, in which
its writes to that device are held back; reads are not. Nothing of it is simulated, so it needs root, a kernel
with loop devices and with throttling, util-linux and e2fsprogs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from twinlog.drills import disks
from twinlog.errors import PrerequisiteError

ROOT = Path("/sys/fs/cgroup")
SIZE_MIB = 512  # of which ext4 takes some, and a broker is not started where less than 256 are left
TOOLS = ("mount", "losetup", "mkfs.ext4")
PROBES, PROBE_BYTES = 5, 4096


class Throttle:
    """The control group in which writes to one device are held back."""

    def __init__(self, disk: Path, root: Path = ROOT) -> None:
        self._root = root if (root / "cgroup.controllers").exists() else root / "blkio"
        self._is_second = self._root == root
        name = "twinlog-drill-" + hashlib.sha256(str(disk).encode()).hexdigest()[:16]
        self.group = self._root / name
        self._disk = disk

    @property
    def _limit(self) -> Path:
        return self.group / ("io.max" if self._is_second else "blkio.throttle.write_iops_device")

    def hold(self, pid: int, writes_per_s: int) -> None:
        """Hold the writes of a process to this device back from now on."""
        try:
            if self._is_second:
                (self._root / "cgroup.subtree_control").write_text("+io")
            self.group.mkdir(exist_ok=True)
            limit = f"wiops={writes_per_s}" if self._is_second else str(writes_per_s)
            self._limit.write_text(f"{_number(self._disk)} {limit}")
            (self.group / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            raise PrerequisiteError(
                f"a drill that slows a disk down needs control groups that hold writes back: {error}",
                hint=f"ls {self._root}",
            ) from error

    def release(self) -> None:
        """Let writes go on as they come; the process stays in the group, which holds nothing back then."""
        if self.group.exists():
            self._limit.write_text(f"{_number(self._disk)} {'wiops=max' if self._is_second else '0'}")

    def forget(self) -> None:
        """Remove the group when nobody is in it."""
        with suppress(OSError):
            self.group.rmdir()


@contextmanager
def mounted(path: Path) -> Iterator[None]:
    """A disk that can be slowed down in this place while the block runs."""
    _need()
    image = path.with_name(f"{path.name}.device")
    image.parent.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(SIZE_MIB << 20)
    try:
        # Without a journal the process that writes does all the writing itself, and is the one held back.
        disks.run("mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", str(image))
        with disks.placed(path, "-o", "loop,sync", str(image)):
            (path / "lost+found").rmdir()
            try:
                yield
            finally:
                throttle = Throttle(path)
                throttle.release()
                throttle.forget()
    finally:
        image.unlink()


def write_s(disk: Path) -> float:
    """How long a small write to a disk takes now, for whoever is held back there if anybody is."""
    group = Throttle(disk).group
    join = f"echo $$ > {group}/cgroup.procs && " if group.exists() else ""
    file = disk / "probe"
    began_s = time.monotonic()
    disks.run(
        "sh", "-c", f"{join}exec dd if=/dev/zero of='{file}' bs={PROBE_BYTES} count={PROBES} status=none"
    )
    took_s = time.monotonic() - began_s
    file.unlink()
    return took_s / PROBES


def _number(disk: Path) -> str:
    device = disk.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def _need() -> None:
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise PrerequisiteError(f"a drill that slows a disk down needs `{tool}`", hint=f"which {tool}")
    if os.geteuid() != 0:
        raise PrerequisiteError("a drill that slows a disk down must be root", hint="sudo twinlog drill run")
    found = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise PrerequisiteError("a drill that slows a disk down needs a loop device", hint="losetup --find")
