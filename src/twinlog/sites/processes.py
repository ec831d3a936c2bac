"""Starts, finds and ends the JVMs of nodes.

Nothing is remembered: a node's process is the one whose command line carries the node's own
argument file, looked up each time. A Twinlog that was killed leaves its brokers running and the
next one finds them; a recycled pid can never be mistaken for a broker.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

from twinlog.errors import SiteError
from twinlog.sites import cgroups
from twinlog.sites.java import Java, environment
from twinlog.sites.layout import Node

ARGUMENT_FILE = "jvm.args"
MAIN_CLASS = "kafka.Kafka"
CONSOLE_LOG = "console.log"
LOOK_AGAIN_S = 0.05


def marker(node: Node) -> str:
    """The argument by which a node's process is known."""
    return f"@{node.directory / ARGUMENT_FILE}"


def find(nodes: Iterable[Node]) -> dict[int, psutil.Process]:
    """The running processes of these nodes, by node id."""
    wanted = {marker(node): node.id for node in nodes}
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            arguments = process.cmdline()
            # The whole shape, so that an editor or a pager of that file is not taken for the node.
            if arguments[2:3] == [MAIN_CLASS] and arguments[1] in wanted and is_running(process):
                found[wanted[arguments[1]]] = process
        except psutil.Error:
            continue
    return found


def start(node: Node, java: Java) -> tuple[psutil.Process, str]:
    """Start a configured node and return its process and a remark on its CPU limit, if any."""
    log = node.directory / "log"
    log.mkdir(parents=True, exist_ok=True)
    command: Sequence[str] = [
        str(java.binary),
        marker(node),
        MAIN_CLASS,
        str(node.directory / "server.properties"),
    ]
    with (log / CONSOLE_LOG).open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=node.directory,
            start_new_session=True,  # Ctrl-C in the terminal is for Twinlog, which then decides
            env=environment(node.withheld),
        )
    remark = cgroups.limit(child.pid, node.directory, node.cpus) if node.cpus else ""
    return psutil.Process(child.pid), remark


def is_running(process: psutil.Process) -> bool:
    """True while the process lives; one that ended but was not waited for does not count.

    The first thread of one that was killed may be gone before the others, which keep its ports and disks.
    """
    try:
        if process.is_running() and process.status() == psutil.STATUS_ZOMBIE:
            return process.num_threads() > 1
        return process.is_running()
    except psutil.Error:
        return False


def mentions(process: psutil.Process, *words: str) -> bool:
    """True if the process lives and its command line has one of the words; one that just ended has none."""
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return any(word in line for word in words) and is_running(process)


def end(processes: Sequence[psutil.Process], how: signal.Signals) -> None:
    """Send a signal to each; one that is gone already is no error."""
    for process in processes:
        try:
            process.send_signal(how)  # psutil compares the start time first: never a stranger
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied as error:
            raise SiteError(
                f"process {process.pid} belongs to another user", hint=f"ps -fp {process.pid}"
            ) from error


def wait(processes: Sequence[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Wait until they ended; returns those that did not."""
    # Not psutil's own wait: one that ended is a zombie until its parent, the supervisor perhaps, looks.
    pause = threading.Event()
    end = time.monotonic() + timeout_s
    while alive := [process for process in processes if is_running(process)]:
        if time.monotonic() > end:
            break
        pause.wait(LOOK_AGAIN_S)
    return alive


def console_tail(node: Node, lines: int = 5) -> str:
    """The last lines that a node wrote to its console: why it did not start, often."""
    return _tail(node.directory / "log" / CONSOLE_LOG, lines)


def _tail(path: Path, lines: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])
