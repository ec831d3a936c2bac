"""The mirror as a program: `python -m twinlog.pipeline.mirror FILE`, left behind by `twinlog link up`.

It is the Spark driver. It runs until SIGTERM, or until a later mirror takes over. What it does is
decided by the bus's state (who is active) and by a flag beside its report (paused); all it knows
is on the board, which it writes once a second.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from twinlog.errors import TwinlogError, UsageError
from twinlog.pipeline.board import Board, write_board
from twinlog.pipeline.chores import Chores
from twinlog.pipeline.driver import TURN_S, Driver, Sites, Ways
from twinlog.pipeline.spark import Jobs
from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.spec.model import Identity, Role

DIRECTORY = "link"
NAME = "mirror"
PAUSED = "paused"
START_TIMEOUT_S = 120.0  # Spark and its workers on a machine that does other things too
BOARD_EVERY_S = 1.0
FIRST_LINK_ID = 1 << 62  # no allocator of producer ids comes near


def background(home: Home) -> Background:
    """The mirror as a process of its own."""
    command = (sys.executable, "-m", "twinlog.pipeline.mirror", str(home.file))
    return Background(NAME, home.directory / DIRECTORY, command, START_TIMEOUT_S)


def pause_flag(home: Home) -> Path:
    """A file that is there while the link is paused."""
    return home.directory / DIRECTORY / PAUSED


def sides(home: Home) -> tuple[str, str]:
    """The active site and the standby."""
    names = list(home.bus.sites)
    standbys = [name for name in names if home.role(name) is Role.STANDBY]
    if len(names) != 2 or len(standbys) != 1:
        raise UsageError(
            f"a link needs two sites, one active and one standby; the file has {len(names)}",
            where=str(home.file),
            hint="twinlog plan",
        )
    (standby,) = standbys
    return next(name for name in names if name != standby), standby


def link_id(home: Home, active: str) -> int:
    """The link's first producer id in this direction; the next 65,535 are its own too."""
    return FIRST_LINK_ID + (list(home.bus.sites).index(active) << 32)


def run(home: Home, stop: threading.Event) -> None:
    """Mirror until told to stop."""
    active, standby = sides(home)
    process, link = background(home), home.bus.link
    with process.alone():
        jobs = Jobs(home.bus.pipeline, link.tasks, home.bus.bus)
        try:
            driver = Driver(
                Sites(
                    home.admin_access(active),
                    home.admin_access(standby),
                    lambda claim: (
                        home.link_access(claim.name, active),
                        home.link_access(claim.name, standby),
                    ),
                ),
                Ways(
                    link_id(home, active),
                    link.tasks,
                    link.epoch,
                    link.identity is Identity.KEEP,
                    link.max_rate,
                ),
                jobs,
                log=_log,
            )
            with _board_of(process.report, driver.board):
                driver.take_over()
                _log(f"generation {driver.board.generation} mirrors from {active} to {standby}")
                _turn_until(stop, home, driver, Chores(home, active, standby, driver))
        finally:
            jobs.close()


def _turn_until(stop: threading.Event, home: Home, driver: Driver, chores: Chores) -> None:
    try:
        while not stop.wait(TURN_S):
            driver.pause(pause_flag(home).exists())
            chores.turn()
            driver.turn()
    finally:
        driver.stop()


@contextmanager
def _board_of(path: Path, board: Board) -> Iterator[None]:
    """Write the board every second, and once more at the end."""
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(BOARD_EVERY_S):
            write_board(path, board)

    write_board(path, board)
    thread = threading.Thread(target=keep, name="board", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        write_board(path, board)


def _log(text: str) -> None:
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z {text}", flush=True)


def main(file: str) -> int:
    """Run the mirror of the bus that this file declares."""
    path = Path(file)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        run(Home(load(path, os.environ).bus, path), stop)
    except TwinlogError as error:
        _log(f"error: {error}" + (f" (hint: {error.hint})" if error.hint else ""))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
