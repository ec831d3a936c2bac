"""Files that are either the old ones or the new ones, never half of each.

Used by everything that keeps state, keys or configuration on disk. A write goes to a fresh file
in the same directory, is flushed, takes the final name as one step, and the directory is flushed
too, so that neither a killed command nor a power cut leaves half a file; what a killed command
left beside it, the next write removes. A secret is readable by its owner only from its first byte on.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path

SECRET_MODE = 0o600
PLAIN_MODE = 0o644
PRIVATE_DIRECTORY_MODE = 0o700


def write_secret(path: Path, data: str | bytes) -> None:
    """Replace a file that only its owner may read."""
    _replace(path, data, SECRET_MODE)


def write_text(path: Path, data: str | bytes) -> None:
    """Replace a file that everybody may read."""
    _replace(path, data, PLAIN_MODE)


def make_private_directory(path: Path) -> None:
    """Make a directory that only its owner may enter, also if it exists with other rights.

    Directories above it that have to be made are private too: `mkdir` gives its mode to the last one only.
    """
    for missing in [parent for parent in reversed(path.parents) if not parent.exists()]:
        missing.mkdir(exist_ok=True, mode=PRIVATE_DIRECTORY_MODE)
    path.mkdir(exist_ok=True, mode=PRIVATE_DIRECTORY_MODE)
    path.chmod(PRIVATE_DIRECTORY_MODE)


def _replace(path: Path, data: str | bytes, mode: int) -> None:
    content = data.encode() if isinstance(data, str) else data
    _remove_abandoned(path)
    fresh = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    _flush_directory(path.parent)


def _remove_abandoned(path: Path) -> None:
    """Remove fresh files whose writers were killed; their pids are in their names."""
    for fresh in path.parent.glob(f".{glob.escape(path.name)}.*-*.tmp"):
        writer = fresh.name.rpartition(".tmp")[0].rpartition(".")[2].partition("-")[0]
        if writer.isdigit() and not _is_alive(int(writer)):
            fresh.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's, and alive
    return True


def _flush_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
