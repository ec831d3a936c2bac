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
from typing import TYPE_CHECKING

from twinlog.errors import TwinlogError
from twinlog.pipeline.board import Board, write_board
from twinlog.pipeline.chores import Chores
from twinlog.pipeline.driver import TURN_S, Driver, Sites, Ways
from twinlog.pipeline.link import background, link_id, need_spark, pause_flag, sides
from twinlog.pipeline.metrics import served
from twinlog.sites.home import Home
from twinlog.sites.java import find_java
from twinlog.spec.load import load
from twinlog.spec.model import Identity

if TYPE_CHECKING:
    from twinlog.pipeline.spark import Jobs

BOARD_EVERY_S = 1.0


def run(home: Home, stop: threading.Event) -> None:
    """Mirror until told to stop."""
    need_spark()
    active, standby = sides(home)
    process, link = background(home), home.bus.link
    with process.alone():
        jobs = _spark(home)
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
                    link_id(active),
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
                with (
                    Chores(home, active, standby, driver) as chores,
                    served(link.metrics, home.bus.bus, driver.board, chores.watched),
                ):
                    _turn_until(stop, home, driver)
        finally:
            jobs.close()


def _spark(home: Home) -> Jobs:
    os.environ["JAVA_HOME"] = str(find_java().binary.resolve().parent.parent)
    from twinlog.pipeline.spark import Jobs  # noqa: PLC0415  only the mirror itself needs Spark

    return Jobs(home.bus.pipeline, home.bus.link.tasks, home.bus.bus)


def _turn_until(stop: threading.Event, home: Home, driver: Driver) -> None:
    try:
        while not stop.wait(TURN_S):
            driver.pause(pause_flag(home).exists())
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
