"""Keeps clients out of a running site, for all levels of acks, and lets them in again.

A broker that may have one connection closes those of its clients, idle ones first, and accepts no new
ones; the LINK listener is outside that cap, so replication, the mirror and administration go on. Set at
run time and for each broker, not for all by default: controllers would take the default too, and starve.
The fence is complete when no client is served any more, which is looked up among this machine's
sockets; of brokers that run elsewhere it is taken to be when their logs stand still. A broker's network
thread closes one connection each time that it wakes up, and a quiet one wakes up three times a second;
`stirred` keeps them awake, so that a hundred idle connections go as quickly as one.

A client's last connection should not go together with its others. librdkafka (2.16 at least) asks for
metadata when it loses one, and if the answer waits inside it while the last one goes, it never asks its
bootstrap address again: it would stay with this site. `thin` takes the others a moment earlier.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

import psutil

from twinlog.sites import processes
from twinlog.sites.layout import Kind, Listener, Node, SiteLayout
from twinlog.wire import configs
from twinlog.wire.cluster import Cluster

SETTING = "max.connections"
FENCED = "1"
ROLES = "process.roles"
LISTENERS = "advertised.listeners"
BETWEEN_BROKERS, PROTOCOL_BETWEEN = "inter.broker.listener.name", "security.inter.broker.protocol"
_CLIENTS = (Listener.CLIENT, Listener.CLIENT_TLS)
# Connections are dealt out to a listener's network threads in turn; three by default, rarely more than these.
STIRRERS = 12
STIR_EVERY_S = 0.002
CONNECT_TIMEOUT_S = 0.5
JOIN_TIMEOUT_S = 2.0
# Between a client's other connections and its last one: by then what it asked about the others was answered,
# and its own threads have seen the answer, on a busy machine too.
PARTING_S = 0.3
# The beginning of a TLS record of 16 KiB: whatever follows, byte by byte, is read and waited with.
_LONG_RECORD = b"\x16\x03\x01\x40\x00"
_MORE = b"\x01"

Connection = tuple[int, str, int]  # the broker's port, and the client's address and port
Running = Mapping[int, psutil.Process]  # by the broker's id


def thin(cluster: Cluster, layout: SiteLayout, running: Running) -> frozenset[int]:
    """Leave clients one broker, and there half of their connections, those last used; then wait a moment.

    Returns the brokers that are fenced already: each is asked by itself, and clients wait meanwhile.
    """
    *others, last = cluster.brokers()
    for broker in others:
        _allow(cluster, broker.id, FENCED)
    node = next((one for one in _nodes(layout) if one.id == last.id and one.id in running), None)
    if node is not None:
        served = _open(running[node.id], set(node.ports.values()))
        mine = {node.ports[listener] for listener in _CLIENTS}
        room = room_for_half(len(served), sum(port in mine for port, *_ in served))
        _allow(cluster, last.id, str(room))
    threading.Event().wait(PARTING_S)
    return frozenset(broker.id for broker in others)


def room_for_half(served: int, clients: int) -> int:
    """How many connections a broker may have so that half of its clients' go: all kinds are counted."""
    return max(served - clients // 2, 1)


def fence(cluster: Cluster, fenced: Container[int] = ()) -> None:
    """Keep clients out of every live broker, but for those that do; connections go in the moments after."""
    for broker in cluster.brokers():
        if broker.id not in fenced:
            _allow(cluster, broker.id, FENCED)


def harm(settings: Mapping[str, str | None], address: str) -> str:
    """What a fence would do to a broker beside keeping clients out; `address` is where we reach it.

    Of several listeners the one that brokers use among themselves is outside the cap, and no other.
    """
    if "controller" in (settings.get(ROLES) or ""):
        return "its brokers are controllers too, and the quorum would starve"
    listeners = dict(
        entry.strip().split("://", 1)
        for entry in (settings.get(LISTENERS) or "").split(",")
        if "://" in entry
    )
    between = settings.get(BETWEEN_BROKERS) or settings.get(PROTOCOL_BETWEEN) or ""
    if len(listeners) < 2 or listeners.get(between) != address:
        return "it is reached by a listener that the fence would close to us too"
    return ""


def harm_at(cluster: Cluster) -> str:
    """The same for a site that others run, by what its brokers say; empty if it can be fenced."""
    keys = [ROLES, LISTENERS, BETWEEN_BROKERS, PROTOCOL_BETWEEN]
    for broker in cluster.brokers():
        found = configs.describe(cluster, configs.Kind.BROKER, str(broker.id), keys)
        why = harm({key: entry.value for key, entry in found.items()}, str(broker.address))
        if why:
            return why
    return ""


def _allow(cluster: Cluster, broker_id: int, connections: str) -> None:
    configs.alter(cluster, configs.Kind.BROKER, str(broker_id), values={SETTING: connections})


@contextmanager
def stirred(layout: SiteLayout) -> Iterator[None]:
    """Have the network threads of this machine's brokers look often; to be begun before the fence."""
    places = [(node.listen, node.ports[listener]) for node in _nodes(layout) for listener in _CLIENTS]
    ended = threading.Event()
    with ExitStack() as stack:
        stirrers = [
            stack.enter_context(stirrer)
            for place in places
            for _ in range(STIRRERS)
            if (stirrer := _connected(place)) is not None
        ]
        thread = threading.Thread(target=_stir, args=(stirrers, ended), name="stirring", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(JOIN_TIMEOUT_S)


def _connected(place: tuple[str, int]) -> socket.socket | None:
    try:
        stirrer = socket.create_connection(place, CONNECT_TIMEOUT_S)
    except OSError:
        return None  # a broker that is down has nobody to let go
    stirrer.setblocking(False)
    with suppress(OSError):
        stirrer.send(_LONG_RECORD)
    return stirrer


def _stir(stirrers: list[socket.socket], ended: threading.Event) -> None:
    while not ended.wait(STIR_EVERY_S):
        for stirrer in stirrers:
            with suppress(
                OSError
            ):  # it was closed like all others, or the broker has more to read than it can
                stirrer.send(_MORE)


def release(cluster: Cluster) -> None:
    """Let clients in again."""
    for broker in cluster.brokers():
        configs.alter(cluster, configs.Kind.BROKER, str(broker.id), unset=[SETTING])


def lift(cluster: Cluster) -> None:
    """Let clients in again where a fence keeps them out; another cap of those who run the brokers stays."""
    for name, value in _caps(cluster).items():
        if value == FENCED:
            configs.alter(cluster, configs.Kind.BROKER, name, unset=[SETTING])


def is_fenced(cluster: Cluster) -> bool:
    """True if every live broker keeps clients out."""
    return all(value == FENCED for value in _caps(cluster).values())


def _caps(cluster: Cluster) -> dict[str, str | None]:
    names = [str(broker.id) for broker in cluster.brokers()]
    found = configs.describe_many(cluster, configs.Kind.BROKER, names, [SETTING])
    return {name: found[name][SETTING].value for name in names}


def brokers(layout: SiteLayout) -> Running:
    """The brokers of this machine, to be looked for once: that means a look at every process."""
    return processes.find(_nodes(layout))


def clients(layout: SiteLayout, running: Running) -> frozenset[Connection]:
    """The client connections to brokers that are open now."""
    ports = {node.ports[listener] for node in _nodes(layout) for listener in _CLIENTS}
    return frozenset(one for process in running.values() for one in _open(process, ports))


def _open(process: psutil.Process, ports: set[int]) -> set[Connection]:
    """The connections that a process has accepted at some ports."""
    try:
        found = process.net_connections(kind="tcp")
    except psutil.Error:
        return set()  # it has just ended, and its connections with it
    return {
        (one.laddr.port, *one.raddr)
        for one in found
        if one.status == psutil.CONN_ESTABLISHED and one.laddr.port in ports
    }


def still_served(now: frozenset[Connection], before: frozenset[Connection]) -> int:
    """How many clients a site that was fenced still serves; `before` has those from before the fence.

    Of those that have come since, one waits at each port: its connection was accepted, and nobody reads
    from it, because the thread that accepts has found no room and waits with it.
    """
    late = Counter(port for port, *_ in now - before)
    return len(now & before) + sum(late.values()) - len(late)


def _nodes(layout: SiteLayout) -> list[Node]:
    return [node for node in layout.local_nodes if node.kind is Kind.BROKER]
