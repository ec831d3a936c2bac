"""How long work is shown: live on a terminal, as plain lines elsewhere, not at all with -q.

Lower layers know only `twinlog.progress.Progress`; the frame hands them one of these. Everything
goes to stderr. With `-o json` and no terminal nothing is shown, so that a script that reads stderr
finds only JSON there. Tasks may run in several threads at once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

from twinlog.progress import Progress, Silent

if TYPE_CHECKING:  # rich is imported when a terminal is there to draw on
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

WORTH_A_LINE_S = 1.0  # a task that took longer than this gets a line when it ends


@contextmanager
def watched(*, quiet: bool, as_json: bool) -> Iterator[Progress]:
    """The right display for this call; it is gone from the screen when the block ends."""
    on_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    if quiet or (as_json and not on_terminal):
        yield Silent()
    elif on_terminal:
        with live() as display:
            yield display
    else:
        yield Lines(sys.stderr)


@dataclass
class _Task:
    total: int | None
    began_s: float
    count: int = 0


class Lines:
    """A line when a task begins, at each quarter of a counted one, and at the end of a long one."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._start_s = clock()
        self._tasks: dict[str, _Task] = {}
        self._lock = threading.Lock()

    def begin(self, name: str, total: int | None = None) -> None:
        """Say that the task starts."""
        with self._lock:
            self._tasks[name] = _Task(total, self._clock())
            self._line(name)

    def advance(self, name: str, count: int = 1) -> None:
        """Say so when another quarter is done."""
        with self._lock:
            task = self._tasks[name]
            before, task.count = task.count, task.count + count
            if task.total and before * 4 // task.total < task.count * 4 // task.total:
                self._line(f"{name}: {task.count} of {task.total}")

    def end(self, name: str, outcome: str = "") -> None:
        """Say how it ended where there is something to say, or where somebody has waited."""
        with self._lock:
            took_s = self._clock() - self._tasks.pop(name).began_s
            if outcome or took_s >= WORTH_A_LINE_S:
                self._line(f"{name}: {outcome or 'done'}")

    def note(self, text: str) -> None:
        """A line as it is."""
        with self._lock:
            self._line(text)

    def _line(self, text: str) -> None:
        self._stream.write(f"[{self._clock() - self._start_s:5.1f}s] {text}\n")
        self._stream.flush()


@contextmanager
def live(console: Console | None = None) -> Iterator[Progress]:
    """A display that redraws itself: running tasks below, ended ones as lines above."""
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    if console is None:
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        console = Console(stderr=True, highlight=False, markup=False, color_system=colours)
    columns = (
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[counted]}", markup=False),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        yield Live(bars)


class Live:
    """Tasks of a rich display by name."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def begin(self, name: str, total: int | None = None) -> None:
        """Add the task to the running ones."""
        with self._lock:
            self._tasks[name] = self._bars.add_task(name, total=total, counted=_counted(0, total))

    def advance(self, name: str, count: int = 1) -> None:
        """Count on."""
        with self._lock:
            task = self._bars.tasks[self._bars.task_ids.index(self._tasks[name])]
            total = None if task.total is None else int(task.total)
            self._bars.update(task.id, advance=count, counted=_counted(int(task.completed) + count, total))

    def end(self, name: str, outcome: str = "") -> None:
        """Move the task from the running ones to the lines above."""
        with self._lock:
            number = self._tasks.pop(name)
            took_s = self._bars.tasks[self._bars.task_ids.index(number)].elapsed or 0.0
            self._bars.remove_task(number)
        self.note(f"{name}: {outcome or 'done'} ({took_s:.1f}s)")

    def note(self, text: str) -> None:
        """A line above the running tasks."""
        self._bars.console.print(text)


def _counted(count: int, total: int | None) -> str:
    return "" if total is None else f"{count} of {total}"
