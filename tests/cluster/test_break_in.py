"""Attempts to get in that must fail, against the live sites; and afterwards every broker still runs.

Each attempt is refused for a reason, and the reason is checked: a refusal for another one would
mean that the door in question was never tried. Refusals come at three places: in the TLS
handshake, at the login, and when rights are looked up.
"""

from __future__ import annotations

import random
import socket
import ssl
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import confluent_kafka
import pytest
from kafka.protocol.producer import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

from tests.cluster.conftest import Bus
from tests.cluster.doors import GROUP, TIMEOUT_S, Doors, TlsServer, knock, read, written
from twinlog.errors import KafkaError
from twinlog.sites.authorities import Kind, Realm
from twinlog.sites.layout import Listener
from twinlog.sites.pki import Pki
from twinlog.spec.model import Certificates
from twinlog.wire import acls, codes, configs, quotas, topics, users
from twinlog.wire.access import Access, Mechanism, Protocol
from twinlog.wire.acls import Acl, Operation, Resource
from twinlog.wire.cluster import Cluster, Patience
from twinlog.wire.deadlines import Deadline
from twinlog.wire.failures import ConnectionFailed

pytestmark = pytest.mark.cluster

PATIENCE = Patience(connect_s=TIMEOUT_S, request_s=TIMEOUT_S, total_s=TIMEOUT_S)
CLIENT, CLIENT_TLS, LINK, CONTROLLER = (
    Listener.CLIENT,
    Listener.CLIENT_TLS,
    Listener.LINK,
    Listener.CONTROLLER,
)
NO_TLS = "answers with TLS|closed the connection"
NOT_TRUSTED = "is not trusted"
NO_CERTIFICATE = "the broker ended TLS: .*certificate|closed the connection"
NOT_ACCEPTED = "does not accept our certificate|closed the connection"
EXPIRED = "does not accept our certificate: it has expired|our certificate has expired"


@pytest.fixture(scope="module")
def doors(bus: Bus, tmp_path_factory: pytest.TempPathFactory) -> Doors:
    home = bus.home()
    foreign = Pki(tmp_path_factory.mktemp("foreign") / "pki", home.bus.bus, Certificates())
    foreign.ensure()
    return Doors(home, foreign)


@pytest.fixture(scope="module")
def pids_before(doors: Doors) -> dict[int, int]:
    return doors.pids()


@pytest.fixture(autouse=True)
def _look_first(pids_before: dict[int, int]) -> None:
    """Whoever runs is known before the first attempt."""


# In the TLS handshake

Attempt = Callable[[Doors], Access]


def without_tls(listener: Listener) -> Attempt:
    return lambda doors: replace(doors.access(listener), protocol=Protocol.PLAINTEXT)


def shown(listener: Listener, kind: Kind, name: str) -> Attempt:
    return lambda doors: doors.shown(listener, kind, name)


def forged(listener: Listener, kind: Kind, name: str) -> Attempt:
    return lambda doors: doors.shown(listener, kind, name, pki=doors.foreign)


def expired(listener: Listener, kind: Kind, name: str) -> Attempt:
    return lambda doors: doors.made(listener, kind, name, days_ago=10)


