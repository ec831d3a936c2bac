"""What a driver does beside copying: which topics there are, and what goes along with them.

Each chore has its own rhythm. One that fails is told on the board and done again at its next turn;
none of them stops the others or the copying.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from twinlog.errors import TwinlogError
from twinlog.pipeline.driver import Driver, Mirrored
from twinlog.sites.home import Home
from twinlog.spec.model import Cleanup
from twinlog.wire import topics
from twinlog.wire.cluster import Cluster, Patience

PATIENCE = Patience(connect_s=2.0, request_s=5.0, total_s=5.0)
TOPICS_EVERY_S = 2.0


@dataclass
class Chore:
    """Something to be done again and again."""

    name: str
    every_s: float
    work: Callable[[], None]
    due_at: float = 0.0


class Chores:
    """All chores of one link."""

    def __init__(self, home: Home, active: str, standby: str, driver: Driver) -> None:
        self._home = home
        self._driver = driver
        self._active = Cluster(home.admin_access(active), patience=PATIENCE)
        self._standby = Cluster(home.admin_access(standby), patience=PATIENCE)
        self._chores = [Chore("looking for topics", TOPICS_EVERY_S, self._look_for_topics)]

    def turn(self) -> None:
        """Do what is due."""
        for chore in self._chores:
            now = time.monotonic()
            if now >= chore.due_at:
                chore.due_at = now + chore.every_s
                try:
                    chore.work()
                except TwinlogError as error:
                    self._driver.trouble(f"{chore.name}: {error}")

    def _look_for_topics(self) -> None:
        wanted = {name: topic for name, topic in self._home.bus.topics.items() if topic.mirror}
        here = {topic.name: topic for topic in topics.describe(self._active, sorted(wanted))}
        there = {topic.name: topic for topic in topics.describe(self._standby, sorted(wanted))}
        missing = {}
        found = []
        for name, topic in wanted.items():
            if name not in here or name not in there:
                place = "active" if name not in here else "standby"
                missing[name] = f"it does not exist at the {place}"
                continue
            common = min(len(here[name].partitions), len(there[name].partitions))
            compacted = topic.cleanup is not Cleanup.DELETE
            found += [Mirrored(name, number, compacted) for number in range(common)]
        self._driver.board.missing = missing
        self._driver.mirror(found)
