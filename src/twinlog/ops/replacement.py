"""Gives a node whose disk is lost an empty one, and waits until it holds again what it should.

For `twinlog broker replace`. Nothing is emptied here: a directory that can be read is refused. Before the
empty broker comes back, partitions whose only copy in sync was on the lost disk are led by whoever has
most of them left, because an empty broker that led them would have the others throw away what they have.
A controller's vote belongs to its disk, so the old one is taken away and the new one added.
"""

from __future__ import annotations

import base64
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from twinlog.errors import SiteError, UsageError
from twinlog.ops.pace import Pace
from twinlog.progress import Progress
from twinlog.sites import holds, local, processes, rolling, storage
from twinlog.sites.home import Home
from twinlog.sites.layout import Kind, Listener, Node, SiteLayout, random_id
from twinlog.sites.readiness import wait_until_ready
from twinlog.wire import elections, logdirs, membership, quorum, topics
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline
from twinlog.wire.logdirs import LogDir
from twinlog.wire.topics import TopicState

ASK_S = 30.0
LOOK_AGAIN_S = 0.3
SAY_EVERY_S = 5.0
WHY_HELD = "its disk is being replaced"


@dataclass(frozen=True)
class Endangered:
    """A partition whose only copy in sync was on the lost disk."""

    topic: str
    partition: int
    survivors: tuple[int, ...]  # live brokers with an older copy

    @property
    def loses(self) -> str:
        """What is lost, for people."""
        if not self.survivors:
            return "all its records"
        return f"what broker {' or '.join(map(str, self.survivors))} does not have"


@dataclass(frozen=True)
class Replaced:
    """What came of it."""

    node: str
    lost: tuple[str, ...]  # directories that were made anew
    partitions: int
    endangered: tuple[Endangered, ...]
    seconds: float


def find_node(home: Home, number: int) -> tuple[str, SiteLayout, Node]:
    """The site that we run which has that node; ids of two sites never meet."""
    state = home.state()
    for name in home.local_sites:
        if name in state.sites and number in state.sites[name].nodes:
            layout = home.layout(name)
            return name, layout, layout.node(number)
    raise UsageError(f"no site has a node {number}", where=str(home.file), hint="twinlog status")


def lost_directories(node: Node) -> tuple[Path, ...]:
    """Data directories that cannot be read."""
    return tuple(path for path in node.data if not storage.is_readable(path))


def endangered(found: tuple[TopicState, ...], broker: int) -> list[Endangered]:
    """Partitions of which no other broker has a copy that is known to be complete."""
    return [
        Endangered(
            topic.name,
            part.index,
            tuple(other for other in part.replicas if other != broker and other not in part.offline),
        )
        for topic in found
        for part in topic.partitions
        if broker in part.replicas and not {*part.isr, *part.elr} - {broker}
    ]


def survey(home: Home, site: str, node: Node, *, timeout_s: float = ASK_S) -> list[Endangered]:
    """What would be lost if the node came back empty, and a refusal of what is not lost at all."""
    if node.remote:
        raise UsageError(f"{node.name} runs on another machine", hint=f"twinlog bundle --node {node.id}")
    patience = Patience(total_s=min(ASK_S, timeout_s))
    with Cluster(home.admin_access(site), patience=patience) as cluster:
        _refuse_readable(cluster, node)
        return endangered(topics.describe(cluster), node.id) if node.kind is Kind.BROKER else []


def _refuse_readable(cluster: Cluster, node: Node) -> None:
    for path in lost_directories(node):
        if path.is_dir() and any(path.iterdir()):
            raise SiteError(
                f"{node.name} would have to format a directory that is not empty",
                where=str(path),
                hint=f"whose files are these? ls {path}",
            )
    if lost_directories(node):
        return
    # A replacement that was killed after the format: the disk is there, and its vote may not be.
    if node.kind is Kind.CONTROLLER and not _votes(cluster, node):
        return
    raise UsageError(
        f"the disk of {node.name} is not lost: {', '.join(map(str, node.data))} can be read",
        where=f"site {node.site}",
        hint=f"twinlog up --site {node.site}",
    )


def replace(home: Home, site: str, node: Node, progress: Progress, *, timeout_s: float) -> Replaced:
    """Have the node running on empty directories in the place of those it lost, and in sync."""
    began_s = time.monotonic()
    kafka = local.ensure_kafka(progress, home.bus.kafka_version_of(site))
    lost = lost_directories(node)
    is_broker = node.kind is Kind.BROKER
    with Cluster(home.admin_access(site)) as cluster:
        _refuse_readable(cluster, node)
        if not is_broker:
            _refuse_last_voter(cluster, node)
        holds.hold(node, WHY_HELD)
        local.stop([node], progress)
        node = _with_new_ids(home, site, node, lost)
        in_danger: list[Endangered] = []
        if is_broker:
            in_danger = endangered(topics.describe(cluster), node.id)
            elections.elect_survivors(
                cluster, [(each.topic, each.partition) for each in in_danger if each.survivors]
            )
        else:
            _take_old_vote(cluster, node)
        _format(home, site, node, kafka, progress)
        _start(home, site, node, kafka, timeout_s)
        cluster.forget()
        if is_broker:
            # Of these nobody else has anything: they begin again with no record.
            elections.elect_survivors(cluster, [(each.topic, each.partition) for each in in_danger])
            count = wait_for_copies(cluster, node, progress, timeout_s)
        else:
            count = 0
            _give_vote(cluster, node, progress, timeout_s)
    took_s = round(time.monotonic() - began_s, 1)
    return Replaced(node.name, tuple(map(str, lost)), count, tuple(in_danger), took_s)


