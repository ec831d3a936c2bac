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

from twinlog.progress import Progress
from twinlog.sites.java import Java
from twinlog.sites.processes import MAIN_CLASS
from twinlog.sites.properties import AOT_SUFFIX

END_TIMEOUT_S = 120
AOT_SINCE = 25  # JEP 514: archives that also hold linked classes and profiles, written in one run
SCRATCH = "training-"
NAME = "writing the class-data archive (once on this machine)"

Training = Callable[[Path, Sequence[str]], "subprocess.Popen[bytes]"]


def path_for(cache: Path, java: Java, class_path: Sequence[Path]) -> Path:
    """Where the archive for this Java and these jars is kept."""
    key = hashlib.sha256("\n".join([java.release, str(java.binary), *map(str, class_path)]).encode())
    suffix = AOT_SUFFIX if java.major >= AOT_SINCE else ".jsa"
    return cache / "archives" / f"{key.hexdigest()[:20]}{suffix}"


def writing_options(archive: Path) -> list[str]:
    """Let a JVM write an archive as it ends."""
    if archive.suffix == AOT_SUFFIX:
        return [f"-XX:AOTCacheOutput={archive}", "-Xlog:aot=off", "-Xlog:cds=off"]
    return [f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def ensure_archive(
    cache: Path, java: Java, class_path: Sequence[Path], train: Training, progress: Progress
) -> Path | None:
    """The archive, made by a training run if this machine has none yet; None if this Java makes none.

    `train(directory, options)` starts a node with these JVM options, uses it, and returns it
    running; ending it is done here.
    """
    archive = path_for(cache, java, class_path)
    tried = archive.with_suffix(".none")
    if archive.exists():
        return archive
    if tried.exists():
        return None
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (archive.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists() and not tried.exists():
            _clear_abandoned(archive.parent)
            progress.begin(NAME)
            made = _make(archive, train)
            progress.end(NAME)
            if not made:
                # Some builds of Java come without the base archive that ours would stand on.
                tried.touch()
                progress.note("this Java writes no class-data archive; nodes start without one")
    return archive if archive.exists() else None


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


def _make(archive: Path, train: Training) -> bool:
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=archive.parent))
    making = scratch / f"making{archive.suffix}"
    node: subprocess.Popen[bytes] | None = None
    try:
        node = train(scratch, writing_options(making))
        node.send_signal(signal.SIGTERM)
        node.wait(END_TIMEOUT_S)
        if making.exists():
            os.rename(making, archive)
        return archive.exists()
    finally:
        if node is not None and node.poll() is None:
            node.kill()
            node.wait()
        shutil.rmtree(scratch, ignore_errors=True)
