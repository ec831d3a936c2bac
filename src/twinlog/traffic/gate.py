"""The one address that clients know: forwards their bootstrap connections to the active site.

Opened by the traffic manager in its `Serving`; `move` is called from any thread. A gate knows its
`Route` and nothing else, so any number of them may run. TLS passes through: brokers have the gate's
name in their certificates. While no site is active the port stays ours and connections are reset,
because clients try again after that; when the site changes, connections to the old one are cut,
because clients that are not cut stay there.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Self

from twinlog.traffic.passage import PATIENCE, Passage, Patience, reset
from twinlog.traffic.rotation import Rotation
from twinlog.traffic.serving import address_of, call_on, listen_on, stop_listening
from twinlog.wire.addresses import HostPort

MAX_CONNECTIONS = 2000
MAX_CONNECTING = 64
SPARE_FILES = 200  # what the rest of the process may have open
FILES_A_CONNECTION = 2
LOOK_EVERY_S = 0.5
DRAIN_LOOK_S = 0.05


@dataclass(frozen=True)
class Route:
    """Where clients go: the active site's brokers by listener, or nowhere and why."""

    site: str | None
    brokers: Mapping[str, tuple[HostPort, ...]] = field(default_factory=dict)
    reason: str = ""  # one sentence, while there is no site

    @classmethod
    def to(cls, site: str, brokers: Mapping[str, tuple[HostPort, ...]]) -> Self:
        """Clients go to this site."""
        return cls(site, MappingProxyType(dict(brokers)))

    @classmethod
    def closed(cls, reason: str) -> Self:
        """Clients go nowhere for now."""
        return cls(None, reason=reason)


@dataclass(frozen=True)
class Counters:
    """What a gate has counted since it was opened."""

    connections_now: int = 0
    connections_total: int = 0  # let in
    refused_closed: int = 0  # no site was active
    refused_full: int = 0
    unreached: int = 0  # let in, and no broker took them
    cut: int = 0  # by a move
    failures: Mapping[str, int] = field(default_factory=dict)  # by broker


def affordable(wanted: int, files: int) -> int:
    """How many connections a process that may open so many files can hold."""
    if files == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, (files - SPARE_FILES) // FILES_A_CONNECTION))


class Gate:
    """Listens on one address for each client listener."""

    def __init__(
        self,
        listens: Mapping[str, HostPort],
        *,
        max_connections: int = MAX_CONNECTIONS,
        patience: Patience = PATIENCE,
    ) -> None:
        self._listens = dict(listens)
        self._max_connections = affordable(max_connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._patience = patience
        self._route = Route.closed("the gate has just been opened")
        self._rotation = Rotation()
        self._connecting = asyncio.Semaphore(MAX_CONNECTING)
        self._passages: set[Passage] = set()
        self._servers: list[asyncio.Server] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self._look: asyncio.TimerHandle | None = None
        self._total = self._refused_closed = self._refused_full = self._unreached = self._cut = 0
        self.addresses: dict[str, HostPort] = {}

    @property
    def route(self) -> Route:
        """Where clients go now."""
        return self._route

    @property
    def counters(self) -> Counters:
        """What was counted; any thread may ask."""
        return Counters(
            connections_now=len(self._passages),
            connections_total=self._total,
            refused_closed=self._refused_closed,
            refused_full=self._refused_full,
            unreached=self._unreached,
            cut=self._cut,
            failures={str(broker): count for broker, count in self._rotation.failures.items()},
        )

    def move(self, route: Route) -> None:
        """Send clients elsewhere; when this returns, all connections to another site are cut."""
        if self._loop is None:
            self._route = route
        else:
            call_on(self._loop, lambda: self._take(route))

    def _take(self, route: Route) -> None:
        self._route = route
        strays = [passage for passage in self._passages if passage.site != route.site]
        self._cut += len(strays)
        for passage in strays:
            passage.cut()

    async def open(self) -> None:
        """Listen."""
        self._loop = asyncio.get_running_loop()
        try:
            for listener, address in self._listens.items():
                bound = listen_on(address, f"the gate ({listener})")
                self.addresses[listener] = address_of(bound)
                self._servers.append(
                    await self._loop.create_server(partial(_Door, self, listener), sock=bound)
                )
        except BaseException:
            await self.close()
            raise
        self._look = self._loop.call_later(LOOK_EVERY_S, self._look_after)

    async def close(self) -> None:
        """Listen no more; exchanges under way may end, the rest is cut."""
        self._closing = True  # connections that were accepted before come in a moment later
        for server in self._servers:
            await stop_listening(server)
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience.drain_s
        while self._passages and loop.time() < end:
            for passage in list(self._passages):
                if passage.is_quiet(self._patience):
                    passage.finish()
            await asyncio.sleep(DRAIN_LOOK_S)
        for passage in list(self._passages):
            passage.cut()
        while self._passages:
            await asyncio.sleep(0)
        if self._look is not None:
            self._look.cancel()
        self._loop = None

    def _welcome(self, listener: str, client: asyncio.Transport) -> None:
        """Let a client in, or turn it away at once."""
        route = self._route
        brokers = route.brokers.get(listener, ())
        if route.site is None or not brokers or self._closing:
            self._refused_closed += 1
            reset(client)
        elif len(self._passages) >= self._max_connections:
            self._refused_full += 1
            reset(client)
        else:
            self._total += 1
            passage = Passage(route.site, brokers, client, self._passages.discard)
            self._passages.add(passage)
            passage.reach(asyncio.get_running_loop().create_task(self._reach(passage)))

    async def _reach(self, passage: Passage) -> None:
        """Join a client with the first broker that accepts."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience.reach_s
        # A storm waits here: with all of it under way, `connect_s` would time ourselves and not the broker.
        async with self._connecting:
            for broker in self._rotation.order(passage.brokers, loop.time()):
                if loop.time() >= end:
                    break
                passage.broker = broker
                try:
                    async with asyncio.timeout(self._patience.connect_s):
                        await loop.create_connection(lambda: passage.far, broker.host, broker.port)
                    return
                except OSError:  # a timeout too
                    self._rotation.failed(broker, loop.time())
        self._unreached += 1
        passage.cut()

    def _look_after(self) -> None:
        """End passages that wait for what does not come."""
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(LOOK_EVERY_S, self._look_after)
        for passage in list(self._passages):
            if passage.is_overdue(self._patience):
                passage.cut()
            elif passage.is_unanswered(self._patience) and self._has_better(passage, loop.time()):
                # A stopped process still accepts: its kernel does. The client comes back at once.
                assert passage.broker is not None
                self._rotation.failed(passage.broker, loop.time())
                passage.cut()

    def _has_better(self, passage: Passage, now: float) -> bool:
        """Whether another broker of the site may be worth a try; a site that is merely slow is not left."""
        others = set(passage.brokers) - {passage.broker}
        return any(not self._rotation.failed_lately(broker, now) for broker in others)


class _Door(asyncio.Protocol):
    """A connection that nobody has looked at yet."""

    def __init__(self, gate: Gate, listener: str) -> None:
        self._gate = gate
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        assert isinstance(transport, asyncio.Transport)
        self._gate._welcome(self._listener, transport)
