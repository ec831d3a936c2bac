"""From a user of the file to the accesses and settings of its clients, for `of_bus`.

The only part of the library that needs the bus's own directory. A client elsewhere is given its
accesses by whoever deploys it; `twinlog client` prints them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from twinlog.errors import UsageError
from twinlog.mirror.following import Wanted
from twinlog.sites.home import Home
from twinlog.spec.effective import largest_message_bytes
from twinlog.spec.load import load
from twinlog.spec.model import Role
from twinlog.wire.access import Access
from twinlog.wire.clientfiles.tuning import Tuning
from twinlog.wire.driver import Settings

AnyStandby = TypeVar("AnyStandby")


def _any_topic(_: str) -> bool:
    return True


@dataclass(frozen=True)
class Ways:
    """How a client behaves beside its accesses; `settings` are librdkafka's own and count most."""

    tuning: Tuning = field(default_factory=Tuning)
    settings: Settings = field(default_factory=dict)
    is_mirrored: Callable[[str], bool] = _any_topic

    def need_twin(self, topic: str, standby: AnyStandby | None, wish: str, instead: str) -> AnyStandby:
        """The standby that a wish like acks=twin needs for a topic; raises if no standby has it."""
        if standby is None:
            raise UsageError(f"{wish} needs a standby, and there is none", hint=instead)
        if not self.is_mirrored(topic):
            raise UsageError(f"topic '{topic}' is not mirrored: no standby has it", hint=instead)
        return standby


@dataclass(frozen=True)
class Bound:
    """How one user reaches its bus now."""

    active: Access
    standby: Access | None
    ways: Ways


def of_user(file: str | Path, user: str, settings: Settings | None = None) -> Bound:
    """The accesses of a user of the file, by the roles that the sites have now."""
    path = Path(file)
    home = Home(load(path, os.environ).bus, path)
    home.state()
    home.declared_user(user)
    by_role = {home.role(site): site for site in home.bus.sites}
    active, standby = by_role[Role.ACTIVE], by_role.get(Role.STANDBY)
    return Bound(
        home.user_access(user, active),
        home.user_access(user, standby) if standby is not None else None,
        Ways(
            Tuning(message_max_bytes=largest_message_bytes(home.bus, active)),
            settings if settings is not None else {},
            Wanted.of(home.bus).means,
        ),
    )
