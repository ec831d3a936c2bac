"""Programs in Java that are measured beside ours: each a process of its own, with a log of its own.

MirrorMaker (`bench/peers.py`) and the sums of Kafka Streams (`bench/totals.py`) are such.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from twinlog.durable import write_secret, write_text
from twinlog.machine import cache_directory
from twinlog.progress import Silent
from twinlog.sites.jars import ensure_jars, parse_lock
from twinlog.sites.java import find_java
from twinlog.sites.properties import log_configuration

END_TIMEOUT_S = 30.0


class Program:
    """One program, run again and again in one directory; who it is says how it is started."""

    def __init__(self, directory: Path, jars: Sequence[Path], options: Sequence[str]) -> None:
        self.directory = directory
        self.directory.mkdir(exist_ok=True)
        self._classes = ":".join(map(str, [directory, *jars]))
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self,
        settings: str,
        main: str,
        *arguments: str,
        around: Callable[[Sequence[str]], list[str]] = list,
    ) -> None:
        """Begin `main` with a file of settings as its first argument; `around` says on which machine."""
        own = self.directory / "client.properties"
        write_secret(own, settings)
        logging = self.directory / "log4j2.properties"
        write_text(logging, log_configuration(str(self.directory / "log")))
        command = [
            str(find_java().binary),
            *self._options,
            f"-Dlog4j2.configurationFile={logging}",
            "-cp",
            self._classes,
            main,
            str(own),
            *arguments,
        ]
        with (self.directory / "output").open("ab") as output:
            self._process = subprocess.Popen(
                around(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def stop(self) -> None:
        """End in order; harmless if it does not run."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """End all of its processes at once."""
        kill(self.processes())

    def processes(self) -> list[psutil.Process]:
        """All of its processes."""
        if self._process is None or self._process.poll() is not None:
            return []
        return family(psutil.Process(self._process.pid))

    @property
    def log(self) -> Path:
        """Where it says what troubles it."""
        return self.directory / "log" / "server.log"


def locked_jars(lock: Path) -> list[Path]:
    """The jars of a lock, fetched if need be: to be called where there is a way to the outside."""
    return list(ensure_jars(cache_directory(), Silent(), parse_lock(lock.read_text())))


def family(process: psutil.Process | None) -> list[psutil.Process]:
    """A process and all that come from it."""
    if process is None:
        return []
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill(processes: Sequence[psutil.Process]) -> None:
    """End processes at once, and return when they have ended."""
    for process in processes:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(processes, END_TIMEOUT_S)
