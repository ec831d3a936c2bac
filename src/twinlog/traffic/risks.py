"""What a failover would leave behind, for `promote --dry-run`: measured where that can be, else as last told.

Both sites are asked where their logs end. If the active does not answer, a mirror that runs knows where it
ended when it was read last. Numbers of a mirror that is gone or stands still say nothing of what was
written since: then the loss is unknown, and called so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from twinlog.errors import TwinlogError
from twinlog.mirror import link
from twinlog.mirror.board import Board, read_board
from twinlog.traffic.ground import Ground
from twinlog.wire import offsets
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.offsets import TopicPartition

PATIENCE = Patience(connect_s=2.0, request_s=3.0, total_s=3.0)

Behind = Mapping[TopicPartition, int]  # how many offsets each partition of the standby lacks


class Source(StrEnum):
    """Who says so."""

    SITES = "both sites, now"
    MIRROR = "the mirror, when it last read the active"
    NOBODY = "nobody"


@dataclass(frozen=True)
class AtRisk:
    """What a failover would leave behind of one topic; None where nobody knows."""

    topic: str
    records: int | None
    told_by: Source


def at_risk(ground: Ground) -> list[AtRisk]:
    """What would be lost by a failover now, topic by topic."""
    wanted = [name for name, topic in ground.home.bus.topics.items() if topic.mirror]
    measured = _measured(ground)
    if measured is not None:
        return by_topic(measured, wanted, Source.SITES)
    return by_topic(told(read_board(link.background(ground.home).report)), wanted, Source.MIRROR)


def by_topic(behind: Behind, wanted: Iterable[str], told_by: Source) -> list[AtRisk]:
    """Partitions put together; a wanted topic of which one says nothing is unknown."""
    topics: dict[str, int] = {}
    for (topic, _), records in behind.items():
        topics[topic] = topics.get(topic, 0) + records
    unknown = [AtRisk(name, None, Source.NOBODY) for name in wanted if name not in topics]
    known = [AtRisk(topic, records, told_by) for topic, records in topics.items()]
    return sorted([*known, *unknown], key=lambda one: one.topic)


def told(board: Board | None) -> Behind:
    """What a mirror at work says; topics of which it does not know every partition are left out."""
    if board is None or not board.is_fresh or board.state != "running":
        return {}
    unknown = {one.topic for one in board.partitions if one.active_end < 0 or one.position < 0}
    return {
        (one.topic, one.partition): max(0, one.active_end - one.position)
        for one in board.partitions
        if one.topic not in unknown
    }


def _measured(ground: Ground) -> Behind | None:
    """The difference of both sites' ends; None if one of them does not answer."""
    active, standby = link.sides(ground.home)
    try:
        with (
            Cluster(ground.home.admin_access(active), patience=PATIENCE) as here,
            Cluster(ground.home.admin_access(standby), patience=PATIENCE) as there,
        ):
            partitions = ground.mirrored(here)
            copied = set(ground.mirrored(there))
            ends = offsets.log_ends(here, partitions)
            copies = offsets.log_ends(there, [place for place in partitions if place in copied])
    except TwinlogError:
        return None
    return {place: max(0, end - copies.get(place, 0)) for place, end in ends.items()}
