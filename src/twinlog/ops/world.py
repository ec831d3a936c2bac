"""What is there: one site as it is now, read once, for `plan` to compare with the file.

Everything is read over administration's own access. What a cluster does not offer (an existing one
without an authorizer, say) is None, which means "not ours to compare", never "empty".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from twinlog.errors import KafkaError, TwinlogError
from twinlog.sites import holds, jars, levels, processes, properties
from twinlog.sites.home import Home
from twinlog.sites.layout import Kept, Node, SiteLayout, kept_otherwise
from twinlog.wire import acls, configs, quorum, quotas, reassignments, roles, topics, users
from twinlog.wire.addresses import HostPort
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.listening import listens
from twinlog.wire.offsets import TopicPartition
from twinlog.wire.reassignments import UnderWay

# Broker settings that hold for a whole site are kept by the controllers, not in files.
CLUSTER_SETTINGS = ("min.insync.replicas",)
VERSION = "kafka_version"  # shown among the settings of a node that a start would change
OURS = "__"  # Kafka's own topics and Twinlog's begin like this
PATIENCE = Patience(connect_s=3.0, request_s=10.0, total_s=5.0)
Offered = TypeVar("Offered")
_NOT_OFFERED = frozenset({"SECURITY_DISABLED", "UNSUPPORTED_VERSION", "CLUSTER_AUTHORIZATION_FAILED"})


@dataclass(frozen=True)
class NodeWorld:
    """One node that Twinlog runs."""

    id: int
    name: str
    running: bool
    declared: bool = True
    held: str = ""
    remote: bool = False  # runs elsewhere; whether it does is for its site to say
    # Settings that the running node was started with and that differ now: name → (then, now).
    changed: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    keeps: tuple[Kept, ...] = ()  # although the file wants it otherwise


@dataclass(frozen=True)
class TopicWorld:
    """One topic with the settings that were given to it."""

    partitions: int
    replication: int
    settings: Mapping[str, str]


@dataclass(frozen=True)
class World:
    """One site."""

    site: str
    nodes: tuple[NodeWorld, ...] = ()
    unreachable: str = ""  # why nothing below could be read
    brokers: int = 0  # of a site that Twinlog runs also those that are down
    topics: Mapping[str, TopicWorld] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    rules: frozenset[acls.Acl] | None = None
    credentials: frozenset[users.Credential] | None = None
    quotas: Mapping[str, Mapping[quotas.Limit, float]] | None = None
    standing: roles.Standing | None = None  # what its role record says
    level: int | None = None  # of its metadata
    # What `apply` remembers: user → fingerprint of the password that the site was given.
    applied: Mapping[str, str] = field(default_factory=dict)


def observe(home: Home, site: str) -> World:
    """Read one site."""
    nodes = observe_nodes(home, site)
    state = home.state_file.read()
    applied = dict(state.applied.get(site, {})) if state is not None else {}
    is_unseen = nodes and not any(node.running or node.remote for node in nodes)
    if is_unseen and not somebody_listens(home, site):
        level = levels.on_disks(home.layout(site))
        return World(site, nodes, unreachable="no node of it runs", applied=applied, level=level)
    if not home.bus.sites[site].exists_already and not nodes:
        return _nothing_yet(site, len(home.bus.sites[site].broker_specs))
    try:
        with Cluster(home.admin_access(site), patience=PATIENCE) as cluster:
            return _read(cluster, site, nodes, applied, broker_count(home, site, cluster))
    except TwinlogError as error:
        level = levels.on_disks(home.layout(site)) if is_unseen else None
        return World(site, nodes, unreachable=str(error), applied=applied, level=level)


def somebody_listens(home: Home, site: str) -> bool:
    """True if somebody runs a site whose processes cannot be seen from here."""
    return any(listens(HostPort.parse(address)) for address in home.admin_access(site).bootstrap)


def broker_count(home: Home, site: str, cluster: Cluster) -> int:
    """How many brokers copies are counted by: of a site that Twinlog runs also those that are down."""
    if home.bus.sites[site].exists_already:
        return len(cluster.brokers())
    return home.layout(site).broker_count


def _nothing_yet(site: str, brokers: int) -> World:
    """A site that was never brought up: all that is in the file is still to be made."""
    return World(site, brokers=brokers, rules=frozenset(), credentials=frozenset(), quotas={})


def observe_nodes(home: Home, site: str) -> tuple[NodeWorld, ...]:
    """The nodes of a site that Twinlog runs, with what changed in the file since they started."""
    state = home.state_file.read()
    if home.bus.sites[site].exists_already or state is None or site not in state.sites:
        return ()
    layout = home.layout(site)
    running = processes.find(layout.local_nodes)
    kept = kept_otherwise(home.bus, site, state, home.directory)
    return tuple(
        NodeWorld(
            node.id,
            node.name,
            node.id in running,
            node.declared,
            holds.reason(node),
            node.remote,
            _changes(home, layout, node) if node.id in running else {},
            tuple(kept.get(node.id, ())),
        )
        for node in layout.nodes
    )


def _changes(home: Home, layout: SiteLayout, node: Node) -> Mapping[str, tuple[str | None, str | None]]:
    wanted = properties.written(
        properties.render(properties.server_properties(node, layout, home.tls_files(node)))
    )
    present = properties.written(_text(node.directory / "server.properties"))
    wanted[VERSION] = home.bus.kafka_version_of(layout.name)
    present[VERSION] = jars.version_of(_text(node.directory / processes.ARGUMENT_FILE)) or "unknown"
    names = sorted({*wanted, *present})
    return {
        name: (present.get(name), wanted.get(name)) for name in names if present.get(name) != wanted.get(name)
    }


def _text(path: Path) -> str:
    """What a node was started with; one whose file was lost or damaged gets it anew by a restart."""
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _read(
    cluster: Cluster, site: str, nodes: tuple[NodeWorld, ...], applied: Mapping[str, str], brokers: int
) -> World:
    found = [topic for topic in topics.describe(cluster) if not topic.name.startswith(OURS)]
    given = configs.describe_many(cluster, configs.Kind.TOPIC, [topic.name for topic in found])
    moving = _offered(lambda: reassignments.under_way(cluster)) or {}
    return World(
        site=site,
        nodes=nodes,
        brokers=brokers,
        topics={
            topic.name: TopicWorld(
                len(topic.partitions),
                copies(topic, moving),
                {
                    name: entry.value
                    for name, entry in given[topic.name].items()
                    if entry.source is configs.Source.TOPIC and entry.value is not None
                },
            )
            for topic in found
        },
        settings=_offered(lambda: _cluster_settings(cluster)) or {},
        rules=_offered(lambda: acls.describe(cluster)),
        credentials=_offered(lambda: users.describe(cluster)),
        quotas=_offered(lambda: _user_quotas(cluster)),
        standing=roles.read(cluster),
        level=quorum.features(cluster).levels.get(quorum.METADATA_VERSION) if nodes else None,
        applied=applied,
    )


def copies(topic: topics.TopicState, moving: Mapping[TopicPartition, UnderWay]) -> int:
    """Copies of the partition that has fewest; of one that is being moved, those that it will have."""
    leaving = {index: len(each.removing) for (name, index), each in moving.items() if name == topic.name}
    return min((len(one.replicas) - leaving.get(one.index, 0) for one in topic.partitions), default=0)


def _offered(read: Callable[[], Offered]) -> Offered | None:
    """What a cluster tells, or None where it has no such thing or does not let us look."""
    try:
        return read()
    except KafkaError as error:
        if error.code in _NOT_OFFERED:
            return None
        raise


def _cluster_settings(cluster: Cluster) -> dict[str, str]:
    entries = configs.describe(cluster, configs.Kind.BROKER, configs.EVERY_BROKER)
    return {name: entries[name].value or "" for name in CLUSTER_SETTINGS if name in entries}


def _user_quotas(cluster: Cluster) -> dict[str, Mapping[quotas.Limit, float]]:
    found = quotas.describe(cluster)
    return {
        owner.user: limits
        for owner, limits in found.items()
        if isinstance(owner.user, str) and owner.client_id is None
    }
