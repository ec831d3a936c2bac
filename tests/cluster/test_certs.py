"""Certificates of a running site: renewed, signed, and their authorities exchanged, with clients at work.

These tests have a bus of their own, because they change what every client of it trusts. They follow
each other on it and each leaves it in order.
"""

from __future__ import annotations

import json
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cluster.conftest import Bus, MakeBus
from twinlog.errors import TwinlogError
from twinlog.sites import handshake, processes
from twinlog.sites.authorities import Realm
from twinlog.sites.layout import Listener
from twinlog.sites.served import fingerprint, look
from twinlog.wire import configs
from twinlog.wire.access import Access
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline
from twinlog.wire.reload import SETTING

pytestmark = pytest.mark.cluster

FILE = """\
bus: certs
kafka: {broker.session.timeout.ms: 5s, broker.heartbeat.interval.ms: 500ms}
sites:
  a: {brokers: 2, memory: 256MB}
topics:
  orders: {partitions: 2, min_insync: 2}
users:
  shop: {produce: [orders]}
  till: {auth: mtls, produce: [orders]}
"""
QUICK = Patience(connect_s=5.0, request_s=10.0, total_s=10.0)
MORE_RECORDS_WITHIN_S = 60.0  # what must happen while a renewal runs happens in a second or two


@pytest.fixture(scope="module")
def bus(make_bus: MakeBus) -> Bus:
    return make_bus(FILE)


class Writer:
    """A client that keeps writing with acks=all until it is stopped, and remembers every complaint."""

    def __init__(self, access: Access) -> None:
        self.delivered = 0
        self.errors: list[str] = []
        self._stop = threading.Event()
        settings: dict[str, Any] = access.librdkafka() | {"acks": "all", "linger.ms": 1}
        self._producer = Producer(settings | {"error_cb": self._failed})
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writer:
        self._thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(30)
        del self._producer  # or it goes on looking for brokers, and complains on stderr

    def wait_for_more(self, count: int = 20) -> None:
        """Return when so many further records were acknowledged."""
        wanted, deadline = self.delivered + count, Deadline(MORE_RECORDS_WITHIN_S)
        while self.delivered < wanted:
            assert not deadline.passed, f"only {self.delivered} of {wanted} were acknowledged: {self.errors}"
            self._stop.wait(0.05)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._producer.produce("orders", b"x", on_delivery=self._delivered)
            self._producer.poll(0.01)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.errors.append(str(error))

    def _failed(self, error: KafkaError) -> None:
        self.errors.append(str(error))


def write_one(access: Access, timeout_s: float = 30) -> str:
    """Write one record over a fresh connection; returns why it failed, or nothing."""
    with_errors: list[str] = []
    settings: dict[str, Any] = access.librdkafka() | {"acks": "all", "delivery.timeout.ms": timeout_s * 1000}
    producer = Producer(settings | {"error_cb": lambda error: with_errors.append(str(error))})
    outcome: list[str] = []
    producer.produce("orders", b"one", on_delivery=lambda error, _: outcome.append(str(error or "")))
    producer.flush(timeout_s + 5)
    return outcome[0] if outcome else f"no answer: {with_errors}"


def is_let_in(access: Access) -> bool:
    """Whether a site answers a client over a fresh connection."""
    try:
        with Cluster(access, patience=QUICK) as cluster:
            return bool(cluster.brokers())
    except TwinlogError:
        return False


def pids(bus: Bus) -> dict[int, int]:
    nodes = bus.home().layout("a").nodes
    return {number: process.pid for number, process in processes.find(nodes).items()}


def shown(bus: Bus) -> dict[str, str]:
    """The certificate that each listener of each node shows."""
    return {
        f"{node.name} {listener}": fingerprint(handshake.fetch(node.advertise, port, timeout_s=10)[0])
        for node in bus.home().layout("a").nodes
        for listener, port in node.ports.items()
    }


def everything_served(bus: Bus) -> bool:
    return all(seen.same for seen in look(bus.home(), bus.home().layout("a").nodes))


def test_fetched_chain_is_the_one_that_openssl_sees(bus: Bus) -> None:
    (address, _) = bus.home().layout("a").bootstrap(Listener.CLIENT)
    seen = subprocess.run(
        ["openssl", "s_client", "-connect", address, "-showcerts"],
        input=b"",
        capture_output=True,
        timeout=60,
        check=False,
    ).stdout.decode()
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    chain = "".join(f"{begin}{part.partition(end)[0]}{end}\n" for part in seen.split(begin)[1:])
    assert chain.count(begin) == 2
    assert bus.done("certs", "fetch", address) == chain


def test_renewal_changes_what_every_node_shows_while_clients_go_on(bus: Bus) -> None:
    before, running = shown(bus), pids(bus)
    with Writer(bus.home().user_access("shop", "a")) as writer:
        done = bus.json("certs", "renew", "--force")
        writer.wait_for_more()
        assert write_one(bus.home().user_access("shop", "a")) == ""
    after = shown(bus)
    assert writer.errors == []
    assert pids(bus) == running
    assert sorted(row["node"] for row in done["reloaded"]) == ["a/broker-1", "a/broker-2", "a/controller-901"]
    assert [name for name in before if before[name] == after[name]] == []
    assert everything_served(bus)


def test_renewal_leaves_nothing_behind_in_the_site(bus: Bus) -> None:
    bus.done("certs", "renew", "--force")
    home = bus.home()
    with Cluster(home.admin_access("a")) as cluster:
        for node in home.layout("a").brokers:
            assert SETTING not in configs.describe(cluster, configs.Kind.BROKER, str(node.id))
    assert bus.json("plan") == []


