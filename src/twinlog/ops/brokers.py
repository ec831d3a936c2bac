"""Brokers as commands show them: what each leads and holds, and where it stands.

For `twinlog broker list` and `log-dirs`. A broker that does not answer is listed too, by what the bus
knows of it, with None for what only it could say. Reads only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from twinlog.sites import holds, processes
from twinlog.sites.layout import Listener, Node
from twinlog.wire import logdirs, topics
from twinlog.wire.cluster import BrokerAddress, Cluster
from twinlog.wire.logdirs import LogDir
from twinlog.wire.topics import TopicState

UP, STARTING, HELD, DOWN, LEAVING = "up", "starting", "held", "down", "leaving"


@dataclass(frozen=True)
class BrokerRow:
    """One broker."""

    broker: int
    state: str
    rack: str | None
    address: str
    leads: int
    preferred: int  # partitions that it should lead
    replicas: int
    behind: int  # of those, copies that are not in sync
    size_bytes: int | None
    declared: bool


@dataclass(frozen=True)
class DirectoryRow:
    """One directory of one broker."""

    broker: int
    path: str
    problem: str
    partitions: int
    size_bytes: int
    usable_bytes: int | None
    total_bytes: int | None


def rows(cluster: Cluster, nodes: Sequence[Node]) -> list[BrokerRow]:
    """Every broker that lives, and those of ours that do not."""
    live = {broker.id: broker for broker in cluster.brokers()}
    found = topics.describe(cluster)
    running = processes.find(node for node in nodes if not node.remote)
    ours = {node.id: node for node in nodes}
    sizes = sizes_of(logdirs.describe(cluster))
    return [
        _row(number, live.get(number), ours.get(number), number in running, found, sizes.get(number))
        for number in sorted(live.keys() | ours.keys())
    ]


def sizes_of(dirs: Sequence[LogDir]) -> dict[int, int]:
    """What each broker holds, in bytes."""
    sizes: Counter[int] = Counter()
    for each in dirs:
        sizes[each.broker_id] += each.used_bytes
    return dict(sizes)


def _row(
    number: int,
    live: BrokerAddress | None,
    ours: Node | None,
    is_running: bool,
    found: Sequence[TopicState],
    size_bytes: int | None,
) -> BrokerRow:
    parts = [part for topic in found for part in topic.partitions if number in part.replicas]
    rack = live.rack if live is not None else ours.rack if ours is not None else None
    address = str(live.address) if live is not None else ours.address(Listener.LINK) if ours else ""
    declared = ours is None or ours.declared
    return BrokerRow(
        number,
        state_of(live is not None, is_running, holds.reason(ours) if ours else "", declared),
        rack,
        address,
        sum(part.leader == number for part in parts),
        sum(part.replicas[0] == number for part in parts),
        len(parts),
        sum(number not in part.isr for part in parts),
        size_bytes,
        declared,
    )


def state_of(is_registered: bool, is_running: bool, held: str, declared: bool) -> str:
    """How a broker is, in a word."""
    if is_registered:
        return UP if declared else LEAVING
    if is_running:
        return STARTING
    return HELD if held else DOWN


def directory_rows(dirs: Sequence[LogDir]) -> list[DirectoryRow]:
    """Directories as a table shows them."""
    return [
        DirectoryRow(
            each.broker_id,
            each.path,
            each.problem,
            len(each.size_bytes),
            each.used_bytes,
            each.usable_bytes,
            each.total_bytes,
        )
        for each in dirs
    ]
