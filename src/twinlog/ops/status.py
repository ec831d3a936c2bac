"""How the sites are: nodes, controller, in-sync state, sizes, certificates; read once, never guessed.

What cannot be asked is None and shown as unknown: a site that does not answer says nothing about
its partitions. Used by `twinlog status`, once or again and again.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from twinlog.errors import TwinlogError
from twinlog.ops.world import somebody_listens
from twinlog.sites import holds, processes, supervisor
from twinlog.sites.home import Home
from twinlog.sites.layout import Kind, Node
from twinlog.spec.model import Role
from twinlog.wire import logdirs, quorum, topics
from twinlog.wire.cluster import Cluster, Patience

PATIENCE = Patience(connect_s=2.0, request_s=5.0, total_s=2.0)


@dataclass(frozen=True)
class NodeStatus:
    """One node."""

    site: str
    node: int
    kind: str
    state: str  # up, starting, down, held; unknown for a node elsewhere that nobody can ask
    note: str
    pid: int | None
    cpu_s: float | None
    memory_bytes: int | None
    leads: int | None  # partitions that a broker leads; the quorum for a controller: 1 or 0
    size_bytes: int | None
    free_bytes: int | None
    address: str


@dataclass(frozen=True)
class SiteStatus:
    """One site."""

    site: str
    role: Role
    state: str  # up, degraded, down, unknown
    brokers: int | None
    brokers_declared: int | None
    controller: int | None
    topics: int | None
    partitions: int | None
    under_replicated: int | None
    without_leader: int | None
    size_bytes: int | None
    certificate_days: float | None
    note: str


@dataclass(frozen=True)
class _Answers:
    """What a site's brokers say of themselves."""

    brokers: frozenset[int]
    controller: int | None
    topics: tuple[topics.TopicState, ...]
    dirs: tuple[logdirs.LogDir, ...]


def observe(home: Home, names: tuple[str, ...]) -> tuple[list[SiteStatus], list[NodeStatus]]:
    """Look at these sites now."""
    home.refuse_lost_state()  # else all that runs would be called down
    sites, nodes = [], []
    said = supervisor.report_of(home)
    for name in names:
        known = _nodes_of(home, name)
        running = processes.find(node for node in known if not node.remote)
        elsewhere = any(node.remote for node in known) or (not running and somebody_listens(home, name))
        answers, problem = _ask(home, name) if running or elsewhere or not known else (None, "no node runs")
        if not running and answers is not None:  # in containers, say
            known = tuple(replace(node, remote=True) for node in known)
        nodes += [
            _node_status(node, running.get(node.id), answers, said.get(node.name, "")) for node in known
        ]
        sites.append(_site_status(home, name, known, answers, problem))
    return sites, nodes


def _nodes_of(home: Home, site: str) -> tuple[Node, ...]:
    state = home.state_file.read()
    if home.bus.sites[site].exists_already or state is None or site not in state.sites:
        return ()
    return home.layout(site).nodes


def _ask(home: Home, site: str) -> tuple[_Answers | None, str]:
    if not home.bus.sites[site].exists_already and not _nodes_of(home, site):
        return None, "never brought up"
    try:
        with Cluster(home.admin_access(site), patience=PATIENCE) as cluster:
            brokers = frozenset(broker.id for broker in cluster.brokers())
            leader = quorum.describe(cluster).leader_id
            found = topics.describe(cluster)
            return _Answers(brokers, leader if leader >= 0 else None, found, logdirs.describe(cluster)), ""
    except TwinlogError as error:
        return None, str(error)


def _node_status(
    node: Node, process: psutil.Process | None, answers: _Answers | None, supervised: str
) -> NodeStatus:
    held = holds.reason(node)
    usage = _usage(process)
    is_broker = node.kind is Kind.BROKER
    registered = answers is not None and (not is_broker or node.id in answers.brokers)
    running = "up" if registered else "starting"
    idle = "held" if held else "down"
    return NodeStatus(
        site=node.site,
        node=node.id,
        kind=node.kind.value,
        state=_state_elsewhere(node, answers) if node.remote else (idle if process is None else running),
        note=_note(node, process, held, supervised),
        pid=process.pid if process is not None else None,
        cpu_s=usage[0],
        memory_bytes=usage[1],
        leads=_leads(node, answers),
        size_bytes=_size(node, answers),
        free_bytes=_free(node, answers),
        address=node.address(next(iter(node.ports))),
    )


