"""Disks that a drill can fill: small file systems of their own, for whoever may mount them.

The runner mounts them for a scenario that asks for them, `faults` fills them. A full disk is then what it is
in earnest: the system refuses every further block, in files and in what is mapped into memory. Who is not
root has no such disks; there a limit on the size of files stands in for it, which only refuses to let files
grow. What was on a disk stays in its place when the drill ends. Disks that can be slow are in `devices`.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from twinlog.errors import PrerequisiteError, SiteError

SIZE_MIB = 384  # a broker is not started where less than 256 are left
BALLAST = "ballast"
BLOCK_BYTES, MANY_BLOCKS_BYTES = 4096, 1 << 20
COMMAND_TIMEOUT_S = 60.0


def can_mount() -> bool:
    """True for who may have disks of their own here."""
    return os.geteuid() == 0 and Path("/proc/filesystems").exists()


@contextmanager
def mounted(path: Path) -> Iterator[None]:
    """A small disk in this place while the block runs."""
    with placed(path, "-t", "tmpfs", "-o", f"size={SIZE_MIB}m,mode=700", "twinlog-drill"):
        yield


@contextmanager
def placed(path: Path, *what: str) -> Iterator[None]:
    """What these words tell `mount`, in this place while the block runs; its files stay there."""
    path.mkdir(parents=True)
    run("mount", *what, str(path))
    try:
        yield
    finally:
        kept = path.with_name(f"{path.name}.kept")
        make_room(path)
        run("cp", "-a", "--sparse=always", str(path), str(kept))
        run("umount", str(path))
        path.rmdir()
        kept.rename(path)


def disk_of(data: Path) -> Path | None:
    """The disk of its own that a data directory lies on; None if it has none."""
    return data.parent if data.parent.is_mount() else None


def fill(disk: Path) -> None:
    """Take every block that is left."""
    with (disk / BALLAST).open("wb", buffering=0) as file:
        for size in (MANY_BLOCKS_BYTES, BLOCK_BYTES):
            with _until_full():
                while True:
                    file.write(bytes(size))


@contextmanager
def _until_full() -> Iterator[None]:
    """Take a disk that is full for the end of the block."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def make_room(disk: Path) -> None:
    """Give the blocks back."""
    (disk / BALLAST).unlink(missing_ok=True)


def forbid_growth(process: psutil.Process) -> None:
    """Let a process make no file larger from now on."""
    if not psutil.LINUX:
        raise PrerequisiteError("a drill that fills a disk needs Linux", hint="uname -s")
    _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
    process.rlimit(psutil.RLIMIT_FSIZE, (1, hard))


def run(*words: str) -> None:
    """Run a command that must work."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    if done.returncode:
        raise SiteError(f"{' '.join(words)}: {done.stderr.strip()}", hint="is there a way to mount? mount")
