"""The gate and the health page of one bus, kept where the sites say that clients should go.

The traffic manager has one; `twinlog gate` opens further ones elsewhere. All it knows comes from the
sites' own notes, so any number of them agree without talking to each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from twinlog.sites.home import Home
from twinlog.sites.layout import Listener
from twinlog.spec.model import Role
from twinlog.traffic.dns import NameServer
from twinlog.traffic.gate import Gate, Route
from twinlog.traffic.page import Page, SiteView, View
from twinlog.traffic.serving import Serving
from twinlog.traffic.standings import Standings, Told, Where, where_to
from twinlog.wire.addresses import HostPort

LOOK_AGAIN_S = 1.0
JOIN_TIMEOUT_S = 5.0
Dress = Callable[[View], View]  # adds what only its owner knows


def addresses(home: Home) -> dict[Listener, HostPort]:
    """Where the gate of a bus listens, for each kind of client."""
    gate = home.bus.gate
    first = HostPort.parse(gate.address)
    other = HostPort.parse(gate.tls_address) if gate.tls_address else HostPort(first.host, first.port + 1)
    return {Listener.CLIENT: first, Listener.CLIENT_TLS: other}


class Entrance:
    """A gate that follows the sites, from `with` to its end."""

    def __init__(self, home: Home, log: Callable[[str], None], dress: Dress = lambda view: view) -> None:
        self._home = home
        self._log = log
        self._dress = dress
        self.standings = Standings({site: home.admin_access(site) for site in home.bus.sites})
        self.gate = Gate({listener.name: place for listener, place in addresses(home).items()})
        self._serving = Serving()
        self._view = View(home.bus.bus, "nothing is known yet", None)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="entrance", daemon=True)

    def __enter__(self) -> Self:
        try:
            self._serving.open(self.gate)
            page = self._home.bus.gate.page
            if page is not None:
                self._serving.open(Page(HostPort.parse(page), lambda: self._view))
            dns = self._home.bus.gate.dns
            if dns is not None:
                listen = HostPort.parse(dns.listen)
                self._serving.open(NameServer(listen, dns.name, self._hosts, ttl_s=int(dns.ttl)))
        except BaseException:
            self._serving.close()
            raise
        self.standings.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self.standings.__exit__(kind, error, trace)
        self._thread.join(JOIN_TIMEOUT_S)
        self._serving.close()

    @property
    def view(self) -> View:
        """What the page shows now."""
        return self._view

    def _hosts(self) -> tuple[str, ...]:
        """The hosts of the active site's brokers, for DNS; none while there is no such site."""
        brokers = self.gate.route.brokers.get(Listener.CLIENT.name, ())
        return tuple(dict.fromkeys(broker.host for broker in brokers))

    def _follow(self) -> None:
        told: Mapping[str, Told] = {}
        last: Where | None = None
        while not self._ended.is_set():
            told = self.standings.wait(told, LOOK_AGAIN_S)
            where = where_to(told)
            if where != last:
                self._log(_sentence(where))
                self.gate.move(self._route(where))
                last = where
            self._view = self._dress(self._seen(told, where))

    def _route(self, where: Where) -> Route:
        if where.active is None:
            return Route.closed(where.reason)
        if self._home.bus.sites[where.active].exists_already:
            found = tuple(HostPort.parse(one) for one in self._home.bus.sites[where.active].bootstrap)
            return Route.to(where.active, {listener.name: found for listener in addresses(self._home)})
        layout = self._home.layout(where.active)
        return Route.to(
            where.active,
            {
                listener.name: tuple(HostPort.parse(one) for one in layout.bootstrap(listener))
                for listener in addresses(self._home)
            },
        )

    def _seen(self, told: Mapping[str, Told], where: Where) -> View:
        sites = tuple(
            SiteView(
                site,
                _role(site, where, one),
                "unknown",
                one.trouble or (str(one.standing) if one.standing else "it has not said what it is"),
            )
            for site, one in told.items()
        )
        return View(
            self._home.bus.bus,
            _sentence(where),
            where.active,
            where.reason,
            where.term or None,
            sites,
            self.gate.counters,
        )


def _role(site: str, where: Where, told: Told) -> str:
    if where.active is not None:
        return Role.ACTIVE if site == where.active else Role.STANDBY
    return told.standing.role if told.standing is not None else "unknown"


def _sentence(where: Where) -> str:
    if where.active is None:
        return f"no site is active: {where.reason}"
    return f"site {where.active} is active in term {where.term}"
