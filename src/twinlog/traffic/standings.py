"""Which site is active, as the sites themselves say: followed by every gate, wherever it runs.

Each site is asked a few times a second for two notes, its role and the move that is under way. What a
site said last counts until it says something else; a higher term counts more than a lower one, so that a
lost site that comes back with its old role is not believed. `where_to` is pure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from twinlog.errors import TwinlogError
from twinlog.repeating import Repeating
from twinlog.spec.model import Role
from twinlog.traffic.journal import NOTE, newest, said_by
from twinlog.traffic.moves import Move
from twinlog.wire import notes, roles, topics
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.roles import Standing

EVERY_S = 0.2
PATIENCE = Patience(connect_s=1.0, request_s=2.0, total_s=2.0)


@dataclass(frozen=True)
class Told:
    """What one site said last."""

    standing: Standing | None = None
    move: Move | None = None
    at: float = 0.0  # when it last answered, monotonic; 0 if it never did
    trouble: str = ""  # why it does not answer now


@dataclass(frozen=True)
class Where:
    """Which site clients go to, or why to none."""

    active: str | None
    term: int
    reason: str = ""


def where_to(told: Mapping[str, Told]) -> Where:
    """Which site is active, by all that the sites have said."""
    known = [one.standing for one in told.values() if one.standing is not None]
    term = max((standing.term for standing in known), default=0)
    move = newest(one.move for one in told.values())
    if move is not None and move.term >= term and move.closes_gate:
        return Where(None, term, str(move))
    active = [standing for standing in known if standing.role is Role.ACTIVE and standing.term == term]
    if active:
        return Where(active[0].site, term)
    silent = sorted(site for site, one in told.items() if one.standing is None)
    if silent:
        return Where(None, term, f"site {silent[0]} has not said what it is: {told[silent[0]].trouble}")
    return Where(None, term, "no site says that it is active")


class Standings(Repeating):
    """Follows all sites of a bus, each in a thread of its own."""

    def __init__(self, accesses: Mapping[str, Access]) -> None:
        self._told = {site: Told() for site in accesses}
        self._changed = threading.Condition()
        super().__init__(
            {f"standing-{site}": partial(self._follow, site, access) for site, access in accesses.items()}
        )

    @property
    def told(self) -> Mapping[str, Told]:
        """What each site said last."""
        with self._changed:
            return dict(self._told)

    def wait(self, before: Mapping[str, Told], timeout_s: float) -> Mapping[str, Told]:
        """What the sites said last, as soon as it is something else than before, or time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._said() != _said(before), timeout_s)
            return dict(self._told)

    def _said(self) -> object:
        return _said(self._told)

    def _follow(self, site: str, access: Access) -> None:
        with Cluster(access, patience=PATIENCE) as cluster:
            role, move = roles.Reader(cluster), notes.Reader(cluster, NOTE)
            has_move = False
            for _ in self.turns(EVERY_S):
                before = self._told[site]
                try:
                    has_move = has_move or bool(topics.describe(cluster, [NOTE.topic]))
                    told = Told(
                        role.read(), said_by(site, move.read()) if has_move else None, time.monotonic()
                    )
                except TwinlogError as error:
                    told = Told(before.standing, before.move, before.at, str(error))
                with self._changed:
                    self._told[site] = told
                    self._changed.notify_all()


def _said(told: Mapping[str, Told]) -> object:
    return [(site, one.standing, one.move) for site, one in told.items()]
