"""How far the standby is behind, looked at all the time that the exporter runs.

How long the standby has lacked something can be said only by somebody who looked before, and scrapes come
too seldom for that. A page is made of the last look and waits for none; a look that failed, or that hangs,
is a problem that the page names, and no old number is shown in its place.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from twinlog.errors import TwinlogError
from twinlog.mirror import link
from twinlog.mirror.watch import PartitionStatus, Watch
from twinlog.repeating import Repeating
from twinlog.sites.home import Home

LOOK_S = 2.0
STALE_S = 15.0  # a look takes as long as sites may take to answer
END_S = 1.0  # a look under way is not waited for
RUNNING = "running"


@dataclass(frozen=True)
class LinkSeen:
    """One look at the link, or why there is none."""

    is_running: bool = False
    partitions: tuple[PartitionStatus, ...] = ()
    problem: str = ""
    at_s: float = field(default_factory=time.monotonic)


class LinkWatch(Repeating):
    """Looks at the link of a bus while its block runs, whichever way it goes."""

    def __init__(self, home: Home) -> None:
        super().__init__({"twinlog-link-watch": self._run}, end_timeout_s=END_S)
        self._home = home
        self._seen = LinkSeen(problem="the link was not looked at yet")

    def seen(self) -> LinkSeen:
        """The last look."""
        last = self._seen
        age_s = time.monotonic() - last.at_s
        return last if age_s < STALE_S else LinkSeen(problem=f"the last look was {age_s:.0f} s ago")

    def _run(self) -> None:
        watch: Watch | None = None
        for _ in self.turns(LOOK_S):
            try:
                sides = link.sides(self._home)
                if watch is None or (watch.active, watch.standby) != sides:
                    if watch is not None:
                        watch.close()
                    watch = Watch(self._home)
                found = watch.look()
                self._seen = LinkSeen(found.link["state"] == RUNNING, tuple(found.partitions))
            except TwinlogError as error:  # it keeps what it remembers of the ends: lag goes on growing
                self._seen = LinkSeen(problem=str(error))
        if watch is not None:
            watch.close()