HANDSHAKES: dict[str, tuple[Attempt, str]] = {
    "no TLS on CLIENT": (without_tls(CLIENT), NO_TLS),
    "no TLS on CLIENT, with a password": (
        lambda doors: replace(doors.user("shop"), protocol=Protocol.SASL_PLAINTEXT),
        NO_TLS,
    ),
    "no TLS on CLIENT_TLS": (without_tls(CLIENT_TLS), NO_TLS),
    "no TLS on LINK": (without_tls(LINK), NO_TLS),
    "no TLS on CONTROLLER": (without_tls(CONTROLLER), NO_TLS),
    "a client that trusts another CA": (
        lambda doors: replace(doors.user("shop"), ca_pem=doors.foreign.trust_pem(Realm.CLIENTS)),
        NOT_TRUSTED,
    ),
    "a client that trusts the CA of LINK on CLIENT": (
        lambda doors: replace(doors.user("shop"), ca_pem=doors.home.pki.trust_pem(Realm.LINK)),
        NOT_TRUSTED,
    ),
    "no certificate on CLIENT_TLS": (lambda doors: doors.access(CLIENT_TLS), NO_CERTIFICATE),
    "no certificate on LINK": (lambda doors: doors.access(LINK), NO_CERTIFICATE),
    "no certificate on CONTROLLER": (lambda doors: doors.access(CONTROLLER), NO_CERTIFICATE),
    "a user's certificate of another CA": (forged(CLIENT_TLS, Kind.USER, "ledger"), NOT_ACCEPTED),
    "an administrator's certificate of another CA": (forged(LINK, Kind.LINK, "admin"), NOT_ACCEPTED),
    "a node's certificate of another CA on LINK": (forged(LINK, Kind.NODE, "node-1"), NOT_ACCEPTED),
    "a node's certificate of another CA on CONTROLLER": (
        forged(CONTROLLER, Kind.NODE, "node-1"),
        NOT_ACCEPTED,
    ),
    "a user's expired certificate": (expired(CLIENT_TLS, Kind.USER, "ledger"), EXPIRED),
    "an administrator's expired certificate": (expired(LINK, Kind.LINK, "admin"), EXPIRED),
    "a node's expired certificate on CONTROLLER": (expired(CONTROLLER, Kind.NODE, "node-1"), EXPIRED),
    "a user's certificate on LINK": (shown(LINK, Kind.USER, "ledger"), NOT_ACCEPTED),
    "a user's certificate on CONTROLLER": (shown(CONTROLLER, Kind.USER, "ledger"), NOT_ACCEPTED),
    "an administrator's certificate on CLIENT_TLS": (shown(CLIENT_TLS, Kind.LINK, "admin"), NOT_ACCEPTED),
    "a node's certificate on CLIENT_TLS": (shown(CLIENT_TLS, Kind.NODE, "node-1"), NOT_ACCEPTED),
    "a broker's server certificate as a client's": (
        lambda doors: doors.made(CLIENT_TLS, Kind.SERVER, "server-1"),
        NOT_ACCEPTED,
    ),
    "a user's password on LINK": (
        lambda doors: replace(
            doors.access(LINK),
            protocol=Protocol.SASL_SSL,
            mechanism=Mechanism.SCRAM_SHA_512,
            username="shop",
            password=doors.user("shop").password,
        ),
        NO_CERTIFICATE,
    ),
    "no login on CLIENT": (lambda doors: doors.access(CLIENT), "closed the connection"),
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_attempt_is_refused_by_the_connection(doors: Doors, name: str) -> None:
    attempt, said = HANDSHAKES[name]
    with pytest.raises(ConnectionFailed, match=said):
        knock(attempt(doors))


@pytest.mark.parametrize("listener", [CLIENT, CLIENT_TLS, LINK, CONTROLLER])
def test_tls_older_than_1_2_is_refused(doors: Doors, listener: Listener) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=doors.home.pki.trust_pem(doors.realm(listener)))
    context.set_ciphers("ALL:@SECLEVEL=0")  # our own side would else refuse it first
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    address = doors.address(listener)
    with (
        socket.create_connection((address.host, address.port), timeout=TIMEOUT_S) as plain,
        pytest.raises(ssl.SSLError, match=r"PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|HANDSHAKE_FAILURE"),
        context.wrap_socket(plain, server_hostname=address.host),
    ):
        raise AssertionError("an old TLS was accepted")


BYTES = {
    "a Kafka request without TLS": bytes.fromhex("0000001400120000000000010008") + b"intruder",
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a frame of two gigabytes": b"\x7f\xff\xff\xff" + bytes(1000),
    "garbage": random.Random(1).randbytes(64 * 1024),
    "a TLS record full of garbage": b"\x16\x03\x01\x10\x00" + random.Random(2).randbytes(4096),
    "zeros": bytes(4096),
}


@pytest.mark.parametrize("listener", [CLIENT, LINK, CONTROLLER])
@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_handshake_end_the_connection(doors: Doors, listener: Listener, name: str) -> None:
    address = doors.address(listener)
    got = b""
    with socket.create_connection((address.host, address.port), timeout=TIMEOUT_S) as plain:
        with suppress(OSError):  # closed while we were still talking
            plain.sendall(BYTES[name])
            plain.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while part := plain.recv(1024):
                got += part
    assert got == b"" or got[:2] == b"\x15\x03", got  # nothing, or a TLS alert


def test_a_connection_that_says_nothing_does_not_keep_others_out(doors: Doors) -> None:
    addresses = [doors.address(listener) for listener in (CLIENT, CLIENT_TLS, LINK, CONTROLLER)]
    silent = [
        socket.create_connection((address.host, address.port), timeout=TIMEOUT_S)
        for address in addresses * 10
    ]
    try:
        knock(doors.user("shop"))
        knock(doors.user("ledger"))
    finally:
        for one in silent:
            one.close()


