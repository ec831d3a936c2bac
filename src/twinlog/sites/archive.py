"""The class-data archive: Kafka's classes as the JVM has them after loading, made once a machine.

Mapping it halves the start of a broker. It is made by a training run: one throwaway node of a site
of its own, configured as real nodes are, that serves a few requests on every listener and writes
the archive as it ends. An archive fits one Java and one ordered class path, which are in its name;
the JVM ignores one that does not fit, so a start never fails because of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from twinlog.errors import PrerequisiteError
from twinlog.progress import Progress
from twinlog.sites.java import Java
from twinlog.sites.processes import MAIN_CLASS

END_TIMEOUT_S = 120
SCRATCH = "training-"
NAME = "writing the class-data archive (once on this machine)"

Training = Callable[[Path, Sequence[str]], "subprocess.Popen[bytes]"]


def path_for(cache: Path, java: Java, class_path: Sequence[Path]) -> Path:
    """Where the archive for this Java and these jars is kept."""
    key = hashlib.sha256("\n".join([java.release, str(java.binary), *map(str, class_path)]).encode())
    return cache / "archives" / f"{key.hexdigest()[:20]}.jsa"


def ensure_archive(
    cache: Path, java: Java, class_path: Sequence[Path], train: Training, progress: Progress
) -> Path:
    """The archive, made by a training run if this machine has none yet.

    `train(directory, options)` starts a node with these JVM options, uses it, and returns it
    running; ending it is done here.
    """
    archive = path_for(cache, java, class_path)
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (archive.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _clear_abandoned(archive.parent)
            progress.begin(NAME)
            _make(archive, train)
            progress.end(NAME)
    return archive


def _clear_abandoned(directory: Path) -> None:
    """End and delete what a killed training run left; whoever has the lock knows that none goes on."""
    for scratch in directory.glob(f"{SCRATCH}*"):
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                main_class, *settings = process.cmdline()[-2:] or [""]
                if main_class == MAIN_CLASS and settings[0].startswith(f"{scratch}/"):
                    process.kill()
                    process.wait(END_TIMEOUT_S)
        shutil.rmtree(scratch, ignore_errors=True)


def _make(archive: Path, train: Training) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=archive.parent))
    making = scratch / "making.jsa"
    node: subprocess.Popen[bytes] | None = None
    try:
        node = train(
            scratch, [f"-XX:ArchiveClassesAtExit={making}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        )
        node.send_signal(signal.SIGTERM)
        node.wait(END_TIMEOUT_S)
        if not making.exists():
            raise PrerequisiteError(
                "the training run wrote no class-data archive",
                where=str(scratch),
                hint=f"df -h {archive.parent}",
            )
        os.rename(making, archive)
    finally:
        if node is not None and node.poll() is None:
            node.kill()
            node.wait()
        shutil.rmtree(scratch, ignore_errors=True)
