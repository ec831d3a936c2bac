"""What the processes of a measurement may use: the limits of a small cluster, where control groups allow it.

Brokers have theirs in the file (`cpus`). A mirror gets its own when its first records have arrived: what
its start costs is told apart. Of memory, heaps are bounded and the rest is looked at: what a mirror really
had is told with its figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from bench.ground import Ground, say
from bench.peers import Peer
from twinlog.sites import cgroups


@dataclass(frozen=True)
class Limits:
    """CPUs of a broker and of a mirror; None is as many as there are."""

    broker_cpus: float | None = None
    mirror_cpus: float | None = None

    @property
    def of_sites(self) -> dict[str, Any]:
        """What the file says of sites."""
        return {} if self.broker_cpus is None else {"cpus": self.broker_cpus}

    def as_json(self) -> dict[str, Any]:
        """For the last line."""
        return asdict(self)


SEED = Limits(broker_cpus=0.75, mirror_cpus=0.5)
NONE = Limits()


class Held:
    """Holds a mirror to its limit once it has begun."""

    def __init__(self, ground: Ground, peer: Peer, cpus: float | None) -> None:
        self._directory = ground.directory / f"{peer.name}-limit"
        self._peer = peer
        self._cpus = cpus
        self.given: str = "all CPUs"

    def hold(self) -> None:
        """From now on it may use so much; its later children too."""
        if self._cpus is None:
            return
        remarks = {
            cgroups.limit(process.pid, self._directory, self._cpus) for process in self._peer.processes()
        }
        remark = next(filter(None, remarks), "")
        if remark:
            say(f"{self._peer.name}: {remark}")
        else:
            self.given = f"{self._cpus:g} CPUs"

    def forget(self) -> None:
        """Its processes have ended."""
        cgroups.forget(self._directory)


@contextmanager
def held(ground: Ground, peer: Peer, limits: Limits) -> Iterator[Held]:
    """A limit for a mirror that starts and ends inside the block."""
    found = Held(ground, peer, limits.mirror_cpus)
    try:
        yield found
    finally:
        found.forget()
