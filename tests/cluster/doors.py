"""The live sites as somebody sees them who wants to get in: addresses, right and wrong credentials.

For `test_break_in`: ways to make an access that is wrong in one point only, and ordinary clients
that say why they were refused.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

import confluent_kafka
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from twinlog.sites import certificates, processes
from twinlog.sites.authorities import Kind, Realm
from twinlog.sites.certificates import Authority, Wanted, utc_now
from twinlog.sites.home import Home
from twinlog.sites.layout import Listener
from twinlog.sites.pemfiles import read_certificate, read_key
from twinlog.sites.pki import Pki
from twinlog.wire.access import Access, Protocol
from twinlog.wire.addresses import HostPort
from twinlog.wire.connection import Connection

TIMEOUT_S = 30.0  # a refusal takes a tenth of a second; the rest is a busy machine
GROUP = "GROUP_AUTHORIZATION_FAILED"


@dataclass(frozen=True)
class Doors:
    """The live sites, seen by somebody who wants to get in."""

    home: Home
    foreign: Pki  # of another bus with the same name

    def address(self, listener: Listener, site: str = "a") -> HostPort:
        """Where a listener is."""
        return HostPort.parse(self.home.layout(site).bootstrap(listener)[0])

    def realm(self, listener: Listener) -> Realm:
        """The authority behind a listener's own certificate."""
        return Realm.CLIENTS if listener in (Listener.CLIENT, Listener.CLIENT_TLS) else Realm.LINK

    def access(self, listener: Listener) -> Access:
        """Everything right but the credentials: none are given."""
        return Access(
            bootstrap=(str(self.address(listener)),),
            protocol=Protocol.SSL,
            ca_pem=self.home.pki.trust_pem(self.realm(listener)),
        )

    def user(self, name: str, site: str = "a") -> Access:
        """A user of the file, as it comes in rightly."""
        return self.home.user_access(name, site)

    def shown(self, listener: Listener, kind: Kind, name: str, *, pki: Pki | None = None) -> Access:
        """With a certificate of the bus's own, or of another, authorities."""
        papers = pki or self.home.pki
        issued = papers.paths(kind, name)
        if not issued.is_whole:  # one that a broker has is not made anew: it would come to have another
            issued = papers.issue(kind, name)
        return replace(self.access(listener), cert_pem=issued.chain_pem, key_pem=issued.key_pem)

    def made(self, listener: Listener, kind: Kind, name: str, *, days_ago: int = 0) -> Access:
        """With a certificate for one day that the bus's own authority signed so long ago."""
        chain, key = self.signed(kind, name, days_ago=days_ago)
        return replace(self.access(listener), cert_pem=chain, key_pem=key)

    def signed(self, kind: Kind, name: str, *, days_ago: int) -> tuple[str, str]:
        """A chain and its key."""
        base = self.home.directory / "pki" / kind.realm / "ca-1"
        authority = Authority(read_certificate(base.with_suffix(".crt")), read_key(base.with_suffix(".key")))
        wanted = Wanted(
            self.home.bus.bus, kind, name, frozenset({"127.0.0.1"}), timedelta(days=1), timedelta(0)
        )
        key = certificates.new_key()
        leaf = certificates.make_leaf(
            wanted, key.public_key(), authority, utc_now() - timedelta(days=days_ago)
        )
        return certificates.certificate_pem(leaf) + authority.pem, certificates.key_pem(key)

    def pids(self) -> dict[int, int]:
        """The processes of all nodes."""
        nodes = [node for site in ("a", "b") for node in self.home.layout(site).nodes]
        return {number: process.pid for number, process in processes.find(nodes).items()}


def knock(access: Access) -> None:
    """Connect, log in if the protocol says so, and ask who is there; one attempt."""
    with Connection(HostPort.parse(access.bootstrap[0]), access, timeout_s=TIMEOUT_S) as connection:
        connection.call(MetadataRequest(topics=[]), MetadataResponse)


class TlsServer:
    """A server that shows its certificate to everybody and says nothing more."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> int:
        self._thread.start()
        return int(self._listening.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._listening.accept()
                with plain, suppress(OSError):
                    plain.settimeout(TIMEOUT_S)
                    self._context.wrap_socket(plain, server_side=True).close()


def written(access: Access, topic: str) -> str:
    """Write one record as an ordinary client; returns why it was not taken."""
    said: list[confluent_kafka.KafkaError | None] = []
    settings = access.librdkafka() | {"acks": "all", "message.timeout.ms": int(TIMEOUT_S * 1000)}
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"break-in", b"key", on_delivery=lambda error, _: said.append(error))
    producer.flush(2 * TIMEOUT_S)
    assert said, "the client never said how it went"
    return "" if said[0] is None else str(said[0].name())


def read(access: Access, topic: str, group: str, *, assigned: bool = False) -> str:
    """Read as an ordinary client until something comes; returns what was refused."""
    settings = access.librdkafka() | {"group.id": group, "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings | {"auto.offset.reset": "earliest"})
    try:
        if assigned:
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        else:
            consumer.subscribe([topic])
        while True:
            message = consumer.poll(2 * TIMEOUT_S)
            assert message is not None, "nothing came, not even an error"
            refused = "" if message.error() is None else str(message.error().name())
            # The client looks for its group's coordinator also where no group is needed.
            if not (assigned and refused == GROUP):
                return refused
    finally:
        consumer.close()