def _state_elsewhere(node: Node, answers: _Answers | None) -> str:
    """A node that runs elsewhere is up as far as its site says so."""
    if answers is None:
        return "unknown"
    if node.kind is Kind.BROKER:
        return "up" if node.id in answers.brokers else "down"
    return "up" if answers.controller == node.id else "unknown"


def _note(node: Node, process: psutil.Process | None, held: str, supervised: str) -> str:
    if node.remote:
        return "runs elsewhere"
    if process is None and held:
        return held
    return "" if supervised == "runs" and process is not None else supervised


def _usage(process: psutil.Process | None) -> tuple[float | None, int | None]:
    if process is None:
        return None, None
    try:
        times = process.cpu_times()
        return round(times.user + times.system, 1), process.memory_info().rss
    except psutil.Error:
        return None, None


def _leads(node: Node, answers: _Answers | None) -> int | None:
    if answers is None:
        return None
    if node.kind is Kind.CONTROLLER:
        return int(answers.controller == node.id)
    return sum(partition.leader == node.id for topic in answers.topics for partition in topic.partitions)


def _size(node: Node, answers: _Answers | None) -> int | None:
    if node.kind is Kind.CONTROLLER:  # brokers tell of their own logs; a controller's is looked at
        return None if node.remote else sum(_disk_usage(path) for path in node.data)
    if answers is None:
        return None
    return sum(sum(each.size_bytes.values()) for each in answers.dirs if each.broker_id == node.id)


def _free(node: Node, answers: _Answers | None) -> int | None:
    if node.kind is Kind.CONTROLLER:
        return None if node.remote else min(_free_disk(path) for path in node.data)
    if answers is None:
        return None
    free = [each.usable_bytes for each in answers.dirs if each.broker_id == node.id]
    known = [count for count in free if count is not None]
    return min(known) if known else None


def _disk_usage(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _free_disk(directory: Path) -> int:
    return shutil.disk_usage(directory if directory.exists() else directory.anchor).free


def _site_status(
    home: Home, site: str, nodes: tuple[Node, ...], answers: _Answers | None, problem: str
) -> SiteStatus:
    declared = sum(node.kind is Kind.BROKER for node in nodes) if nodes else None
    days = _certificate_days(home) if nodes else None
    role = home.role(site)
    if answers is None:
        down = problem in ("no node runs", "never brought up")
        state = "down" if down else "unknown"
        return SiteStatus(
            site, role, state, None, declared, None, None, None, None, None, None, days, problem
        )
    partitions = [partition for topic in answers.topics for partition in topic.partitions]
    behind = sum(len(partition.isr) < len(partition.replicas) for partition in partitions)
    leaderless = sum(not partition.has_leader for partition in partitions)
    missing = declared is not None and len(answers.brokers) < declared
    degraded = missing or behind or leaderless or answers.controller is None
    return SiteStatus(
        site=site,
        role=role,
        state="degraded" if degraded else "up",
        brokers=len(answers.brokers),
        brokers_declared=declared,
        controller=answers.controller,
        topics=sum(not topic.name.startswith("__") for topic in answers.topics),
        partitions=len(partitions),
        under_replicated=behind,
        without_leader=leaderless,
        size_bytes=sum(sum(each.size_bytes.values()) for each in answers.dirs),
        certificate_days=days,
        note="",
    )


def _certificate_days(home: Home) -> float | None:
    """Days until the first certificate of the bus ends."""
    try:
        return round(min(status.days_left for status in home.pki.status()), 1)
    except (TwinlogError, ValueError):
        return None
