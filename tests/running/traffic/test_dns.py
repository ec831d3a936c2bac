"""DNS answers: the active site's addresses for one name, and something sensible for everything else."""

from __future__ import annotations

import ipaddress
import random
import socket
import struct

import pytest
from dnslib import EDNS0, QTYPE, RCODE, DNSHeader, DNSQuestion, DNSRecord
from hypothesis import given
from hypothesis import strategies as st

from tests.running.traffic.loopback import HERE, WAIT_S, connect, hear, is_cut, wait_until
from twinlog.errors import SiteError, UsageError
from twinlog.traffic.dns import MAX_ANSWERS, NameServer, answer_to
from twinlog.traffic.serving import Serving
from twinlog.wire.addresses import HostPort

NAME = "bus.example.com"
FOUR = [ipaddress.ip_address("10.0.0.1")]


class Site:
    """What the active site advertises; tests change it while the server runs."""

    def __init__(self) -> None:
        self.hosts = ["10.0.0.1", "10.0.0.2", "2001:db8::1"]

    def __call__(self) -> list[str]:
        return self.hosts


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def server(serving: Serving, site: Site) -> NameServer:
    made = NameServer(HERE, NAME, site, ttl_s=3)
    serving.open(made)
    return made


def ask(server: NameServer, question: DNSRecord, tcp: bool = False, timeout_s: float = WAIT_S) -> DNSRecord:
    packet = question.send(server.address.host, server.address.port, tcp=tcp, timeout=timeout_s)
    answer = DNSRecord.parse(packet)
    assert (answer.header.id, answer.header.qr) == (question.header.id, 1)
    return answer


def found(answer: DNSRecord) -> list[str]:
    return sorted(str(record.rdata) for record in answer.rr)


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_the_active_site_is_answered_with_a_short_life(server: NameServer, tcp: bool) -> None:
    answer = ask(server, DNSRecord.question(NAME, "A"), tcp)
    assert found(answer) == ["10.0.0.1", "10.0.0.2"]
    assert {record.ttl for record in answer.rr} == {3}
    assert (answer.header.aa, answer.header.ra) == (1, 0)
    assert found(ask(server, DNSRecord.question(NAME, "AAAA"), tcp)) == ["2001:db8::1"]


def test_a_move_changes_the_answer(server: NameServer, site: Site) -> None:
    site.hosts = []
    assert ask(server, DNSRecord.question(NAME)).header.rcode == RCODE.SERVFAIL
    site.hosts = ["10.1.0.1"]
    assert found(ask(server, DNSRecord.question(NAME))) == ["10.1.0.1"]


def test_the_case_of_the_question_comes_back(server: NameServer) -> None:
    """Resolvers vary it and compare (draft 0x20)."""
    answer = ask(server, DNSRecord.question("bUs.eXaMpLe.CoM"))
    assert str(answer.q.qname) == "bUs.eXaMpLe.CoM."
    assert found(answer) == ["10.0.0.1", "10.0.0.2"]


def test_a_kind_that_the_name_lacks_is_empty_and_short_lived(server: NameServer, site: Site) -> None:
    site.hosts = ["10.0.0.1"]
    for kind in ("AAAA", "MX", "TXT", "NS"):
        answer = ask(server, DNSRecord.question(NAME, kind))
        assert (answer.header.rcode, answer.rr) == (RCODE.NOERROR, [])
        assert answer.auth[0].rtype == QTYPE.SOA
        assert (answer.auth[0].ttl, answer.auth[0].rdata.times[4]) == (3, 3)


def test_the_authority_is_told_when_asked_for(server: NameServer) -> None:
    assert [record.rtype for record in ask(server, DNSRecord.question(NAME, "SOA")).rr] == [QTYPE.SOA]


@pytest.mark.parametrize("name", ["example.com", "a.bus.example.com", "other.org", "."])
def test_other_names_are_refused(server: NameServer, name: str) -> None:
    answer = ask(server, DNSRecord.question(name))
    assert (answer.header.rcode, answer.header.aa, answer.rr) == (RCODE.REFUSED, 0, [])


def test_other_classes_are_refused(server: NameServer) -> None:
    question = DNSRecord(DNSHeader(rd=0), q=DNSQuestion(NAME, QTYPE.A, 3))
    assert ask(server, question).header.rcode == RCODE.REFUSED


def test_other_operations_are_not_implemented(server: NameServer) -> None:
    question = DNSRecord(DNSHeader(opcode=5), q=DNSQuestion(NAME))
    assert ask(server, question).header.rcode == RCODE.NOTIMP


def test_every_broker_comes_first_in_turn(server: NameServer, site: Site) -> None:
    site.hosts = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    firsts = {str(ask(server, DNSRecord.question(NAME)).rr[0].rdata) for _ in range(3)}
    assert firsts == set(site.hosts)


