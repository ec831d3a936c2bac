"""What a lost site has behind the points at which it was replaced, for `return --dry-run`.

Of a site that answers the ends of its logs are asked; of one that does not run, and is ours, they are read
from its disks. How much of a tail will be salvaged is known when it is read: what the active has too, and
markers, are left out, so the number is the most that it can be.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from twinlog.errors import TwinlogError
from twinlog.sites import cutting, processes
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Move
from twinlog.traffic.returning import points_of, why_not_cut
from twinlog.wire import offsets, topics
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.offsets import TopicPartition

PATIENCE = Patience(connect_s=2.0, request_s=3.0, total_s=3.0)
COPIED_WHOLE = "deleted there and copied whole"


@dataclass(frozen=True)
class Tail:
    """What only the lost site may have of one topic, and what becomes of its logs there."""

    topic: str
    records: int | None  # at most; None: nobody can say
    then: str


def tails(ground: Ground, move: Move) -> list[Tail]:
    """Every topic that was taken over, as far as the lost site can be looked at."""
    why_not = why_not_cut(ground, move.source)
    if not why_not and not processes.find(ground.brokers(move.source)):
        return _on_disks(ground, move)
    try:
        lengths = _asked(ground, move)
    except TwinlogError as error:
        return [Tail(topic, None, f"unknown: {error}") for topic in sorted(move.points)]
    then = f"{COPIED_WHOLE}: {why_not}" if why_not else "cut"
    return [Tail(topic, count, then if count else "") for topic, count in sorted(lengths.items())]


def _asked(ground: Ground, move: Move) -> dict[str, int]:
    """How many offsets each topic has behind its points, by the site's own word."""
    points = points_of(move)
    with Cluster(ground.home.admin_access(move.source), patience=PATIENCE) as cluster:
        found = topics.describe(cluster, sorted(move.points))
        there: set[TopicPartition] = {(one.name, part.index) for one in found for part in one.partitions}
        ends = offsets.log_ends(cluster, [place for place in points if place in there])
    lengths = dict.fromkeys(move.points, 0)
    for (topic, partition), end in ends.items():
        lengths[topic] += max(0, end - points[topic, partition])
    return lengths


def _on_disks(ground: Ground, move: Move) -> list[Tail]:
    layout = ground.home.layout(move.source)
    by_topic: dict[str, list[cutting.Outcome]] = defaultdict(list)
    for one in cutting.cut(layout, points_of(move), dry_run=True):
        by_topic[one.place[0]].append(one)
    return [_outcome(topic, here) for topic, here in sorted(by_topic.items())]


def _outcome(topic: str, here: list[cutting.Outcome]) -> Tail:
    why_not = next((one.why_not for one in here if one.why_not), "")
    records = sum(one.tail for one in here)
    if why_not:
        return Tail(topic, records, f"{COPIED_WHOLE}: {why_not}")
    return Tail(topic, records, "cut" if any(one.cut_replicas for one in here) else "")
