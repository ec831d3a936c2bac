"""Certificates of a bus in real TLS handshakes."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from twinlog.errors import SiteError
from twinlog.sites.authorities import Issued, Kind, Realm
from twinlog.sites.handshake import fetch
from twinlog.sites.pki import Pki
from twinlog.spec.model import Certificates

TIMEOUT_S = 10.0  # a handshake takes milliseconds; the rest is a busy machine


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    pki = Pki(tmp_path_factory.mktemp("bus") / "pki", "orders", Certificates())
    pki.ensure()
    return pki


@contextmanager
def server(pki: Pki, own: Issued, *, clients_of: Realm | None = None) -> Iterator[int]:
    """A TLS server that says "hello" to everybody it lets in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.store)
    if clients_of is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(pki.trust_path(clients_of))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(TIMEOUT_S)

        def greet() -> None:
            plain, _ = listening.accept()
            with plain:
                plain.settimeout(TIMEOUT_S)
                try:
                    with context.wrap_socket(plain, server_side=True) as secured:
                        secured.sendall(b"hello")
                except OSError:  # the client was refused, or went away
                    pass

        thread = threading.Thread(target=greet)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(TIMEOUT_S)


def greeting(pki: Pki, port: int, realm: Realm, own: Issued | None = None, name: str = "127.0.0.1") -> bytes:
    context = ssl.create_default_context(cafile=str(pki.trust_path(realm)))
    if own is not None:
        context.load_cert_chain(own.store)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=name) as secured,
    ):
        return secured.recv(5)


def test_client_that_trusts_the_clients_authority_meets_the_server(pki: Pki) -> None:
    with server(pki, pki.issue(Kind.SERVER, "node-1", ["127.0.0.1", "localhost"])) as port:
        assert greeting(pki, port, Realm.CLIENTS, name="localhost") == b"hello"


def test_wrong_host_name_is_refused_by_the_client(pki: Pki) -> None:
    own = pki.issue(Kind.SERVER, "node-1", ["127.0.0.1", "localhost"])
    with server(pki, own) as port, pytest.raises(ssl.SSLCertVerificationError):
        greeting(pki, port, Realm.CLIENTS, name="bank.example")


def test_nodes_accept_each_other_on_link(pki: Pki) -> None:
    own = pki.issue(Kind.NODE, "node-1", ["127.0.0.1"])
    with server(pki, own, clients_of=Realm.LINK) as port:
        assert greeting(pki, port, Realm.LINK, pki.issue(Kind.NODE, "node-2", ["127.0.0.1"])) == b"hello"


def test_user_is_let_in_by_certificate_where_users_come_in(pki: Pki) -> None:
    own = pki.issue(Kind.SERVER, "node-1", ["127.0.0.1", "localhost"])
    with server(pki, own, clients_of=Realm.CLIENTS) as port:
        assert greeting(pki, port, Realm.CLIENTS, pki.issue(Kind.USER, "shop")) == b"hello"


def test_user_certificate_is_refused_on_link(pki: Pki) -> None:
    own = pki.issue(Kind.NODE, "node-1", ["127.0.0.1"])
    user = pki.issue(Kind.USER, "shop")
    with server(pki, own, clients_of=Realm.LINK) as port, pytest.raises(OSError):
        greeting(pki, port, Realm.LINK, user)


def test_server_certificate_is_refused_as_a_client(pki: Pki) -> None:
    own = pki.issue(Kind.SERVER, "node-1", ["127.0.0.1", "localhost"])
    with server(pki, own, clients_of=Realm.CLIENTS) as port, pytest.raises(OSError):
        greeting(pki, port, Realm.CLIENTS, own)


def test_fetch_shows_what_the_server_presents_without_trusting_it(pki: Pki) -> None:
    own = pki.issue(Kind.SERVER, "node-1", ["127.0.0.1", "localhost"])
    with server(pki, own) as port:
        assert "".join(fetch("127.0.0.1", port, TIMEOUT_S)) == own.chain_pem


def test_fetch_from_a_closed_port_is_an_error_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(SiteError, match=f"127.0.0.1:{port}: no connection"):
        fetch("127.0.0.1", port, TIMEOUT_S)


def test_fetch_from_a_server_without_tls_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            plain, _ = listening.accept()
            with plain:
                plain.recv(1)
                plain.sendall(b"this is not TLS\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(SiteError) as caught:
            fetch("127.0.0.1", listening.getsockname()[1], TIMEOUT_S)
        thread.join(TIMEOUT_S)
    assert caught.value.hint


def test_store_of_a_node_holds_key_and_chain_in_one_file(pki: Pki, tmp_path: Path) -> None:
    store = pki.issue(Kind.NODE, "node-9").store.read_text()
    assert store.startswith("-----BEGIN PRIVATE KEY-----")
    assert store.count("-----BEGIN CERTIFICATE-----") == 2
