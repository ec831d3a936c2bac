"""Who is who at a site that Twinlog runs: node ids, names, directories, ports, memory. Pure.

Made from the declared bus and the remembered state; everything that starts, configures or looks
for a node works on these values. Node ids of two sites never meet: clients drop what they know of
a dead site's leaders only when its broker ids disappear (librdkafka), and a mirror must be able to
tell two brokers apart by number.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterator
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
    withheld: tuple[str, ...] = ()  # variables with users' passwords, which are nothing to a node

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
    def broker_count(self) -> int:
        """How many brokers the site has by its file, up or not; one that is to be removed does not count.

        Copies are counted by this: a broker that is down has a registration, so Kafka places copies on it
        and they fill when it is back.
        """
        return sum(node.declared for node in self.brokers)

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


@dataclass(frozen=True)
class Kept:
    """Something that a node keeps, and what to write in the file so that it says the same."""

    what: str  # "port 29092"
    hint: str


@dataclass(frozen=True)
class _Place:
    """Where the file wants one node to be."""

    id: int
    kind: Kind
    listen: str
    ports: list[int]  # none: any that are free
    ports_later: int  # how far its first port is above the `port:` of the file
    shares_port: bool  # that `port:` is its site's
    data: list[str]

    def named(self, ports: list[int]) -> dict[str, int]:
        """Ports by the listeners of such a node."""
        return {listener.value: port for listener, port in zip(LISTENERS[self.kind], ports, strict=True)}


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
            kept.nodes[place.id] = NodeState(
                place.named(ports), [random_id() for _ in place.data], place.data
            )
        elif not _is_settled(place, kept):
            node.ports = place.named(place.ports) if place.ports else node.ports
            ids = node.directory_ids + [random_id() for _ in place.data]
            node.data, node.directory_ids = place.data, ids[: len(place.data)]


def _is_settled(place: _Place, kept: SiteState) -> bool:
    """True when a node can no longer be moved; controllers are known to all nodes of their site."""
    if place.kind is Kind.CONTROLLER:
        return any(node.formatted for node in kept.nodes.values())
    return kept.nodes[place.id].formatted


def kept_otherwise(bus: Bus, name: str, state: BusState, directory: Path) -> dict[int, list[Kept]]:
    """What settled nodes of a site keep although the file now wants it otherwise, by node id."""
    kept = state.sites[name]
    places = [
        place
        for place in _places(name, bus.sites[name], kept.index, directory)
        if place.id in kept.nodes and _is_settled(place, kept)
    ]
    shared = {_said(place, kept.nodes[place.id]) for place in places if place.shares_port}
    found: dict[int, list[Kept]] = {}
    for place in places:
        node = kept.nodes[place.id]
        if place.ports and node.ports != place.named(place.ports):
            said = _said(place, node)
            agreed = said is not None and (not place.shares_port or len(shared) == 1)
            hint = f"port: {said}" if agreed else "take `port:` out of the file"
            port = node.ports[LISTENERS[place.kind][0].value]
            found.setdefault(place.id, []).append(Kept(f"port {port}", hint))
        if node.data != place.data:
            roots = ", ".join(str(Path(path).parent) for path in node.data)
            own = node.data == _own_data(name, place.kind, place.id, directory)
            hint = "take `data:` out of the file" if own else f"data: [{roots}]"
            found.setdefault(place.id, []).append(Kept(f"its data in {', '.join(node.data)}", hint))
    return found


def _said(place: _Place, node: NodeState) -> int | None:
    """What `port:` would have to be for the ports that a node has; None if it cannot say them."""
    first = node.ports[LISTENERS[place.kind][0].value]
    row = place.named(list(range(first, first + len(place.ports))))
    said = first - place.ports_later
    return said if node.ports == row and said > 0 else None


def _places(name: str, site: Site, index: int, directory: Path) -> Iterator[_Place]:
    base = index * IDS_PER_SITE
    for position in range(site.controllers):
        number = base + FIRST_CONTROLLER + position
        ports = list(controller_ports(site)[position : position + 1])
        data = _own_data(name, Kind.CONTROLLER, number, directory)
        later = ports[0] - site.port if site.port else 0
        yield _Place(number, Kind.CONTROLLER, site.listen, ports, later, bool(ports), data)
    declared = broker_ports(site)
    for position, broker in enumerate(site.broker_specs):
        number = base + 1 + position
        ports = list(declared.get(position, ()))
        roots = broker.data if broker.data is not None else site.data
        data = [str((directory.parent / root).absolute() / f"{name}-broker-{number}") for root in roots]
        data = data or _own_data(name, Kind.BROKER, number, directory)
        shares = site.port is not None and broker.port is None
        later = ports[0] - site.port if site.port and shares else 0
        yield _Place(number, Kind.BROKER, broker.listen or site.listen, ports, later, shares, data)


def _own_data(name: str, kind: Kind, number: int, directory: Path) -> list[str]:
    return [str(directory / "sites" / name / f"{kind}-{number}" / "data")]


def lay_out(bus: Bus, name: str, state: BusState, directory: Path) -> SiteLayout:
    """The nodes that a site has, as far as they are remembered; `allocate` adds those newly declared.

    A broker that is no longer declared is still there until it is removed, and is laid out too.
    """
    site = bus.sites[name]
    kept = state.sites[name]
    base = kept.index * IDS_PER_SITE
    given = (user.password for user in bus.users.values() if user.password is not None)
    withheld = tuple(sorted(password.env for password in given if password.env is not None))

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
            withheld=withheld,
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
