"""The health page: what the traffic manager knows, over plain HTTP, for people and for pollers.

    GET /            the state in one sentence and a table
    GET /status      the same as JSON
    GET /site/NAME   200 while NAME is active, else 503 and why: a load balancer that polls it for
                     each site (F5, HAProxy, Route 53) can stand in for the gate

Opened by the traffic manager in its `Serving`. It tells and never does: GET and HEAD only, no secret
in it. `view` is called inside the loop and must answer from memory. A request has few bytes and
little time, and each connection carries one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from html import escape
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from twinlog.traffic.conversations import Conversations
from twinlog.traffic.gate import Counters
from twinlog.traffic.serving import address_of, listen_on, stop_listening
from twinlog.wire.addresses import HostPort

MAX_HEADER_BYTES = 8 << 10
MAX_CONNECTIONS = 64
REQUEST_TIMEOUT_S = 5.0
LINGER_S = 1.0  # for the client to close first, so that our close does not reset what it still reads
TEXT, HTML, JSON = "text/plain", "text/html", "application/json"
METHODS = ("GET", "HEAD")


@dataclass(frozen=True)
class SiteView:
    """One site as the page shows it."""

    name: str
    role: str  # active, standby, unknown
    health: str  # well, ill, unknown
    sentence: str
    lag_records: int | None = None
    lag_s: float | None = None


@dataclass(frozen=True)
class View:
    """All that the page shows."""

    bus: str
    sentence: str
    active: str | None
    reason: str = ""  # why no site is active, while none is
    term: int | None = None
    sites: tuple[SiteView, ...] = ()
    counters: Counters = field(default_factory=Counters)


@dataclass(frozen=True)
class Answer:
    """What goes back to the client."""

    status: HTTPStatus
    body: str
    kind: str = TEXT

    def encode(self, *, head: bool = False) -> bytes:
        """As it goes over the wire."""
        body = self.body.encode()
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Content-Type: {self.kind}; charset=utf-8",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",  # an old answer may send clients to the wrong site
            "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
        ]
        if self.status is HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append(f"Allow: {', '.join(METHODS)}")
        return "\r\n".join([*lines, "", ""]).encode() + (b"" if head else body)


def answer_to(method: str, target: str, view: Callable[[], View]) -> Answer:
    """The answer to one request. Pure, but for the view."""
    if method not in METHODS:
        return Answer(HTTPStatus.METHOD_NOT_ALLOWED, "this page is for reading: GET or HEAD\n")
    try:
        path = unquote(urlsplit(target).path)
    except ValueError:
        return Answer(HTTPStatus.BAD_REQUEST, "that is no address\n")
    if path == "/":
        return Answer(HTTPStatus.OK, _as_html(view()), HTML)
    if path == "/status":
        return Answer(HTTPStatus.OK, json.dumps(asdict(view()), indent=2) + "\n", JSON)
    if path.startswith("/site/"):
        return _site(path.removeprefix("/site/"), view())
    return Answer(HTTPStatus.NOT_FOUND, "see /, /status and /site/NAME\n")


def _site(name: str, view: View) -> Answer:
    names = [site.name for site in view.sites]
    if name not in names:
        return Answer(HTTPStatus.NOT_FOUND, f"no such site; there are: {', '.join(names) or 'none'}\n")
    if view.active == name:
        return Answer(HTTPStatus.OK, f"{name} is active\n")
    why = f"{view.active} is active" if view.active is not None else view.reason or "no site is active"
    return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{name} is not active: {why}\n")


def _as_html(view: View) -> str:
    sites = [
        [
            site.name,
            site.role,
            site.health,
            _or_unknown(site.lag_records),
            "unknown" if site.lag_s is None else f"{site.lag_s:.1f}",
            site.sentence,
        ]
        for site in view.sites
    ]
    counters = view.counters
    counted = [
        ["connections now", str(counters.connections_now)],
        ["connections since the start", str(counters.connections_total)],
        ["refused, no site active", str(counters.refused_closed)],
        ["refused, too many", str(counters.refused_full)],
        ["no broker reached", str(counters.unreached)],
        ["cut by a move", str(counters.cut)],
        *([f"failures of {broker}", str(count)] for broker, count in sorted(counters.failures.items())),
    ]
    reason = f"<p>{escape(view.reason)}</p>" if view.active is None and view.reason else ""
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(view.bus)}</title>\n'
        '<meta name="viewport" content="width=device-width">\n'
        "<style>body{font:16px sans-serif;margin:2em;max-width:60em}"
        "td,th{text-align:left;padding:.2em 1em .2em 0}</style></head><body>\n"
        f"<h1>{escape(view.bus)}</h1>\n<p><strong>{escape(view.sentence)}</strong></p>{reason}\n"
        f"<p>Term: {_or_unknown(view.term)}</p>\n"
        + _table(["site", "role", "health", "lag, records", "lag, seconds", ""], sites)
        + _table(["gate", ""], counted)
        + "</body></html>\n"
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    def row(tag: str, cells: list[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>\n"

    return "<table>\n" + row("th", head) + "".join(row("td", cells) for cells in rows) + "</table>\n"


def _or_unknown(number: int | None) -> str:
    return "unknown" if number is None else str(number)


class Page:
    """Serves the view on one address."""

    def __init__(
        self, address: HostPort, view: Callable[[], View], *, timeout_s: float = REQUEST_TIMEOUT_S
    ) -> None:
        self.address = address
        self._view = view
        self._timeout_s = timeout_s
        self._server: asyncio.Server | None = None
        self._conversations = Conversations(self._converse, MAX_CONNECTIONS)

    async def open(self) -> None:
        """Listen."""
        bound = listen_on(self.address, "the health page")
        self.address = address_of(bound)
        self._server = await asyncio.start_server(
            self._conversations.accept, sock=bound, limit=MAX_HEADER_BYTES
        )

    async def close(self) -> None:
        """Listen no more and drop who is still asking."""
        if self._server is not None:
            await stop_listening(self._server)
        await self._conversations.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # a timeout too: too slow, or gone
            async with asyncio.timeout(self._timeout_s):
                writer.write(await self._respond(reader))
                await writer.drain()
                writer.write_eof()
            async with asyncio.timeout(LINGER_S):
                while await reader.read(MAX_HEADER_BYTES):
                    pass

    async def _respond(self, reader: asyncio.StreamReader) -> bytes:
        try:
            header = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return Answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too many headers\n").encode()
        except asyncio.IncompleteReadError:
            return Answer(HTTPStatus.BAD_REQUEST, "that is no request\n").encode()
        words = header.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return Answer(HTTPStatus.BAD_REQUEST, "that is no request of HTTP/1\n").encode()
        return answer_to(words[0], words[1], self._view).encode(head=words[0] == "HEAD")
