"""A bus's state made again from what its nodes' directories say. Pure.

For `twinlog recover`, when the state file is lost or older than the disks. `remains` reads the files;
`traffic.recovery` adds what only the sites know: roles and terms. What was decided once is never decided
anew: a node keeps the id, ports and data directories that it was started with, a site its cluster id.
What an old state knows and no disk contradicts stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from twinlog.errors import SiteError
from twinlog.sites import properties
from twinlog.sites.layout import IDS_PER_SITE, LISTENERS, Kind, Listener
from twinlog.sites.state import BusState, NodeState, SiteState
from twinlog.spec.effective import broker_ports
from twinlog.spec.model import Bus

# Ranges of sites that were destroyed are seen nowhere any more; there are four million of them.
SPARE_RANGES = 64
NO_RANGE = 0


@dataclass(frozen=True)
class NodeFiles:
    """What one node's directories say."""

    site: str
    name: str  # of its directory: "broker-1"
    settings: Mapping[str, str]  # server.properties
    metas: Mapping[str, Mapping[str, str]]  # data directory → meta.properties, the first first
    producer_range: int = NO_RANGE  # from the bootstrap metadata

    @property
    def id(self) -> int:
        """Its node id."""
        return int(self.settings["node.id"])


@dataclass(frozen=True)
class Difference:
    """Something that is remembered otherwise than it is."""

    what: str
    remembered: str
    found: str


def node_state(files: NodeFiles) -> NodeState:
    """What a node keeps for life, from its files."""
    for directory, meta in files.metas.items():
        if not meta:
            raise SiteError(
                f"node {files.name} has lost its data: {directory} is empty or not mounted",
                where=f"site {files.site}",
                hint=f"mount it again; is the volume there? ls {directory}",
            )
    listeners = files.settings["listeners"].split(",")
    ports = dict(_port(one) for one in listeners if not one.startswith(f"{properties.SPARE}://"))
    ids = [meta["directory.id"] for meta in files.metas.values()]
    return NodeState(ports, ids, list(files.metas), formatted=True)


def _port(listener: str) -> tuple[str, int]:
    name, _, address = listener.partition("://")
    return Listener[name].value, int(address.rpartition(":")[2])


def site_state(name: str, nodes: Sequence[NodeFiles]) -> SiteState:
    """What a site keeps for life, from the files of its nodes."""
    found = {files.id: node_state(files) for files in sorted(nodes, key=lambda files: files.id)}
    clusters = {meta["cluster.id"] for files in nodes for meta in files.metas.values()}
    indexes = {number // IDS_PER_SITE for number in found}
    if len(clusters) > 1 or len(indexes) > 1:
        raise SiteError(
            f"the disks of site {name} belong to {len(clusters)} clusters: {', '.join(sorted(clusters))}",
            hint="was one of them taken from another site? look at its meta.properties",
        )
    ranges = max(files.producer_range for files in nodes)
    return SiteState(indexes.pop(), clusters.pop(), ranges, found)


def rebuilt(bus: Bus, before: BusState | None, nodes: Iterable[NodeFiles]) -> BusState:
    """The state with everything that the disks say; roles are as they were remembered, or as declared."""
    by_site: dict[str, list[NodeFiles]] = {}
    for files in nodes:
        by_site.setdefault(files.site, []).append(files)
    state = deepcopy(before) if before is not None else BusState(bus.bus, bus.active_site)
    for name, files_of_site in by_site.items():
        found = site_state(name, files_of_site)
        state.sites[name] = _with_memory(found, state.sites.get(name))
    used = max((site.producer_range for site in state.sites.values()), default=NO_RANGE)
    if before is None or state.next_producer_range <= used:
        state.next_producer_range = used + 1 + SPARE_RANGES
    return state


def _with_memory(found: SiteState, before: SiteState | None) -> SiteState:
    """A site as found, with what only the old state knows of the same cluster."""
    if before is None or before.cluster_id != found.cluster_id:
        return found
    nodes = dict(before.nodes)
    for number, node in found.nodes.items():
        if number in nodes:
            # A node that was started with its client ports closed does not name them.
            node.ports = {**nodes[number].ports, **node.ports}
        nodes[number] = node
    producer_range = found.producer_range or before.producer_range
    return SiteState(
        found.index, found.cluster_id, producer_range, dict(sorted(nodes.items())), before.agent_port
    )


def give_missing_ports(bus: Bus, state: BusState, free_ports: Callable[[str, int], list[int]]) -> list[str]:
    """Give brokers that were found with their client ports closed others; returns their names."""
    given = []
    for name, site in state.sites.items():
        declared = broker_ports(bus.sites[name])
        for number, node in site.nodes.items():
            if Listener.CONTROLLER.value in node.ports:
                continue
            names = [listener.value for listener in LISTENERS[Kind.BROKER]]
            if missing := [one for one in names if one not in node.ports]:
                fixed = declared.get(number - site.index * IDS_PER_SITE - 1)
                ports = list(fixed) if fixed else free_ports(bus.sites[name].listen, len(names))
                chosen = dict(zip(names, ports, strict=True))
                node.ports = {one: node.ports.get(one, chosen[one]) for one in names}
                given.append(f"{name}/{Kind.BROKER}-{number}: {', '.join(missing)}")
    return given


def differences(before: BusState | None, found: BusState) -> Iterator[Difference]:
    """In what a remembered state is not what was found."""
    if before is None:
        sites = f"{len(found.sites)} site{'' if len(found.sites) == 1 else 's'}"
        yield Difference("the state", "nothing", sites)
        return
    for what, old, new in (
        ("the active site", before.active, found.active),
        ("the term", before.term, found.term),
        ("lost sites", ", ".join(before.lost) or "none", ", ".join(found.lost) or "none"),
    ):
        if old != new:
            yield Difference(what, str(old), str(new))
    for name, site in found.sites.items():
        yield from _site_differences(name, before.sites.get(name), site)


def _site_differences(name: str, old: SiteState | None, new: SiteState) -> Iterator[Difference]:
    if old is None:
        yield Difference(f"site {name}", "nothing", f"cluster {new.cluster_id}, {len(new.nodes)} nodes")
        return
    if old.cluster_id != new.cluster_id:
        yield Difference(f"the cluster id of site {name}", old.cluster_id, new.cluster_id)
    if old.producer_range != new.producer_range:
        what = f"the producer ids of site {name}"
        yield Difference(what, f"range {old.producer_range}", f"range {new.producer_range}")
    for number, node in new.nodes.items():
        was = old.nodes.get(number)
        if was != node:
            yield Difference(f"node {number} of site {name}", _node(was), _node(node))


def _node(node: NodeState | None) -> str:
    if node is None:
        return "nothing"
    ports = ", ".join(f"{listener} {port}" for listener, port in node.ports.items())
    return f"{ports} in {', '.join(node.data)}" + ("" if node.formatted else ", not formatted")
