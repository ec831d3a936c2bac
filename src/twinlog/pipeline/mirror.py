"""The mirror as a program: `python -m twinlog.pipeline.mirror FILE`, left behind by `twinlog link up`.

It is the Spark driver. It runs until SIGTERM, or until a later mirror takes over. What it does is
decided by the bus's state (who is active) and by flags beside its report (paused; held while roles
change); when roles have changed it goes on in the other direction, without a new Spark. All it knows
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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twinlog.errors import TwinlogError
from twinlog.mirror.board import Board, write_board
from twinlog.mirror.link import background, held, link_id, need_spark, pause_flag, sides
from twinlog.mirror.rights import Deposed, forget_keys
from twinlog.pipeline.chores import Chores
from twinlog.pipeline.driver import TURN_S, Driver, Sites, Ways
from twinlog.pipeline.metrics import LinkCollector
from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.sites.java import find_java
from twinlog.sites.page import served
from twinlog.spec.load import load
from twinlog.spec.model import Identity

if TYPE_CHECKING:
    from twinlog.pipeline.spark import Jobs

BOARD_EVERY_S = 1.0
AGAIN_S = 2.0  # between a beginning that failed, a site being away perhaps, and the next


def run(home: Home, stop: threading.Event) -> None:
    """Mirror until told to stop, in whichever direction the roles have."""
    need_spark()
    process = background(home)
    with process.alone():
        jobs = _spark(home)
        try:
            while not stop.is_set():
                try:
                    if why := held(home):
                        _wait_held(home, process, why, stop)
                    else:
                        _mirror_one_way(home, process, jobs, stop)
                except Deposed:
                    # By whoever changes the roles, who has held us first; else by another mirror.
                    if not held(home):
                        raise
                except TwinlogError as error:
                    _log(f"begins again: {error}")
                    stop.wait(AGAIN_S)
        finally:
            jobs.close()


def _wait_held(home: Home, process: Background, why: str, stop: threading.Event) -> None:
    with _board_of(process.report, Board(state="held", pid=os.getpid(), last_error=why)):
        while held(home) and not stop.wait(TURN_S):
            pass


def _mirror_one_way(home: Home, process: Background, jobs: Jobs, stop: threading.Event) -> None:
    """One generation of the link: until told to stop, held, or until the roles have changed."""
    active, standby = sides(home)
    link = home.bus.link
    driver = Driver(
        Sites(
            home.admin_access(active),
            home.admin_access(standby),
            lambda claim: (home.link_access(claim.name, active), home.link_access(claim.name, standby)),
            partial(forget_keys, home.pki),
        ),
        Ways(link_id(active), link.tasks, link.epoch, link.identity is Identity.KEEP, link.max_rate),
        jobs,
        log=_log,
    )
    with _board_of(process.report, driver.board), driver:
        driver.take_over()
        _log(f"generation {driver.board.generation} mirrors from {active} to {standby}")
        with (
            Chores(home, active, standby, driver) as chores,
            served(link.metrics, LinkCollector(home.bus.bus, driver.board, chores.watched), "link"),
        ):
            while not stop.wait(TURN_S) and not held(home) and sides(home) == (active, standby):
                driver.pause(pause_flag(home).exists())
                driver.turn()


def _spark(home: Home) -> Jobs:
    os.environ["JAVA_HOME"] = str(find_java().binary.resolve().parent.parent)
    from twinlog.pipeline.spark import Jobs  # noqa: PLC0415  only the mirror itself needs Spark

    return Jobs(home.bus.pipeline, home.bus.link.tasks, home.bus.bus)


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
