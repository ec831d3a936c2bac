"""Keeps clients out of a running site, for all levels of acks, and lets them in again.

A broker that may have one connection closes those of its clients, idle ones first, and accepts no new
ones; the LINK listener is outside that cap, so replication, the mirror and administration go on. Set at
run time and for each broker, not for all by default: controllers would take the default too, and starve.
The fence is complete when no client connection is left, which is looked up among this machine's
sockets; of brokers that run elsewhere it is taken to be when their logs stand still.
"""

from __future__ import annotations

import psutil

from twinlog.sites import processes
from twinlog.sites.layout import Kind, Listener, SiteLayout
from twinlog.wire import configs
from twinlog.wire.cluster import Cluster

SETTING = "max.connections"
FENCED = "1"
_CLIENTS = (Listener.CLIENT, Listener.CLIENT_TLS)


def fence(cluster: Cluster) -> None:
    """Keep clients out of every live broker; connections go in the moments after."""
    for broker in cluster.brokers():
        configs.alter(cluster, configs.Kind.BROKER, str(broker.id), values={SETTING: FENCED})


def release(cluster: Cluster) -> None:
    """Let clients in again."""
    for broker in cluster.brokers():
        configs.alter(cluster, configs.Kind.BROKER, str(broker.id), unset=[SETTING])


def is_fenced(cluster: Cluster) -> bool:
    """True if every live broker keeps clients out."""
    names = [str(broker.id) for broker in cluster.brokers()]
    found = configs.describe_many(cluster, configs.Kind.BROKER, names, [SETTING])
    return all(found[name][SETTING].value == FENCED for name in names)


def clients_left(layout: SiteLayout) -> int:
    """Client connections to brokers of this machine that are still open."""
    nodes = [node for node in layout.local_nodes if node.kind is Kind.BROKER]
    ports = {node.ports[listener] for node in nodes for listener in _CLIENTS}
    count = 0
    for process in processes.find(nodes).values():
        try:
            open_now = process.net_connections(kind="tcp")
        except psutil.Error:
            continue  # it has just ended, and its connections with it
        here = [one.laddr.port for one in open_now if one.status == psutil.CONN_ESTABLISHED]
        count += sum(port in ports for port in here)
    return count
