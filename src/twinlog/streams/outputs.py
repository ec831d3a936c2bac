"""How far the topic is that a query writes: asked behind each batch, and kept with the checkpoint.

After a failover this tells which batches' results the promoted site has. Others may write there too;
then a query goes back a little further than it must.
"""

from __future__ import annotations

from twinlog.streams.rewinding import Offsets
from twinlog.wire import offsets
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster

CLIENT_ID = "streams-ends"


class Output:
    """One topic, asked again and again over one connection."""

    def __init__(self, access: Access, topic: str, partitions: int) -> None:
        self._access = access
        self._places = [(topic, number) for number in range(partitions)]
        self._cluster: Cluster | None = None

    def ends(self) -> Offsets:
        """Where its partitions end, for all that is acknowledged."""
        if self._cluster is None:
            self._cluster = Cluster(self._access, client_id=CLIENT_ID)
        try:
            found = offsets.end_offsets(self._cluster, self._places)
        except BaseException:
            self.close()
            raise
        return {self._places[0][0]: {partition: end for (_, partition), end in found.items()}}

    def close(self) -> None:
        """Let the connection go; the next question opens one."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
