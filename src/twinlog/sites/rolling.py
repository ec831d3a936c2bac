"""Restarts nodes of a running site one at a time, without taking a partition below its minimum.

Used when the file changed something that only a start can change. Before a broker is stopped, every
partition must be able to do without it; after it is back, the next one waits until every partition
has all its copies in sync again. The controller that leads goes last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from twinlog.errors import SiteError
from twinlog.progress import Progress
from twinlog.sites import holds, local, processes
from twinlog.sites.home import Home
from twinlog.sites.layout import Kind, Node
from twinlog.sites.readiness import wait_until_ready
from twinlog.wire import configs, quorum, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline

IN_SYNC_TIMEOUT_S = 120.0
LOOK_AGAIN_S = 0.2
MINIMUM = "min.insync.replicas"


def roll(home: Home, site: str, node_ids: Sequence[int], progress: Progress) -> None:
    """Reconfigure and restart these nodes, brokers first, the leading controller last."""
    layout = home.layout(site)
    kafka = local.ensure_kafka(progress)
    with Cluster(home.admin_access(site)) as cluster:
        leader = quorum.describe(cluster).leader_id
        chosen = [layout.node(number) for number in node_ids]
        order = sorted(chosen, key=lambda node: (node.kind is Kind.CONTROLLER, node.id == leader, node.id))
        for node in order:
            name = f"restarting {node.name}"
            progress.begin(name)
            if node.kind is Kind.BROKER:
                _wait(lambda node=node: who_needs(cluster, node.id), node)  # type: ignore[misc]
            _restart(home, site, node, kafka, progress)
            cluster.forget()
            _wait(lambda: not_in_sync(cluster), node)
            progress.end(name)


def _restart(home: Home, site: str, node: Node, kafka: local.Kafka, progress: Progress) -> None:
    layout = home.layout(site)
    holds.hold(node, "a rolling restart")
    local.stop([node], progress)
    local.configure(home, layout, node, kafka)
    holds.release(node)  # before the start: killed in between, the node may be started by anybody
    process, _ = processes.start(node, kafka.java)
    # A process that has only just begun may have no command line yet to be found by.
    running = {**processes.find(layout.local_nodes), node.id: process}
    wait_until_ready(layout, home.admin_access(site), running, local.READY_TIMEOUT_S)


def _wait(missing: Callable[[], str], node: Node) -> None:
    pause = threading.Event()
    deadline = Deadline(IN_SYNC_TIMEOUT_S)
    while why := missing():
        if deadline.passed:
            raise SiteError(
                f"the restart of {node.name} is held up: {why}",
                where=f"site {node.site}",
                hint=f"twinlog status --site {node.site}",
            )
        pause.wait(LOOK_AGAIN_S)


def who_needs(cluster: Cluster, broker_id: int) -> str:
    """A partition that would fall below its minimum without this broker; empty if none would."""
    found = topics.describe(cluster)
    given = configs.describe_many(cluster, configs.Kind.TOPIC, [topic.name for topic in found], [MINIMUM])
    for topic in found:
        minimum = int(given[topic.name][MINIMUM].value or 1)
        for partition in topic.partitions:
            left = [replica for replica in partition.isr if replica != broker_id]
            # A topic with one copy cannot be kept writable; its broker's restart is a short pause.
            if broker_id in partition.isr and len(partition.replicas) > 1 and len(left) < minimum:
                copies = len(partition.isr)
                return f"{topic.name}-{partition.index} has {copies} copies in sync and needs {minimum}"
    return ""


def not_in_sync(cluster: Cluster) -> str:
    """A partition that lacks a copy; empty if none does."""
    for topic in topics.describe(cluster):
        for partition in topic.partitions:
            behind = sorted(set(partition.replicas) - set(partition.isr))
            if behind:
                return f"{topic.name}-{partition.index} waits for broker {behind[0]}"
    return ""
