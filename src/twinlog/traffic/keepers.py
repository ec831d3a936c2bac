"""The sites that may keep salvage, asked together.

Salvage lies at the site that was active when the lost one returned, and stays there when roles move: so
whoever looks for it asks every site. For `twinlog salvage`. A site that does not answer is named and never
passed over in silence, because what it keeps is then not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from twinlog.errors import TwinlogError
from twinlog.sites.home import Home
from twinlog.traffic.salvaged import salvage_topic
from twinlog.wire import topics
from twinlog.wire.cluster import Cluster, Patience

BRIEFLY = Patience(connect_s=3.0, request_s=3.0, total_s=3.0)  # to find out whether a site answers


@dataclass(frozen=True)
class Keepers:
    """The sites that answer, by name, in the order of the file; and why the others do not."""

    clusters: dict[str, Cluster]
    silent: dict[str, TwinlogError]

    def at(self, site: str) -> Cluster:
        """A site that has to answer."""
        if site in self.silent:
            raise self.silent[site]
        return self.clusters[site]

    def of(self, topic: str) -> dict[str, Cluster]:
        """The sites at which there is salvage of a topic."""
        name = salvage_topic(topic)
        return {site: cluster for site, cluster in self.clusters.items() if topics.describe(cluster, [name])}


@contextmanager
def opened(home: Home) -> Iterator[Keepers]:
    """Connections to all sites of a bus that answer; an error if none does."""
    with ExitStack() as stack:
        clusters: dict[str, Cluster] = {}
        silent: dict[str, TwinlogError] = {}
        for site in home.bus.sites:
            access = home.admin_access(site)
            try:
                with Cluster(access, patience=BRIEFLY) as cluster:
                    cluster.brokers()
            except TwinlogError as error:
                silent[site] = error
                continue
            clusters[site] = stack.enter_context(Cluster(access))
        if not clusters:
            raise next(iter(silent.values()))
        yield Keepers(clusters, silent)
