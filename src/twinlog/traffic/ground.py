"""What the steps of all moves stand on: the bus, its two sites, and waiting with an end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from twinlog.errors import SiteError, TwinlogError
from twinlog.mirror.following import Wanted
from twinlog.progress import Progress
from twinlog.sites.home import Home
from twinlog.sites.layout import Node
from twinlog.traffic.moves import Move
from twinlog.wire import topics
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline
from twinlog.wire.listening import listens
from twinlog.wire.offsets import TopicPartition

PATIENCE = Patience(connect_s=3.0, request_s=10.0, total_s=20.0)
BRIEFLY = Patience(connect_s=1.0, request_s=2.0, total_s=2.0)
LOOK_AGAIN_S = 0.05
SILENT_S = 4.0  # no broker listens for so long: a site is lost, and clients should not wait for all attempts


class Ground:
    """A bus whose roles are changing; connections to its sites stay open from step to step."""

    def __init__(self, home: Home, progress: Progress) -> None:
        self.home = home
        self.progress = progress
        self._clusters: dict[str, Cluster] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for cluster in self._clusters.values():
            cluster.close()

    def cluster(self, site: str) -> Cluster:
        """Administration's connection to a site."""
        if site not in self._clusters:
            access = self.home.admin_access(site)
            pulse = Pulse(site, [HostPort.parse(address) for address in access.bootstrap])
            self._clusters[site] = Cluster(access, patience=PATIENCE, wait=pulse.wait)
        return self._clusters[site]

    def answers(self, site: str) -> bool:
        """True if a broker of a site can be talked to."""
        try:
            with Cluster(self.home.admin_access(site), patience=BRIEFLY) as cluster:
                return bool(cluster.brokers())
        except TwinlogError:
            return False

    def is_ours(self, site: str) -> bool:
        """True for a site whose brokers Twinlog runs."""
        return not self.home.bus.sites[site].exists_already

    def brokers(self, site: str) -> tuple[Node, ...]:
        """The brokers of a site that run on this machine."""
        layout = self.home.layout(site)
        return tuple(node for node in layout.brokers if not node.remote)

    def mirrored(self, cluster: Cluster) -> list[TopicPartition]:
        """The mirrored partitions that a site has."""
        wanted = Wanted.of(self.home.bus)
        found = topics.describe(cluster)
        return [
            (topic.name, one.index)
            for topic in found
            if not topic.internal and wanted.means(topic.name)
            for one in topic.partitions
        ]


class Pulse:
    """Waits between two attempts at a site, and ends them early when nobody listens there any more."""

    def __init__(self, site: str, addresses: Sequence[HostPort]) -> None:
        self._site = site
        self._addresses = addresses
        self._heard_s = time.monotonic()
        self._looked_s = 0.0

    def wait(self, pause_s: float) -> None:
        """Pause; a SiteError says that the site is silent."""
        threading.Event().wait(pause_s)
        now_s = time.monotonic()
        if now_s - self._looked_s > SILENT_S:
            self._heard_s = now_s  # nobody had to wait for it meanwhile
        if any(map(listens, self._addresses)):
            self._heard_s = now_s
        self._looked_s = time.monotonic()
        if self._looked_s - self._heard_s > SILENT_S:
            raise SiteError(
                f"nobody has listened for {SILENT_S:g} s",
                where=f"site {self._site}",
                hint=f"twinlog status --site {self._site}",
            )


Hand = Callable[[Ground, Move], Move]


def wait(
    missing: Callable[[], str], timeout_s: float, doing: str, hint: str, look_again_s: float = LOOK_AGAIN_S
) -> None:
    """Look until nothing is missing any more, or say what still is."""
    pause, deadline = threading.Event(), Deadline(timeout_s)
    while why := missing():
        if deadline.passed:
            raise SiteError(f"{doing}: {why} after {timeout_s:g} s", hint=hint)
        pause.wait(look_again_s)
