"""Builds the twin of a topic anew: what the standby has of it is deleted, and copied again.

For a topic whose logs differ. Kafka can take nothing off the end of a log, so the topic itself goes
and comes again. The link is paused meanwhile; a rebuild that was killed is simply done again.
"""

from __future__ import annotations

import threading
import time

from twinlog.errors import SiteError, UsageError
from twinlog.mirror.board import read_board
from twinlog.mirror.link import background, pause_flag, sides
from twinlog.ops import apply
from twinlog.progress import Progress
from twinlog.sites.home import Home
from twinlog.wire import topics
from twinlog.wire.cluster import Cluster

PAUSE_TIMEOUT_S = 30.0
LOOK_AGAIN_S = 0.2


def rebuild(home: Home, topic: str, progress: Progress) -> None:
    """Delete a topic at the standby, make it again as the file says, and let the link copy it."""
    declared = home.bus.topics.get(topic)
    if declared is None or not declared.mirror:
        raise UsageError(f"topic '{topic}' is not mirrored", where=str(home.file), hint="twinlog link status")
    _, standby = sides(home)
    flag = pause_flag(home)
    was_paused = flag.exists()
    flag.parent.mkdir(parents=True, exist_ok=True)
    flag.touch()
    try:
        _wait_until_paused(home)
        name = f"site {standby}: making topic {topic} anew"
        progress.begin(name)
        with Cluster(home.admin_access(standby)) as cluster:
            topics.delete(cluster, topic)
        apply.settle(home, [standby], progress, yes=False)
        progress.end(name)
    finally:
        if not was_paused:
            flag.unlink(missing_ok=True)


def _wait_until_paused(home: Home) -> None:
    pause, end = threading.Event(), time.monotonic() + PAUSE_TIMEOUT_S
    process = background(home)
    while process.find() is not None:
        board = read_board(process.report)
        if board is not None and board.state == "paused":
            return
        if time.monotonic() > end:
            raise SiteError(
                f"the link did not pause within {PAUSE_TIMEOUT_S:g} s", hint="twinlog link status"
            )
        pause.wait(LOOK_AGAIN_S)
