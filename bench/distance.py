"""Both mirrors with a long line between the sites: how old records get, and how fast a backlog is copied.

Each site is on a machine of its own (a network namespace), the mirrors beside the standby; what goes
between the two takes a round trip of 40 and of 100 ms. The load is beside the active and the reader beside
the standby. Needs root, as the drills that cut sites apart do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from bench import latency, throughput
from bench.ground import ACTIVE, STANDBY, Ground, ground, say
from bench.limits import Limits
from bench.line import line, round_trip_ms
from bench.peers import Peer, jars
from twinlog.drills.machines import network
from twinlog.sites.host import sysctl
from twinlog.sites.layout import Listener

KERNEL = ("tcp_congestion_control", "tcp_rmem", "tcp_wmem", "tcp_slow_start_after_idle")

Peers = Callable[[Ground], AbstractContextManager[Sequence[Peer]]]


def measure(
    brokers: int,
    identity: str,
    peers: Peers,
    distances_ms: Sequence[int],
    seconds: int,
    sizes: tuple[throughput.Size, throughput.Size],
    limits: Limits,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """By the round trip wanted: what it really was, latencies at the seed's rates, throughput.

    The first size is copied to warm brokers up, the second one counts.
    """
    jars()  # from machines of the network nobody reaches the outside
    yield "kernel", {name: sysctl(f"net.ipv4.{name}") for name in KERNEL}
    with (
        network((ACTIVE, STANDBY)) as joined,
        ground(
            "far",
            brokers,
            machines=joined.machines,
            site_settings=limits.of_sites,
            link={"identity": identity},
        ) as on,
        peers(on) as both,
    ):
        throughput.warm(on, both[0], sizes[0])
        for distance_ms in distances_ms:
            with line(joined, ACTIVE, STANDBY, distance_ms):
                node = on.home.layout(ACTIVE).brokers[0]
                address = joined.machines[ACTIVE].address
                trip_ms = round_trip_ms(joined.machines[STANDBY], address, node.ports[Listener.LINK])
                say(f"a line of {trip_ms:.1f} ms there and back")
                found: dict[str, Any] = {"round_trip_ms": trip_ms}
                found["throughput"] = throughput.measure(on, both, sizes[1], limits=limits)
                found["latency"] = latency.measure(on, both, seconds, limits=limits)
                yield str(distance_ms), found