def test_a_client_refuses_a_server_whose_certificate_has_expired(doors: Doors, tmp_path: Path) -> None:
    chain, key = doors.signed(Kind.SERVER, "server-1", days_ago=10)
    store = tmp_path / "server.pem"
    store.write_text(key + chain)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(store)
    with TlsServer(context) as port:
        access = replace(doors.user("shop"), bootstrap=(f"127.0.0.1:{port}",))
        with pytest.raises(ConnectionFailed, match="the broker's certificate ended"):
            knock(access)
        producer = confluent_kafka.Producer(access.librdkafka() | {"log_level": 0})
        with pytest.raises(confluent_kafka.KafkaException):
            producer.list_topics(timeout=2.0)


# At the login

LOGINS: dict[str, tuple[Callable[[Access], Access], str]] = {
    "a wrong password": (lambda right: replace(right, password="wrong"), "SASL_AUTHENTICATION_FAILED"),
    "an empty password": (lambda right: replace(right, password=""), "SASL_AUTHENTICATION_FAILED"),
    "an unknown user": (lambda right: replace(right, username="mallory"), "SASL_AUTHENTICATION_FAILED"),
    "no user": (lambda right: replace(right, username=""), "SASL_AUTHENTICATION_FAILED"),
    "a user that comes by certificate": (
        lambda right: replace(right, username="ledger"),
        "SASL_AUTHENTICATION_FAILED",
    ),
    "the administrator's name": (
        lambda right: replace(right, username="twinlog:admin"),
        "SASL_AUTHENTICATION_FAILED",
    ),
    "the administrator's principal": (
        lambda right: replace(right, username="User:twinlog:admin"),
        "SASL_AUTHENTICATION_FAILED",
    ),
    "SCRAM-SHA-256 where the user has SCRAM-SHA-512": (
        lambda right: replace(right, mechanism=Mechanism.SCRAM_SHA_256),
        "SASL_AUTHENTICATION_FAILED",
    ),
    "PLAIN": (lambda right: replace(right, mechanism=Mechanism.PLAIN), "UNSUPPORTED_SASL_MECHANISM"),
}


@pytest.mark.parametrize("name", LOGINS)
def test_attempt_is_refused_by_the_login(doors: Doors, name: str) -> None:
    change, code = LOGINS[name]
    with pytest.raises(KafkaError) as caught:
        knock(change(doors.user("shop")))
    assert caught.value.code == code
    assert doors.user("shop").password not in str(caught.value)


@pytest.mark.parametrize("changes", [{"sasl.password": "wrong"}, {"sasl.mechanism": "PLAIN"}])
def test_an_ordinary_client_is_refused_by_the_login(doors: Doors, changes: dict[str, str]) -> None:
    errors: list[confluent_kafka.KafkaError] = []
    settings = doors.user("shop").librdkafka() | changes
    producer = confluent_kafka.Producer(settings | {"error_cb": errors.append, "log_level": 0})
    deadline = Deadline(TIMEOUT_S)
    while not any(error.code() == confluent_kafka.KafkaError._AUTHENTICATION for error in errors):
        assert not deadline.passed, errors
        producer.poll(0.1)


# By rights

TOPIC = "TOPIC_AUTHORIZATION_FAILED"
CLUSTER = "CLUSTER_AUTHORIZATION_FAILED"
TRANSACTION = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
GREEDY = Acl(Resource.TOPIC, "*", "User:shop", Operation.ALL)


def init_producer(transactional_id: str | None, cluster: Cluster) -> None:
    """Ask for a producer id."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
    )

    def judge(answer: InitProducerIdResponse) -> None:
        codes.check(answer.error_code, None, "asking for a producer id", cluster.where)

    cluster.ask(request, InitProducerIdResponse, judge)


def write_markers(cluster: Cluster) -> None:
    """End somebody's transaction as only brokers may."""
    marker = WriteTxnMarkersRequest.WritableTxnMarker
    request = WriteTxnMarkersRequest(
        markers=[
            marker(
                producer_id=1,
                producer_epoch=0,
                transaction_result=True,
                coordinator_epoch=0,
                transaction_version=0,
                topics=[marker.WritableTxnMarkerTopic(name="orders", partition_indexes=[0])],
            )
        ]
    )

    def judge(answer: WriteTxnMarkersResponse) -> None:
        for found in answer.markers:
            for topic in found.topics:
                for partition in topic.partitions:
                    codes.check(partition.error_code, None, "writing a marker", cluster.where)

    cluster.ask(request, WriteTxnMarkersResponse, judge)


