"""Restarts nodes of a running site one at a time, without taking a partition below its minimum.

Used by `apply`, when the file changed something that only a start can change, and by `broker roll`.
Whose turn it is `turns` says, before every restart and from what is the case then; when nobody's turn
comes for a while, the roll stops with the reason. A node that a killed roll left stopped is started first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from twinlog.errors import SiteError, UsageError
from twinlog.progress import Progress
from twinlog.sites import holds, local, processes, turns
from twinlog.sites.home import Home
from twinlog.sites.layout import Node, SiteLayout
from twinlog.sites.readiness import wait_until_ready
from twinlog.wire import configs, quorum, topics
from twinlog.wire.cluster import Cluster
from twinlog.wire.deadlines import Deadline
from twinlog.wire.quorum import Quorum

IN_SYNC_TIMEOUT_S = 120.0
LOOK_AGAIN_S = 0.2
MINIMUM = "min.insync.replicas"
WHY_HELD = "a rolling restart"
# A voter fetches every half second when nothing happens; one that was not heard of for so long is away.
FOLLOWS_WITHIN_MS = 5000
Done = Callable[[int], None]


def roll(
    home: Home,
    site: str,
    node_ids: Sequence[int],
    progress: Progress,
    *,
    timeout_s: float = IN_SYNC_TIMEOUT_S,
    done: Done = lambda node: None,
) -> None:
    """Reconfigure and restart these nodes, brokers first, the leading controller last."""
    layout = home.layout(site)
    left = [layout.node(number) for number in node_ids]
    _refuse_elsewhere(left)
    kafka = local.ensure_kafka(progress, home.bus.kafka_version_of(site))
    running = processes.find(left)
    stopped = [node for node in left if node.id not in running]
    with Cluster(home.admin_access(site)) as cluster:
        while left:
            # Whoever is stopped already makes nothing worse, and perhaps nothing answers without it.
            node = stopped.pop(0) if stopped else _next(cluster, layout, left, timeout_s)
            name = f"restarting {node.name}"
            progress.begin(name)
            _restart(home, site, node, kafka, progress)
            cluster.forget()
            if not stopped:
                _wait(lambda: turns.unwell(look(cluster)), layout, timeout_s)
            left.remove(node)
            done(node.id)
            progress.end(name)


def _refuse_elsewhere(nodes: Sequence[Node]) -> None:
    for node in nodes:
        if node.remote:
            raise UsageError(
                f"{node.name} runs on another machine, where it has to be restarted",
                hint=f"twinlog bundle --node {node.id}",
            )


def _next(cluster: Cluster, layout: SiteLayout, left: Sequence[Node], timeout_s: float) -> Node:
    """The node whose turn it is, as soon as there is one."""
    members = [turns.Member(node.id, node.kind) for node in left]
    turn = turns.Turn(None, "")

    def missing() -> str:
        nonlocal turn
        turn = turns.next_turn(members, look(cluster))
        return "" if turn.node is not None else turn.why

    _wait(missing, layout, timeout_s)
    assert turn.node is not None, "nothing is missing"
    return layout.node(turn.node)


def _restart(home: Home, site: str, node: Node, kafka: local.Kafka, progress: Progress) -> None:
    layout = home.layout(site)
    holds.hold(node, WHY_HELD)
    local.stop([node], progress)
    local.configure(home, layout, node, kafka)
    holds.release(node)  # before the start: killed in between, the node may be started by anybody
    process, _ = processes.start(node, kafka.java)
    # A process that has only just begun may have no command line yet to be found by.
    running = {**processes.find(layout.local_nodes), node.id: process}
    wait_until_ready(layout, home.admin_access(site), running, local.READY_TIMEOUT_S)


def _wait(missing: Callable[[], str], layout: SiteLayout, timeout_s: float) -> None:
    pause = threading.Event()
    deadline = Deadline(timeout_s)
    while why := missing():
        if deadline.passed:
            raise SiteError(
                f"the rolling restart stopped: {why}",
                where=f"site {layout.name}",
                hint=f"twinlog status --site {layout.name}",
            )
        pause.wait(LOOK_AGAIN_S)


def look(cluster: Cluster) -> turns.Seen:
    """How the copies of all partitions and the voters of the quorum are now."""
    found = topics.describe(cluster)
    given = configs.describe_many(cluster, configs.Kind.TOPIC, [topic.name for topic in found], [MINIMUM])
    voting = quorum.describe(cluster)
    return turns.Seen(
        leader=voting.leader_id,
        voters=frozenset(voter.id for voter in voting.voters),
        behind=behind(voting),
        partitions=tuple(
            turns.Copies(
                f"{topic.name}-{part.index}",
                part.replicas,
                part.isr,
                int(given[topic.name][MINIMUM].value or 1),
            )
            for topic in found
            for part in topic.partitions
        ),
    )


def behind(voting: Quorum) -> frozenset[int]:
    """Voters of whom the leader has not heard lately that they have all that it has."""
    leading = [voter.last_caught_up_ms for voter in voting.voters if voter.id == voting.leader_id]
    if not leading or leading[0] is None:
        return frozenset()  # before Kafka 3.5 leaders do not tell their own time
    return frozenset(
        voter.id
        for voter in voting.voters
        if voter.id != voting.leader_id
        and (voter.last_caught_up_ms is None or leading[0] - voter.last_caught_up_ms > FOLLOWS_WITHIN_MS)
    )
