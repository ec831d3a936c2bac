"""The standby's logs start where the active's do.

Old records go at the active, by its retention or by hand, and the standby follows: it has no retention
of its own while it is standby. The link's driver calls this every few seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from twinlog.mirror.track import TopicPartition
from twinlog.wire import configs, deletion, offsets
from twinlog.wire.cluster import Cluster
from twinlog.wire.configs import Kind

_POLICY, _ONLY_COMPACTED = "cleanup.policy", "compact"


def plan_log_starts(
    active_starts: Mapping[TopicPartition, int],
    standby_starts: Mapping[TopicPartition, int],
    high_watermarks: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Where logs of the standby are to start that start too early; never behind what is replicated."""
    targets = {place: min(start, high_watermarks[place]) for place, start in active_starts.items()}
    return {place: target for place, target in targets.items() if target > standby_starts[place]}


def follow_log_starts(
    active: Cluster, standby: Cluster, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Delete records at the standby that are gone at the active; gives the new log starts."""
    active_starts = offsets.start_offsets(active, partitions)
    standby_starts = offsets.start_offsets(standby, partitions)
    late = [place for place in partitions if standby_starts[place] < active_starts[place]]
    if not late:
        return {}
    plan = plan_log_starts(
        {place: active_starts[place] for place in late}, standby_starts, offsets.end_offsets(standby, late)
    )
    names = sorted({topic for topic, _ in plan})
    policies = configs.describe_many(standby, Kind.TOPIC, names, (_POLICY,))
    # Kafka refuses for topics that are only compacted: there the cleaner sees to it.
    allowed = {name for name in names if policies[name][_POLICY].value != _ONLY_COMPACTED}
    return deletion.delete_records(
        standby, {place: start for place, start in plan.items() if place[0] in allowed}
    )
