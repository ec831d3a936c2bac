"""Makes a site larger or smaller by what the file says now, without an outage.

For `twinlog broker add` and `broker remove`. The file comes first: `brokers:` says how many there shall be.
Adding is `apply` and a move of partitions onto the new brokers. Removing is what `apply` refuses: partitions
leave the brokers that the file no longer has, then those are stopped, forgotten by the cluster, and
deleted here, in an order in which a killed command is simply run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twinlog.errors import KafkaError, SiteError, UsageError
from twinlog.ops import reassign
from twinlog.ops.apply import apply_all
from twinlog.ops.move_journal import MoveJournal
from twinlog.progress import Progress
from twinlog.sites import holds, local, removal, storage
from twinlog.sites.home import Home
from twinlog.sites.layout import Node
from twinlog.wire import configs, membership, topics
from twinlog.wire.cluster import Cluster

WHY_HELD = "it is being removed"
CORDON, ALL = "cordoned.log.dirs", "*"  # no new partition is put on these of its disks (KIP-1066)
_NO_CORDONS = frozenset({"INVALID_CONFIG", "UNSUPPORTED_VERSION"})  # a site that began before Kafka 4.3
ROUNDS = 5  # of moving: a topic may be made while its neighbours are on their way


@dataclass(frozen=True)
class Resized:
    """What came of it."""

    brokers: tuple[int, ...]
    partitions: int  # that were moved


def new_brokers(home: Home, site: str) -> list[int]:
    """Positions of brokers that the file has and the site has not, as numbers from one."""
    state = home.state()
    present = len(home.layout(site).brokers) if site in state.sites else 0
    return list(range(present + 1, len(home.bus.sites[site].broker_specs) + 1))


def add(home: Home, site: str, progress: Progress, *, rate_bytes: int | None) -> Resized:
    """Start the brokers that the file has and the site has not, and give them their share of partitions."""
    home.must_run(site, "add brokers to")
    before = {node.id for node in home.layout(site).brokers}
    journal = MoveJournal(home, site)
    if not new_brokers(home, site) and journal.read() is None:
        raise UsageError(
            f"site {site} has all {len(before)} brokers of the file",
            where=str(home.file),
            hint=f"to add one, write under sites.{site}:  brokers: {len(before) + 1}",
        )
    apply_all(home, [site], progress, yes=False)
    with Cluster(home.admin_access(site)) as cluster:
        wanted = journal.read()
        if wanted is None:
            reassign.refuse_other_moves(cluster, journal)
            wanted = reassign.intended(reassign.plan(reassign.observe(cluster)), rate_bytes)
        moved = reassign.run(cluster, journal, wanted, progress)
    added = [node.id for node in home.layout(site).brokers if node.id not in before]
    return Resized(tuple(added), moved)


def leaving(home: Home, site: str) -> list[Node]:
    """Brokers that the file no longer has."""
    home.must_run(site, "remove brokers from")
    layout = home.layout(site)
    gone = [node for node in layout.brokers if not node.declared]
    if not gone:
        raise UsageError(
            f"the file has all {len(layout.brokers)} brokers of site {site}",
            where=str(home.file),
            hint=f"to remove the last one, write under sites.{site}:  brokers: {len(layout.brokers) - 1}",
        )
    return gone


def remove(home: Home, site: str, progress: Progress, *, rate_bytes: int | None) -> Resized:
    """Have the brokers that the file no longer has give up their partitions, and delete them."""
    gone = leaving(home, site)
    journal = MoveJournal(home, site)
    with Cluster(home.admin_access(site)) as cluster:
        for node in gone:
            _cordon(cluster, node)
        moved = _empty(cluster, journal, gone, progress, rate_bytes)
        for node in gone:
            _end(home, cluster, node, progress)
    return Resized(tuple(node.id for node in gone), moved)


def _cordon(cluster: Cluster, node: Node) -> None:
    """Keep new partitions away from a broker; without that, moving is repeated until none has come."""
    try:
        if _lives(cluster, node):
            configs.alter(cluster, configs.Kind.BROKER, str(node.id), values={CORDON: ALL})
    except KafkaError as error:
        if error.code not in _NO_CORDONS:
            raise


def _lives(cluster: Cluster, node: Node) -> bool:
    return node.id in {broker.id for broker in cluster.brokers()}


def _empty(
    cluster: Cluster, journal: MoveJournal, gone: Sequence[Node], progress: Progress, rate_bytes: int | None
) -> int:
    ids = {node.id for node in gone}
    moved = 0
    if (wanted := journal.read()) is not None:
        moved += reassign.run(cluster, journal, wanted, progress)
    for _ in range(ROUNDS):
        placement = reassign.observe(cluster)
        if not any(ids & set(replicas) for replicas in placement.current.values()):
            return moved
        reassign.refuse_other_moves(cluster, journal)
        wanted = reassign.intended(reassign.plan(placement, without=ids), rate_bytes)
        moved += reassign.run(cluster, journal, wanted, progress)
    raise SiteError(
        f"new partitions keep coming to {gone[0].name}",
        where=f"site {gone[0].site}",
        hint="twinlog topic list",
    )


def _end(home: Home, cluster: Cluster, node: Node, progress: Progress) -> None:
    """Stop a broker that holds nothing, and let everybody forget it, ourselves last."""
    if _lives(cluster, node):
        # Only a broker that lives can be asked, and the next one with this id must not begin cordoned.
        configs.alter(cluster, configs.Kind.BROKER, str(node.id), unset=[CORDON])
    holds.hold(node, WHY_HELD)
    local.stop([node], progress)
    cluster.forget()
    if any(node.id in part.replicas for topic in topics.describe(cluster) for part in topic.partitions):
        raise SiteError(
            f"{node.name} was given a new partition in the last moment",
            where=f"site {node.site}",
            hint=f"twinlog up --site {node.site}; then: twinlog broker remove --site {node.site} --yes",
        )
    membership.unregister_broker(cluster, node.id)
    for path in node.data:
        removal.delete(path)
        removal.delete(storage.making_of(path))
    removal.delete(node.directory)
    state = home.state()
    del state.sites[node.site].nodes[node.id]
    home.state_file.write(state)
    progress.note(f"{node.name} is gone")
