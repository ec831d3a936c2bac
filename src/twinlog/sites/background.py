"""A process of Twinlog's own that goes on after the command that started it: at most one of each kind.

The supervisor and the mirror are such. Nothing remembers them: whoever runs holds a lock, and its
file says who that is (a pid alone may come to be a stranger's; with the start time it is one process
for ever). It tells that it works by writing its report.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from twinlog.errors import SiteError, UsageError
from twinlog.sites import processes

LOOK_AGAIN_S = 0.05


@dataclass(frozen=True)
class Background:
    """One kind of background process of one bus."""

    name: str  # "supervisor"
    directory: Path
    command: tuple[str, ...]
    timeout_s: float = 10.0  # to start, and to end

    @property
    def report(self) -> Path:
        """What it writes when it works."""
        return self.directory / f"{self.name}.json"

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.directory / f"{self.name}.log"

    @property
    def _lock(self) -> Path:
        return self.directory / f"{self.name}.lock"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the one process of this kind, or be told that there is one."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"the {self.name} of this bus runs already",
                    where=str(self.directory),
                    hint="twinlog status",
                ) from None
            file.truncate(0)
            file.write(f"{os.getpid()} {psutil.Process().create_time()}")
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)

    def find(self) -> psutil.Process | None:
        """The process, if it runs, however it was started."""
        try:
            number, started = self._lock.read_text().split()
            process = psutil.Process(int(number))
            same = process.create_time() == float(started) and processes.is_running(process)
        except (FileNotFoundError, ValueError, psutil.Error):
            return None
        return process if same else None

    def launch(self) -> int:
        """Leave one behind; one that runs already stays. Returns its pid."""
        return self.wait(self.spawn())

    def spawn(self) -> subprocess.Popen[bytes] | psutil.Process:
        """Begin one, or find the one that runs already; it may not work yet."""
        present = self.find()
        if present is not None:
            return present
        self.directory.mkdir(parents=True, exist_ok=True)
        self.report.unlink(missing_ok=True)
        with self.log.open("ab") as output:
            return subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def wait(self, begun: subprocess.Popen[bytes] | psutil.Process) -> int:
        """Return the pid when what was begun works; one that does not is ended."""
        if isinstance(begun, subprocess.Popen):
            try:
                self._wait_for_report(begun)
            except BaseException:
                begun.terminate()
                raise
        return begun.pid

    def dismiss(self) -> bool:
        """End it, if it runs; True if it did."""
        process = self.find()
        if process is not None:
            processes.end([process], signal.SIGTERM)
            if processes.wait([process], self.timeout_s):
                raise SiteError(
                    f"the {self.name} (pid {process.pid}) does not end", hint=f"ps -fp {process.pid}"
                )
        self.report.unlink(missing_ok=True)
        return process is not None

    def _wait_for_report(self, child: subprocess.Popen[bytes]) -> None:
        pause = threading.Event()
        end = time.monotonic() + self.timeout_s
        while not self.report.exists():
            if child.poll() is not None or time.monotonic() > end:
                raise SiteError(
                    f"the {self.name} did not start", where=str(self.log), hint=f"tail {self.log}"
                )
            pause.wait(LOOK_AGAIN_S)
