"""Who is who at a site that Twinlog runs: node ids, names, directories, ports, memory. Pure.

Made from the declared bus and the remembered state; everything that starts, configures or looks
for a node works on these values. Node ids of two sites never meet: clients drop what they know of
a dead site's leaders only when its broker ids disappear (librdkafka), and a mirror must be able to
tell two brokers apart by number.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from twinlog.errors import SiteError
from twinlog.sites.state import BusState, NodeState, SiteState
from twinlog.spec.effective import broker_ports, broker_settings, controller_ports, is_remote
from twinlog.spec.model import Broker, Bus, Site

IDS_PER_SITE = 1000
FIRST_CONTROLLER = 901


class Kind(StrEnum):
    """What a node does. No node does both: a client fence would starve the quorum."""

    BROKER = "broker"
    CONTROLLER = "controller"


class Listener(StrEnum):
    """Kafka's listeners on our sites; the value is the name in the state file."""

    CLIENT = "client"  # SASL_SSL with SCRAM
    CLIENT_TLS = "client_tls"  # SSL with required client certificates
    LINK = "link"  # brokers, mirror, administration: mTLS under the link authority
    CONTROLLER = "controller"


LISTENERS = {
    Kind.BROKER: (Listener.CLIENT, Listener.CLIENT_TLS, Listener.LINK),
    Kind.CONTROLLER: (Listener.CONTROLLER,),
}


@dataclass(frozen=True)
class Node:
    """One JVM of a site."""

    site: str
    id: int
    kind: Kind
    directory: Path  # configuration, certificates, logs
    data: tuple[Path, ...]
    directory_ids: tuple[str, ...]
    listen: str
    advertise: str
    ports: dict[Listener, int] = field(hash=False)
    memory_bytes: int
    rack: str | None = None
    cpus: float | None = None
    settings: dict[str, str] = field(default_factory=dict, hash=False)  # declared, in Kafka's words
    declared: bool = True  # False for a broker that the file no longer has
    remote: bool = False  # runs on another machine, from a bundle: not ours to start or stop

    @property
    def name(self) -> str:
        """As people read it: `a/broker-1`."""
        return f"{self.site}/{self.kind}-{self.id}"

    def address(self, listener: Listener) -> str:
        """Where clients of a listener reach the node."""
        host = f"[{self.advertise}]" if ":" in self.advertise else self.advertise
        return f"{host}:{self.ports[listener]}"


@dataclass(frozen=True)
class SiteLayout:
    """All nodes of one site."""

    name: str
    index: int
    cluster_id: str
    producer_range: int
    brokers: tuple[Node, ...]
    controllers: tuple[Node, ...]
    jvm: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Controllers first: they are started first."""
        return self.controllers + self.brokers

    @property
    def local_nodes(self) -> tuple[Node, ...]:
        """Those that run on this machine, controllers first."""
        return tuple(node for node in self.nodes if not node.remote)

    def bootstrap(self, listener: Listener) -> tuple[str, ...]:
        """The addresses of a listener, for clients or for the quorum."""
        nodes = self.controllers if listener is Listener.CONTROLLER else self.brokers
        return tuple(node.address(listener) for node in nodes)

    def node(self, number: int) -> Node:
        """The node of that id."""
        for node in self.nodes:
            if node.id == number:
                return node
        known = ", ".join(str(node.id) for node in self.nodes)
        raise SiteError(f"site {self.name} has no node {number}", hint=f"its nodes are {known}")


def random_id() -> str:
    """A fresh id as Kafka writes them: 16 random bytes in URL-safe base64, no leading dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def allocate(
    bus: Bus, state: BusState, directory: Path, free_ports: Callable[[str, int], list[int]]
) -> BusState:
    """Give every declared site and node what it keeps for life: from its first format on, for good.

    `free_ports(host, count)` finds ports nobody uses; it is asked only for nodes without a port.
    """
    for name, site in bus.sites.items():
        if site.exists_already:
            continue
        if name not in state.sites:
            taken = {other.index for other in state.sites.values()}
            index = next(number for number in range(len(taken) + 1) if number not in taken)
            state.sites[name] = SiteState(index, random_id(), state.next_producer_range)
            state.next_producer_range += 1
        _allocate_nodes(name, site, state.sites[name], directory, free_ports)
        if site.agent is None and not site.remote and not state.sites[name].agent_port:
            state.sites[name].agent_port = free_ports(site.listen, 1)[0]
    return state


def _allocate_nodes(
    name: str, site: Site, kept: SiteState, directory: Path, free_ports: Callable[[str, int], list[int]]
) -> None:
    for place in _places(name, site, kept.index, directory):
        node = kept.nodes.get(place.id)
        if node is None:
            ports = place.ports or free_ports(place.listen, len(LISTENERS[place.kind]))
            kept.nodes[place.id] = NodeState(place.named(ports), [random_id() for _ in place.data], place.data)
        elif not _is_settled(place, kept):
            node.ports = place.named(place.ports) if place.ports else node.ports
            ids = node.directory_ids + [random_id() for _ in place.data]
            node.data, node.directory_ids = place.data, ids[: len(place.data)]


@dataclass(frozen=True)
class _Place:
    """Where the file wants one node to be."""

    id: int
    kind: Kind
    listen: str
    ports: list[int]  # none: any that are free
    data: list[str]
    first_port: int | None = None  # of `port:`, of which the node's own are so many later
    ports_later: int = 0

    def named(self, ports: list[int]) -> dict[str, int]:
        return {listener.value: port for listener, port in zip(LISTENERS[self.kind], ports, strict=True)}
def lay_out(bus: Bus, name: str, state: BusState, directory: Path) -> SiteLayout:
    """The nodes that a site has, as far as they are remembered; `allocate` adds those newly declared.

    A broker that is no longer declared is still there until it is removed, and is laid out too.
    """
    site = bus.sites[name]
    kept = state.sites[name]
    base = kept.index * IDS_PER_SITE

    def node(kind: Kind, number: int, position: int, declared: Broker | None) -> Node:
        remembered = kept.nodes[number]
        broker = declared or Broker()
        listen = broker.listen or site.listen
        is_broker = kind is Kind.BROKER
        rack = broker.rack or (site.racks[position % len(site.racks)] if site.racks else None)
        return Node(
            site=name,
            id=number,
            kind=kind,
            directory=directory / "sites" / name / f"{kind}-{number}",
            data=tuple(Path(path) for path in remembered.data),
            directory_ids=tuple(remembered.directory_ids),
            listen=listen,
            advertise=broker.advertise or site.advertise or listen,
            ports={Listener(listener): port for listener, port in remembered.ports.items()},
            memory_bytes=(broker.memory or site.memory) if is_broker else site.controller_memory,
            rack=rack if is_broker else None,
            cpus=broker.cpus or site.cpus,
            settings=broker_settings(bus, name, position if is_broker and declared else None),
            declared=declared is not None,
            remote=is_remote(site, broker) if is_broker else site.remote,
        )

    specs = site.broker_specs
    controllers, brokers = [], []
    for number in sorted(kept.nodes):
        position = number - base - 1
        if position + 1 >= FIRST_CONTROLLER:
            controllers.append(node(Kind.CONTROLLER, number, number - base - FIRST_CONTROLLER, Broker()))
        else:
            brokers.append(
                node(Kind.BROKER, number, position, specs[position] if position < len(specs) else None)
            )
    return SiteLayout(
        name, kept.index, kept.cluster_id, kept.producer_range, tuple(brokers), tuple(controllers), site.jvm
    )
