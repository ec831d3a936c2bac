"""How far the standby has a channel's log, for orderers that cut no block from what only one site has.

A chain with `read: twin` asks it before it takes records in. What the standby was when it was asked first
it must still be: once it is promoted, records of the site that it was a copy of count for nothing, and
an orderer that went on with them would make a chain of its own.
"""

from __future__ import annotations

from twinlog.client.standby import Standby
from twinlog.errors import SiteError, TwinlogError
from twinlog.ordering.topic import PARTITION
from twinlog.wire.access import Access
from twinlog.wire.roles import Standing


class Coverage:
    """One channel's topic at the standby."""

    def __init__(self, access: Access, topic: str) -> None:
        self._standby = Standby(access)
        self._topic = topic
        self._standing: Standing | None = None

    def __call__(self) -> int:
        """The first offset that the standby lacks; raises if it cannot be asked or is no standby any more."""
        if self._standing is None:
            self._standing = self._standby.admit(self._topic)
        place = (self._topic, PARTITION)
        answer = self._standby.watermarks([place])[place]
        if isinstance(answer, TwinlogError):
            raise answer
        now = self._standby.standing()
        if now != self._standing:
            raise SiteError(
                f"the standby was the {self._standing} and says now that it is {now or 'nothing'}",
                where=self._topic,
                hint="have the sites changed roles? start the orderer anew, at the active site",
            )
        return answer

    def close(self) -> None:
        """End all connections."""
        self._standby.close()
