"""What the steps of all moves stand on: the bus, its two sites, and waiting with an end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from twinlog.errors import SiteError
from twinlog.mirror.following import Wanted
from twinlog.progress import Progress
from twinlog.sites.home import Home
from twinlog.sites.layout import Node
from twinlog.traffic.moves import Move
from twinlog.wire import topics
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline
from twinlog.wire.offsets import TopicPartition

PATIENCE = Patience(connect_s=3.0, request_s=10.0, total_s=20.0)
LOOK_AGAIN_S = 0.05


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
            self._clusters[site] = Cluster(self.home.admin_access(site), patience=PATIENCE)
        return self._clusters[site]

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
