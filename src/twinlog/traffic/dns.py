"""DNS answers for those who move a name instead of an address: one name, the active site's brokers.

Opened by the traffic manager in its `Serving`; `hosts` gives what the active site advertises, or
nothing, and is called inside the loop. The name is delegated to this server; clients that use it need
the same ports at both sites. It answers for that one name, without recursion, and over UDP never
with more than the asker can take.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from dnslib import AAAA, CLASS, EDNS0, OPCODE, QTYPE, RCODE, RR, SOA, A, DNSHeader, DNSRecord

from twinlog.errors import SiteError, UsageError
from twinlog.spec.address import host_problem
from twinlog.traffic.conversations import Conversations
from twinlog.traffic.serving import address_of, listen_on, stop_listening
from twinlog.wire.addresses import HostPort

TTL_S = 5
MAX_ANSWERS = 16  # enough to bootstrap from; the turn moves on with each query
PLAIN_UDP_BYTES = 512
MAX_UDP_BYTES = 1232  # what passes every network unfragmented
MAX_QUERY_BYTES = 4096
MAX_CONNECTIONS = 64
MAX_WAITING = 1000  # datagrams; they wait only while a name is looked up
TCP_IDLE_S = 5.0
RESOLVE_TIMEOUT_S = 2.0
PORT_ATTEMPTS = 20
_HEADER = struct.Struct(">6H")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def answer_to(
    query: bytes, name: str, addresses: Sequence[Address], *, ttl_s: int = TTL_S, max_bytes: int | None = None
) -> bytes | None:
    """The answer to one packet, or None for what is no query. Pure; without a limit it is for TCP."""
    if len(query) < _HEADER.size or query[2] & 0x80:
        return None  # too short to have a number, or itself an answer: to answer those makes loops
    number, _, questions, answers, authorities, _ = _HEADER.unpack_from(query)
    if (questions, answers, authorities) != (1, 0, 0) or (asked := _parse(query)) is None:
        return _bare(number, RCODE.FORMERR)
    if asked.header.opcode != OPCODE.QUERY:
        return _bare(number, RCODE.NOTIMP, asked.header.opcode)
    reply = asked.reply(ra=0, aa=1)
    limit = PLAIN_UDP_BYTES
    for record in asked.ar:
        if record.rtype == QTYPE.OPT:
            limit = max(PLAIN_UDP_BYTES, min(record.edns_len, MAX_UDP_BYTES))
            reply.add_ar(EDNS0(udp_len=MAX_UDP_BYTES))
            break
    _fill(reply, name, addresses, ttl_s)
    packed: bytes = reply.pack()
    if max_bytes is not None and len(packed) > min(limit, max_bytes):
        reply.rr, reply.auth = [], []
        reply.header.tc = 1  # asks for TCP
        packed = reply.pack()
    return packed


def _fill(reply: DNSRecord, name: str, addresses: Sequence[Address], ttl_s: int) -> None:
    asked = reply.q
    if asked.qclass != CLASS.IN or str(asked.qname).rstrip(".").lower() != name:
        reply.header.rcode = RCODE.REFUSED
        reply.header.aa = 0
        return
    if not addresses:
        # Not an empty NOERROR: that says that the name has no address, which resolvers keep and
        # clients take for a wrong setting. SERVFAIL says "ask again" and is kept for seconds only.
        reply.header.rcode = RCODE.SERVFAIL
        return
    if asked.qtype in (QTYPE.A, QTYPE.AAAA, QTYPE.ANY):
        for address in addresses:
            kind = QTYPE.A if address.version == 4 else QTYPE.AAAA
            if asked.qtype in (kind, QTYPE.ANY) and len(reply.rr) < MAX_ANSWERS:
                data = A(str(address)) if address.version == 4 else AAAA(str(address))
                reply.add_answer(RR(asked.qname, kind, rdata=data, ttl=ttl_s))
    authority = RR(asked.qname, QTYPE.SOA, rdata=_authority(name, ttl_s), ttl=ttl_s)
    if asked.qtype == QTYPE.SOA:
        reply.add_answer(authority)
    elif not reply.rr:
        reply.add_auth(authority)  # its last field bounds how long "no such record" is kept (RFC 2308)


def _authority(name: str, ttl_s: int) -> SOA:
    return SOA(mname=name, rname=f"hostmaster.{name}", times=(1, ttl_s, ttl_s, 60, ttl_s))


def _parse(query: bytes) -> DNSRecord | None:
    try:
        return DNSRecord.parse(query)
    except Exception:  # anybody's bytes: the library names some of the ways in which they are wrong
        return None


def _bare(number: int, code: int, opcode: int = 0) -> bytes:
    packed: bytes = DNSRecord(DNSHeader(id=number, qr=1, aa=0, ra=0, rd=0, opcode=opcode, rcode=code)).pack()
    return packed


class Names:
    """Addresses of hosts: literal ones as they are, names as the system resolves them, kept for a while."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._known: dict[str, list[Address]] = {}
        self._fresh_until: dict[str, float] = {}
        self._asking = asyncio.Lock()  # many queries wait for one look-up

    async def addresses_of(self, hosts: Sequence[str]) -> list[Address]:
        """All addresses, each once; a host that cannot be resolved has those it had before."""
        async with self._asking:
            now = asyncio.get_running_loop().time()
            stale = {host for host in hosts if now >= self._fresh_until.get(host, now)}
            await asyncio.gather(*(self._look_up(host) for host in stale))
        return list(dict.fromkeys(address for host in hosts for address in self._known.get(host, ())))

    async def _look_up(self, host: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._known[host] = [ipaddress.ip_address(host)]
            self._fresh_until[host] = math.inf
            return
        except ValueError:
            pass
        with suppress(OSError, ValueError):  # a timeout too
            async with asyncio.timeout(RESOLVE_TIMEOUT_S):
                found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            self._known[host] = [ipaddress.ip_address(entry[4][0]) for entry in found]
        self._fresh_until[host] = loop.time() + self._keep_s


class NameServer:
    """Answers for one name, over UDP and TCP on one address."""

    def __init__(
        self, address: HostPort, name: str, hosts: Callable[[], Sequence[str]], *, ttl_s: int = TTL_S
    ) -> None:
        self._name = name.rstrip(".").lower()
        if problem := host_problem(self._name):
            raise UsageError(problem[0], where="the name that the DNS server answers for", hint=problem[1])
        self.address = address
        self._hosts = hosts
        self._ttl_s = ttl_s
        self._names = Names(ttl_s)
        self._turn = 0
        self._server: asyncio.Server | None = None
        self._datagrams: asyncio.DatagramTransport | None = None
        self._conversations = Conversations(self._converse, MAX_CONNECTIONS)
        self._replies: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen on both."""
        loop = asyncio.get_running_loop()
        udp, tcp = _bind_both(self.address)
        self.address = address_of(udp)
        self._datagrams, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), sock=udp)
        self._server = await asyncio.start_server(self._conversations.accept, sock=tcp)

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            await stop_listening(self._server)
        if self._datagrams is not None:
            self._datagrams.close()
        for reply in self._replies:
            reply.cancel()
        await asyncio.gather(*self._replies, return_exceptions=True)
        await self._conversations.close()

    async def answer(self, query: bytes, max_bytes: int | None = None) -> bytes | None:
        """The answer to one packet, from what is true now."""
        addresses = await self._names.addresses_of(self._hosts())
        self._turn += 1
        first = self._turn % len(addresses) if addresses else 0
        turned = addresses[first:] + addresses[:first]
        return answer_to(query, self._name, turned, ttl_s=self._ttl_s, max_bytes=max_bytes)

    def receive(self, query: bytes, sender: Any) -> None:
        """A datagram came in."""
        if len(query) <= MAX_QUERY_BYTES and len(self._replies) < MAX_WAITING:
            reply = asyncio.get_running_loop().create_task(self._reply(query, sender))
            self._replies.add(reply)
            reply.add_done_callback(self._replies.discard)

    async def _reply(self, query: bytes, sender: Any) -> None:
        answer = await self.answer(query, MAX_UDP_BYTES)
        if answer is not None and self._datagrams is not None:
            self._datagrams.sendto(answer, sender)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the queries of one connection, each behind its length, until one makes no sense."""
        with suppress(OSError, EOFError):  # slow, or gone
            while True:
                async with asyncio.timeout(TCP_IDLE_S):
                    (length,) = struct.unpack(">H", await reader.readexactly(2))
                    if length > MAX_QUERY_BYTES:
                        return
                    answer = await self.answer(await reader.readexactly(length))
                    if answer is None:
                        return
                    writer.write(struct.pack(">H", len(answer)) + answer)
                    await writer.drain()


def _bind_both(address: HostPort, attempts: int = PORT_ATTEMPTS) -> tuple[socket.socket, socket.socket]:
    """UDP and TCP on the same port; if the kernel may choose it, on one that is free for both."""
    udp = listen_on(address, "the DNS server", socket.SOCK_DGRAM)
    try:
        return udp, listen_on(address_of(udp), "the DNS server")
    except SiteError:
        udp.close()
        if address.port != 0 or attempts == 1:
            raise
    return _bind_both(address, attempts - 1)


class _Datagrams(asyncio.DatagramProtocol):
    """The UDP side: every datagram is a query."""

    def __init__(self, server: NameServer) -> None:
        self._server = server

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """A datagram came in."""
        self._server.receive(data, addr)
