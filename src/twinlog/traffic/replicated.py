"""Whether all that partitions hold is on every replica in sync, so that any of these may lead.

Asked at a site to which nobody writes any more: whoever leads then may be missing there a moment later, and
another one elected, by us or by Kafka. What only the old leader had would be cut off, below an end that was
already written down; so ends are taken for final, and leaders are changed, behind this.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from twinlog.wire import offsets
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.offsets import TopicPartition

REPLICATE_S = 2.0  # clients wait meanwhile; followers that keep up take milliseconds
LOOK_AGAIN_S = 0.02


def late(cluster: Cluster, places: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Wait until all replicas in sync have what their partitions hold; returns those where they have not."""
    pause, deadline = threading.Event(), Deadline(REPLICATE_S)
    left = list(places)
    while left:
        ends, marks = offsets.log_ends(cluster, left), offsets.end_offsets(cluster, left)
        left = [place for place in left if marks[place] < ends[place]]
        if not left or deadline.passed:
            break
        pause.wait(LOOK_AGAIN_S)
    return left
