"""The pages that Prometheus asks for, over HTTP or HTTPS, with or without a password.

    GET /metrics         the active site, whichever that is now, and how far the standby is behind it
    GET /metrics/NAME    one site
    GET /healthz         ok, as long as this process answers

Served by `twinlog exporter`. Each request has a thread of its own, and what it waits for is bounded by
its Watch. The password is compared in constant time and never written anywhere.
"""

from __future__ import annotations

import base64
import hmac
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import Metric
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from twinlog.errors import PrerequisiteError, UsageError
from twinlog.export.families import families
from twinlog.export.link import LinkSeen
from twinlog.export.observation import Watch
from twinlog.wire.addresses import HostPort

METRICS, HEALTH = "/metrics", "/healthz"
Environ = dict[str, Any]
Start = Callable[..., Any]
Wsgi = Callable[[Environ, Start], Iterable[bytes]]


@dataclass(frozen=True)
class Tls:
    """Certificate and key of the page; with `authority` clients need a certificate that it signed."""

    certificate: Path
    key: Path
    authority: Path | None = None


@dataclass(frozen=True)
class Looks:
    """Who looks at what of a bus, and which of its sites is active now."""

    name: str
    sites: Mapping[str, Watch]
    active: Callable[[], str]
    link: Callable[[], LinkSeen] | None = None  # of a bus with two sites


class SiteCollector(Collector):
    """The metrics of one site, looked at when they are asked for."""

    def __init__(self, bus: Looks, site: str) -> None:
        self._bus = bus
        self._site = site

    def collect(self) -> Iterable[Metric]:
        """All metrics, as they are now."""
        is_active = self._bus.active() == self._site
        yield from families(
            self._bus.sites[self._site].seen(),
            self._bus.name,
            self._site,
            is_active=is_active,
            link=self._bus.link() if is_active and self._bus.link is not None else None,
        )

    def describe(self) -> Iterable[Metric]:
        """Nothing before it is asked for: registering must not wait for a site."""
        return ()


def pages(bus: Looks, login: str | None) -> Wsgi:
    """The whole application; `login` is "user:password"."""
    apps: dict[str, Wsgi] = {}
    for site in bus.sites:
        registry = CollectorRegistry()
        registry.register(SiteCollector(bus, site))
        apps[site] = make_wsgi_app(registry)
    expected = None if login is None else "Basic " + base64.b64encode(login.encode()).decode()

    def app(environ: Environ, start: Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/").rstrip("/") or "/"
        if path == HEALTH:
            return _text(start, "200 OK", "ok\n")
        given = environ.get("HTTP_AUTHORIZATION", "")
        if expected is not None and not hmac.compare_digest(given.encode(), expected.encode()):
            challenge = [("WWW-Authenticate", 'Basic realm="metrics"')]
            return _text(start, "401 Unauthorized", "a user and a password are needed\n", challenge)
        if path == "/":
            return _text(start, "200 OK", _index(bus.name, apps), kind="text/html; charset=utf-8")
        site = bus.active() if path == METRICS else path.removeprefix(f"{METRICS}/")
        if site not in apps:
            return _text(start, "404 Not Found", f"see {METRICS} and {METRICS}/NAME\n")
        return apps[site](environ, start)

    return app


@contextmanager
def served(address: HostPort, app: Wsgi, tls: Tls | None = None) -> Iterator[WSGIServer]:
    """Listen while the block runs; the server's own loop is the caller's."""
    context = _context(tls) if tls is not None else None
    try:
        server = make_server(address.host, address.port, app, ThreadingWSGIServer, handler_class=_Quiet)
    except OSError as error:
        raise PrerequisiteError(
            f"the page cannot be served: {error.strerror or error}",
            where=str(address),
            hint="is another exporter running? --listen HOST:PORT names another address",
        ) from error
    if context is not None:
        # Shaken hands with in the request's own thread: a client that says nothing holds up nobody else.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with server:
        yield server


class _Quiet(WSGIRequestHandler):
    """Writes no line for every request."""

    timeout = 10.0  # a client that says nothing is dropped

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
        if tls.authority is not None:
            context.load_verify_locations(tls.authority)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"the certificate of the page cannot be used: {error}",
            where=str(tls.certificate),
            hint="are certificate and key PEM files that belong together?",
        ) from error
    return context


def _text(
    start: Start,
    status: str,
    body: str,
    headers: list[tuple[str, str]] | None = None,
    kind: str = "text/plain; charset=utf-8",
) -> Iterable[bytes]:
    start(status, [("Content-Type", kind), *(headers or [])])
    return [body.encode()]


def _index(bus: str, sites: Iterable[str]) -> str:
    links = "".join(f'<li><a href="{METRICS}/{escape(site)}">site {escape(site)}</a></li>' for site in sites)
    return (
        f"<!doctype html><html lang=en><title>{escape(bus)}</title><h1>{escape(bus)}</h1>"
        f'<ul><li><a href="{METRICS}">the active site</a></li>{links}</ul></html>\n'
    )
