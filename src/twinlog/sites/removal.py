"""Deletes sites for good: their processes, their disks, and what the bus kept for them.

Called by `twinlog destroy`; `delete` also when a single broker is removed. What is to go is written
down first, so that a destroy that was killed is neither taken for a site that lost its disks nor
forgotten: run again, it goes on. The directory of the bus goes last, and its state is the last file in it.
"""

from __future__ import annotations

import errno
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from twinlog.errors import SiteError, UsageError
from twinlog.progress import Progress
from twinlog.sites import cgroups, processes, storage
from twinlog.sites.home import Home
from twinlog.sites.layout import Node
from twinlog.sites.state import BusState

KILL_TIMEOUT_S = 10.0
MARKS = ("state.json", ".gitignore", "pki", "secrets")  # of which every bus has one, also one half made


def destroy(home: Home, names: Sequence[str], progress: Progress, *, whole: bool = True) -> list[Path]:
    """End these sites and delete all that they had; returns what was deleted.

    With `whole` the keys and passwords of the bus go too, once it has no site left.
    """
    state = home.state_file.read()
    deleted = _destroy_sites(home, names, state, progress) if state is not None else []
    if whole and (state is None or not state.sites):
        for path in home.directory.iterdir():
            if path != home.state_file.path:
                delete(path)
        delete(home.directory)
        deleted = [path for path in deleted if not path.is_relative_to(home.directory)] + [home.directory]
    return deleted


def refuse_foreign(directory: Path) -> None:
    """What Twinlog has not made it does not delete: a link to elsewhere, a directory without its marks."""
    if directory.is_symlink():
        raise UsageError(
            "this is a link, not the directory of a bus", where=str(directory), hint=f"rm {directory}"
        )
    if any(directory.iterdir()) and not any((directory / mark).exists() for mark in MARKS):
        raise UsageError("Twinlog has made nothing here", where=str(directory), hint=f"ls -la {directory}")


def _destroy_sites(home: Home, names: Sequence[str], state: BusState, progress: Progress) -> list[Path]:
    present = [name for name in names if name in state.sites]
    state.destroying = sorted({*state.destroying, *present})
    layouts = [home.layout(name) for name in present]
    nodes = [node for layout in layouts for node in layout.local_nodes]
    try:
        home.state_file.write(state)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # On a full disk the logs of what is to go make room to write that down.
        _kill(nodes)
        for node in nodes:
            delete(node.directory / "log")
        home.state_file.write(state)
    _kill(nodes)
    deleted: list[Path] = []
    for layout in layouts:
        for node in layout.local_nodes:
            outside = (path for path in node.data if not path.is_relative_to(home.directory))
            deleted += [path for path in outside if path.exists()]
            for path in node.data:
                delete(path)
                delete(storage.making_of(path))
            cgroups.forget(node.directory)
        own = home.directory / "sites" / layout.name
        delete(own)
        deleted.append(own)
        elsewhere = [node.name for node in layout.nodes if node.remote]
        if elsewhere:
            progress.note(f"what runs elsewhere is to be deleted there: {', '.join(elsewhere)}")
        progress.note(f"site {layout.name} is gone")
    for name in present:
        del state.sites[name]
        state.applied.pop(name, None)
    state.destroying = [name for name in state.destroying if name not in present]
    home.state_file.write(state)
    return deleted


def _kill(nodes: Sequence[Node]) -> None:
    running = list(processes.find(nodes).values())
    processes.end(running, signal.SIGKILL)
    left = processes.wait(running, KILL_TIMEOUT_S)
    if left:
        pids = " ".join(str(process.pid) for process in left)
        raise SiteError(f"nothing was deleted: processes {pids} do not end", hint=f"ps -fp {pids}")


def delete(path: Path) -> None:
    """Delete a file or a directory with all that is in it; what is gone already is no error."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise SiteError(
            f"cannot be deleted: {error.strerror}", where=str(error.filename or path), hint=f"ls -ld {path}"
        ) from error