def test_a_long_answer_goes_to_tcp_and_is_bounded(serving: Serving, site: Site) -> None:
    name = f"{'x' * 60}.{NAME}"
    server = NameServer(HERE, name, site)
    serving.open(server)
    site.hosts = [f"2001:db8::{number:x}" for number in range(1, 101)]
    plain = DNSRecord.question(name, "AAAA")
    cut_short = ask(server, plain)
    assert (cut_short.header.tc, cut_short.rr, str(cut_short.q.qname)) == (1, [], f"{name}.")
    assert len(ask(server, plain, tcp=True).rr) == MAX_ANSWERS
    roomy = DNSRecord.question(name, "AAAA")
    roomy.add_ar(EDNS0(udp_len=4096))
    answer = ask(server, roomy)
    assert (answer.header.tc, len(answer.rr)) == (0, MAX_ANSWERS)
    assert answer.ar[0].rtype == QTYPE.OPT


def test_advertised_names_are_resolved(server: NameServer, site: Site) -> None:
    site.hosts = ["localhost"]
    assert "127.0.0.1" in found(ask(server, DNSRecord.question(NAME)))


def test_an_advertised_name_that_nobody_knows_leaves_the_others(server: NameServer, site: Site) -> None:
    site.hosts = ["no-such-host.invalid", "10.0.0.1"]
    assert found(ask(server, DNSRecord.question(NAME))) == ["10.0.0.1"]
    site.hosts = ["no-such-host.invalid"]
    assert ask(server, DNSRecord.question(NAME)).header.rcode == RCODE.SERVFAIL


def test_several_queries_share_a_connection(server: NameServer) -> None:
    packet = DNSRecord.question(NAME).pack()
    with connect(server.address) as client:
        for _ in range(3):
            client.sendall(struct.pack(">H", len(packet)) + packet)
            (length,) = struct.unpack(">H", hear(client, 2))
            assert len(DNSRecord.parse(hear(client, length)).rr) == 2


@pytest.mark.parametrize("noise", [b"\xff\xff", b"\x00\x05hello", b"GET / HTTP/1.1\r\n\r\n"])
def test_noise_over_tcp_ends_the_connection(server: NameServer, noise: bytes) -> None:
    with connect(server.address) as client:
        client.sendall(noise)
        assert is_cut(client)
    assert ask(server, DNSRecord.question(NAME), tcp=True).rr


def test_garbage_over_udp_does_no_harm(server: NameServer) -> None:
    chance = random.Random(5)
    good = DNSRecord.question(NAME).pack()
    place = (server.address.host, server.address.port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(300):
            noise = bytearray(good) if chance.random() < 0.5 else bytearray(chance.randbytes(40))
            for _ in range(3):
                noise[chance.randrange(len(noise))] = chance.randrange(256)
            sender.sendto(noise[: chance.randrange(len(noise) + 1)], place)
        sender.sendto(bytes(60_000), place)

    def is_answered() -> bool:
        try:
            return bool(ask(server, DNSRecord.question(NAME), timeout_s=0.5).rr)
        except TimeoutError:  # the kernel may drop what comes behind so much; resolvers ask again
            return False

    wait_until(is_answered)


@given(st.binary(max_size=600) | st.binary(max_size=100).map(lambda tail: b"\0\1\1\0\0\1\0\0\0\0\0\1" + tail))
def test_whatever_comes_in_the_answer_is_none_or_an_answer_to_it(query: bytes) -> None:
    answer = answer_to(query, NAME, FOUR, max_bytes=512)
    if answer is not None:
        assert (answer[:2], answer[2] & 0x80) == (query[:2], 0x80)
        assert len(answer) <= 512
        DNSRecord.parse(answer)


def test_an_answer_is_not_answered() -> None:
    assert answer_to(DNSRecord.question(NAME).reply().pack(), NAME, FOUR) is None
    assert answer_to(b"\0\1\0", NAME, FOUR) is None


@pytest.mark.parametrize(
    "query",
    [
        b"\0\7\1\0\0\0\0\0\0\0\0\0",  # no question
        b"\0\7\1\0\xff\xff\0\0\0\0\0\0",  # more than there are
        b"\0\7\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1",  # a name that points to itself
        b"\0\7\1\0\0\1\0\0\0\0\0\0\x3fab",  # a name that ends early
    ],
)
def test_a_broken_query_is_called_that(query: bytes) -> None:
    answer = DNSRecord.parse(answer_to(query, NAME, FOUR))
    assert (answer.header.id, answer.header.rcode) == (7, RCODE.FORMERR)


def test_a_name_that_is_none_is_refused_at_once(site: Site) -> None:
    with pytest.raises(UsageError, match="is not a host"):
        NameServer(HERE, "no name", site)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["tcp", "udp"])
def test_a_busy_port_is_named(serving: Serving, site: Site, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if kind is socket.SOCK_STREAM:
            taken.listen()
        with pytest.raises(SiteError, match="the DNS server cannot listen on"):
            serving.open(NameServer(HostPort("127.0.0.1", taken.getsockname()[1]), NAME, site))