Deed = Callable[[Cluster], object]
DEEDS: dict[str, tuple[str, Deed, str]] = {
    "create a topic": ("shop", lambda c: topics.create(c, topics.NewTopic("mine", 1, 1)), TOPIC),
    "delete a topic": ("shop", lambda c: topics.delete(c, "orders"), TOPIC),
    "widen a topic": ("shop", lambda c: topics.add_partitions(c, "orders", 50), TOPIC),
    "change a topic's settings": (
        "shop",
        lambda c: configs.alter(c, configs.Kind.TOPIC, "orders", values={"retention.ms": "1"}),
        TOPIC,
    ),
    "change a setting of every broker": (
        "shop",
        lambda c: configs.alter(
            c, configs.Kind.BROKER, configs.EVERY_BROKER, values={"message.max.bytes": "1"}
        ),
        CLUSTER,
    ),
    "read the rules": ("shop", acls.describe, CLUSTER),
    "give itself rights": ("shop", lambda c: acls.add(c, [GREEDY]), CLUSTER),
    "take rights away": ("shop", lambda c: acls.remove(c, [GREEDY]), CLUSTER),
    "read who has passwords": ("shop", users.describe, CLUSTER),
    "make a user": ("shop", lambda c: users.upsert(c, "twinlog:admin", "secret"), CLUSTER),
    "change another's password": ("shop", lambda c: users.upsert(c, "stock", "secret"), CLUSTER),
    "lift its quota": (
        "shop",
        lambda c: quotas.alter(c, quotas.Owner(user="shop"), values={quotas.Limit.PRODUCE: 1e12}),
        CLUSTER,
    ),
    "write transaction markers": ("shop", write_markers, CLUSTER),
    "take over another's transactions": ("app", partial(init_producer, "shop-1"), TRANSACTION),
    "be an idempotent producer without a topic to write": ("stock", partial(init_producer, None), CLUSTER),
    "read the rules, with a certificate": ("ledger", acls.describe, CLUSTER),
}


@pytest.mark.parametrize("name", DEEDS)
def test_deed_without_a_right_to_it_is_refused(doors: Doors, name: str) -> None:
    user, deed, code = DEEDS[name]
    with Cluster(doors.user(user), patience=PATIENCE) as cluster, pytest.raises(KafkaError) as caught:
        deed(cluster)
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["twinlog:admin", "User:twinlog:admin", "twinlog:node", "mallory"])
def test_a_signed_certificate_of_no_user_has_no_rights(doors: Doors, name: str) -> None:
    """Even if the authority were made to sign it: nobody becomes a super user at this door."""
    with Cluster(doors.made(CLIENT_TLS, Kind.USER, name), patience=PATIENCE) as cluster:
        for deed, code in ((acls.describe, CLUSTER), (partial(topics.delete, name="orders"), TOPIC)):
            with pytest.raises(KafkaError) as caught:
                deed(cluster)
            assert caught.value.code == code


def test_right_user_on_a_wrong_topic_is_refused(doors: Doors) -> None:
    assert written(doors.user("stock"), "orders") == TOPIC  # may read it
    assert written(doors.user("app"), "accounts") == TOPIC
    assert written(doors.user("shop"), "__consumer_offsets") == TOPIC
    assert read(doors.user("shop"), "orders", "stock-1", assigned=True) == TOPIC  # may write it
    assert read(doors.user("stock"), "accounts", "stock-1") == TOPIC


def test_right_user_in_a_wrong_group_is_refused(doors: Doors) -> None:
    assert read(doors.user("stock"), "orders", "app-1") == GROUP
    assert read(doors.user("stock"), "orders", "stock") == GROUP


def test_nobody_writes_a_mirrored_topic_at_the_standby(doors: Doors) -> None:
    assert written(doors.user("shop", "a"), "accounts") == ""
    assert written(doors.user("shop", "b"), "accounts") == TOPIC
    assert written(doors.user("shop", "b"), "orders") == ""  # is not mirrored


def test_mirrored_topics_are_read_at_the_standby_only_by_groups_that_are_not_copied(doors: Doors) -> None:
    assert written(doors.user("shop", "a"), "accounts") == ""
    assert read(doors.user("audit", "a"), "accounts", "audit-1") == ""
    assert read(doors.user("audit", "b"), "accounts", "audit-1") == GROUP


def test_none_of_it_stopped_a_broker_or_let_anybody_in(doors: Doors, pids_before: dict[int, int]) -> None:
    assert doors.pids() == pids_before
    assert len(pids_before) == sum(len(doors.home.layout(site).nodes) for site in ("a", "b"))
    for user in ("shop", "old", "ledger"):
        assert written(doors.user(user), "orders") == ""
    with Cluster(doors.home.admin_access("a"), patience=PATIENCE) as cluster:
        assert GREEDY not in acls.describe(cluster)
        assert topics.describe(cluster, ["mine"]) == ()
        assert "twinlog:admin" not in {found.user for found in users.describe(cluster)}