def test_renewal_with_nothing_due_changes_nothing(bus: Bus) -> None:
    before = shown(bus)
    assert bus.json("certs", "renew") == {"renewed": [], "reloaded": []}
    assert shown(bus) == before


def test_node_with_an_old_certificate_is_stale_until_it_is_renewed(bus: Bus) -> None:
    home = bus.home()
    node = home.layout("a").brokers[0]
    home.issue_node_certificates(node, anew=list(Realm))
    found = bus.json("certs", "status", exit_code=3)["certificates"]
    stale = {item["subject"]: item["shown_otherwise"] for item in found if item["state"] == "stale"}
    assert stale == {
        "CN=server-1,OU=server,O=certs": ["a/broker-1 client", "a/broker-1 client_tls"],
        "CN=node-1,OU=node,O=certs": ["a/broker-1 link"],
    }
    assert bus.json("certs", "renew")["reloaded"] == [{"node": "a/broker-1"}]
    assert {item["state"] for item in bus.json("certs", "status")["certificates"]} == {"ok"}


def test_name_that_the_file_gains_or_loses_is_shown_without_a_restart(bus: Bus) -> None:
    running = pids(bus)
    for names in ("[kafka.example.org]", "[other.example.org]", "[]"):
        bus.file.write_text(FILE + f"certificates: {{names: {names}}}\n")
        assert len(bus.json("certs", "renew")["reloaded"]) == 2
        (address, _) = bus.home().layout("a").bootstrap(Listener.CLIENT)
        fetched = x509.load_pem_x509_certificate(bus.done("certs", "fetch", address).encode())
        held = fetched.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert ("other.example.org" in held.get_values_for_type(x509.DNSName)) == ("other" in names)
    assert pids(bus) == running


def test_signed_request_lets_its_user_in_where_certificates_are_asked_for(bus: Bus, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "till")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    (tmp_path / "till.csr").write_bytes(request.public_bytes(serialization.Encoding.PEM))
    answer = bus.json("certs", "sign", str(tmp_path / "till.csr"))
    mine = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    access = replace(
        bus.home().user_access("till", "a"),
        cert_pem=Path(answer["certificate"]).read_text(),
        key_pem=mine.decode(),
        ca_pem=Path(answer["trust"]).read_text(),
    )
    assert write_one(access) == ""


def test_authorities_are_exchanged_step_by_step_without_a_restart(bus: Bus) -> None:
    running = pids(bus)
    old, old_till = bus.home().user_access("shop", "a"), bus.home().user_access("till", "a")
    with Writer(old) as writer:
        bus.done("certs", "rotate-ca", "--begin")
        handed_out = bus.home().user_access("shop", "a")
        assert is_let_in(old) and is_let_in(handed_out)
        bus.done("certs", "rotate-ca", "--switch")
        assert not is_let_in(old) and is_let_in(handed_out)
        new_till = bus.home().user_access("till", "a")
        assert is_let_in(new_till) and is_let_in(replace(old_till, ca_pem=new_till.ca_pem))
        bus.done("certs", "rotate-ca", "--finish")
        writer.wait_for_more()  # connections that were open stay open
    assert writer.errors == []
    new = bus.home().user_access("till", "a")
    assert not is_let_in(replace(old_till, ca_pem=new.ca_pem))
    assert write_one(new) == "" and write_one(handed_out) == ""
    assert pids(bus) == running
    assert everything_served(bus)


def test_exchange_that_was_killed_between_disk_and_nodes_is_taken_up(bus: Bus) -> None:
    with Writer(bus.home().user_access("shop", "a")) as writer:
        bus.home().pki.begin_rotation(Realm.LINK)  # as if killed before any node was told
        bus.done("certs", "rotate-ca", "link", "--switch")
        writer.wait_for_more()
        bus.done("certs", "rotate-ca", "link", "--all")
        writer.wait_for_more()
    assert writer.errors == []
    assert everything_served(bus)


def test_broker_that_comes_back_after_an_exchange_is_known_and_knows_the_others(bus: Bus) -> None:
    bus.done("certs", "rotate-ca", "--all", "--yes")
    lost = bus.home().layout("a").brokers[1]
    processes.find([lost])[lost.id].kill()
    bus.done("up")  # ready means that both brokers have acknowledged a write
    assert write_one(bus.home().user_access("shop", "a")) == ""


@pytest.mark.slow  # certificates must be given the time to end
def test_certificates_that_ended_in_use_let_clients_in_again_and_ask_for_a_restart(make_bus: MakeBus) -> None:
    text = FILE.replace("brokers: 2", "brokers: 1").replace(", min_insync: 2", "")
    bus = make_bus(text + "certificates: {validity: 60s, renew_before: 10s}\n")
    deadline, pause = Deadline(120), threading.Event()
    while not all(item["state"] == "expired" for item in _certificates(bus)):
        assert not deadline.passed
        pause.wait(1)
    assert not is_let_in(bus.home().user_access("shop", "a"))
    ended = bus.run("certs", "renew")
    assert ended.returncode == 1
    assert "only a start replaces it now: a/broker-1 link" in ended.stderr
    assert is_let_in(bus.home().user_access("shop", "a"))
    bus.done("down", "--site", "a")
    bus.done("up", "--site", "a")
    assert write_one(bus.home().user_access("shop", "a")) == ""


def _certificates(bus: Bus) -> list[dict[str, Any]]:
    """What nodes show, whatever the exit code has to say about it."""
    found: list[dict[str, Any]] = json.loads(bus.run("certs", "status", "-o", "json").stdout)["certificates"]
    return [item for item in found if item["subject"].startswith(("CN=server", "CN=node"))]