def _with_new_ids(home: Home, site: str, node: Node, lost: tuple[Path, ...]) -> Node:
    """A directory that is made anew is another one to Kafka; written down before it is made."""
    state = home.state()
    kept = state.sites[site].nodes[node.id]
    kept.directory_ids = [
        random_id() if Path(path) in lost else known
        for path, known in zip(kept.data, kept.directory_ids, strict=True)
    ]
    home.state_file.write(state)
    return home.layout(site).node(node.id)


def _format(home: Home, site: str, node: Node, kafka: local.Kafka, progress: Progress) -> None:
    if not lost_directories(node):
        return
    task = f"formatting {node.name}"
    progress.begin(task)
    scratch = home.directory / "sites" / site / "formatting"
    try:
        storage.format_joining(home.layout(site), node, kafka.command(), scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    progress.end(task)


def _start(home: Home, site: str, node: Node, kafka: local.Kafka, timeout_s: float) -> None:
    layout = home.layout(site)
    local.configure(home, layout, node, kafka)
    holds.release(node)
    process, _ = processes.start(node, kafka.java)
    running = {**processes.find(layout.local_nodes), node.id: process}
    wait_until_ready(layout, home.admin_access(site), running, timeout_s)


def wait_for_copies(cluster: Cluster, node: Node, progress: Progress, timeout_s: float) -> int:
    """Wait until a broker is in sync everywhere; returns how many partitions it holds."""
    task = f"{node.name} copies what it lost"
    parts = [part for topic in topics.describe(cluster) for part in topic.partitions]
    total = sum(node.id in part.replicas for part in parts)
    progress.begin(task, total=total)
    pace, said_s, there = Pace(), time.monotonic(), 0

    def missing() -> str:
        nonlocal said_s, there
        left = [
            (topic.name, part.index)
            for topic in topics.describe(cluster)
            for part in topic.partitions
            if node.id in part.replicas and node.id not in part.isr
        ]
        progress.advance(task, max(0, total - len(left) - there))
        there = max(there, total - len(left))
        if left and time.monotonic() - said_s > SAY_EVERY_S:
            said_s = time.monotonic()
            pace.see(said_s, left_bytes(logdirs.describe(cluster), node.id, left))
            progress.note(f"{len(left)} of {total} partitions are behind; {pace.sentence()}")
        return f"{left[0][0]}-{left[0][1]} is not in sync there" if left else ""

    _wait(missing, node, timeout_s)
    progress.end(task)
    return total


def left_bytes(found: Iterable[LogDir], broker: int, places: Iterable[tuple[str, int]]) -> int:
    """What a broker's copies lack, by what the largest other copies take."""
    own: dict[tuple[str, int], int] = {}
    largest: dict[tuple[str, int], int] = {}
    for each in found:
        for place, size in each.size_bytes.items():
            if each.broker_id == broker:
                own[place] = size
            largest[place] = max(size, largest.get(place, 0))
    return sum(max(0, largest.get(place, 0) - own.get(place, 0)) for place in places)


# The quorum


def directory_id(text: str) -> UUID:
    """Kafka's id of a directory as it writes it, as bytes."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _votes(cluster: Cluster, node: Node) -> bool:
    mine = directory_id(node.directory_ids[0])
    return any(voter.id == node.id and voter.directory == mine for voter in quorum.describe(cluster).voters)


def _refuse_last_voter(cluster: Cluster, node: Node) -> None:
    others = [voter for voter in quorum.describe(cluster).voters if voter.id != node.id]
    if not others:
        raise SiteError(
            f"{node.name} was the only controller: what the site knew of its topics is gone with its disk",
            where=f"site {node.site}",
            hint=f"is there a backup of its disk? else: twinlog destroy --site {node.site} --yes",
        )


def _take_old_vote(cluster: Cluster, node: Node) -> None:
    mine = directory_id(node.directory_ids[0])
    for voter in quorum.describe(cluster).voters:
        if voter.id == node.id and voter.directory != mine:
            membership.remove_voter(cluster, voter.id, voter.directory)


def _give_vote(cluster: Cluster, node: Node, progress: Progress, timeout_s: float) -> None:
    """Wait until a controller has the metadata, and let it vote."""
    task = f"{node.name} gets its vote"
    progress.begin(task)
    mine = directory_id(node.directory_ids[0])

    def missing() -> str:
        known = quorum.describe(cluster)
        if any(voter.id == node.id and voter.directory == mine for voter in known.voters):
            return ""
        for observer in known.observers:
            if observer.id == node.id and observer.directory == mine and observer.lag_records == 0:
                address = HostPort.parse(node.address(Listener.CONTROLLER))
                membership.add_voter(cluster, node.id, mine, address)
                return "its vote is not known yet"
        return "it has not caught up with the quorum's leader"

    _wait(missing, node, timeout_s)
    _wait(
        lambda: "it does not follow" if node.id in rolling.behind(quorum.describe(cluster)) else "",
        node,
        timeout_s,
    )
    progress.end(task)


def _wait(missing: Callable[[], str], node: Node, timeout_s: float) -> None:
    pause, deadline = threading.Event(), Deadline(timeout_s)
    while why := missing():
        if deadline.passed:
            raise SiteError(
                f"{node.name} runs on its new disk and is not complete after {timeout_s:g} s: {why}",
                where=f"site {node.site}",
                hint="it goes on by itself: twinlog broker list",
            )
        pause.wait(LOOK_AGAIN_S)
