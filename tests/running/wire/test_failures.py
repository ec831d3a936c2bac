"""What operators are told when TLS does not come about, tried with real handshakes."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.running.wire import scripted_broker as broker
from twinlog.errors import UsageError
from twinlog.wire.access import Access, Protocol
from twinlog.wire.connection import Connection
from twinlog.wire.failures import ConnectionFailed

NOW = datetime.now(UTC)
LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
ELSEWHERE = x509.DNSName("broker.elsewhere.example")
DAY = timedelta(days=1)


class Authority:
    """A certificate authority for one test."""

    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.pem = self._sign(
            self.name, self.key, -DAY, DAY, x509.BasicConstraints(ca=True, path_length=None)
        )[0]

    def issue(self, name: x509.GeneralName, start: timedelta = -DAY, end: timedelta = DAY) -> tuple[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
        return self._sign(subject, key, start, end, x509.SubjectAlternativeName([name]))

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        start: timedelta,
        end: timedelta,
        extension: x509.ExtensionType,
    ) -> tuple[str, str]:
        builder = x509.CertificateBuilder(self.name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(NOW + start).not_valid_after(NOW + end)
        signed = builder.add_extension(extension, critical=True).sign(self.key, hashes.SHA256())
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return signed.public_bytes(serialization.Encoding.PEM).decode(), secret.decode()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("the right CA")


def server(directory: Path, pair: tuple[str, str]) -> ssl.SSLContext:
    file = directory / "broker.pem"
    file.write_text("".join(pair))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def read_four_bytes(connection: socket.socket) -> None:
    connection.recv(4)


def serve(connection: socket.socket) -> None:
    broker.greet(connection)
    connection.recv(1)


def attempt(context: ssl.SSLContext, access: Access) -> ConnectionFailed:
    """The failure that a connection to such a listener ends with."""
    with broker.listening(serve, context) as address, pytest.raises(ConnectionFailed) as caught:
        Connection(address, access, timeout_s=5.0)
    return caught.value


def trusting(authority: Authority) -> Access:
    return Access(("unused:1",), Protocol.SSL, ca_pem=authority.pem)


def test_a_certificate_for_another_host_is_refused_and_its_names_are_shown(
    authority: Authority, tmp_path: Path
) -> None:
    failure = attempt(server(tmp_path, authority.issue(ELSEWHERE)), trusting(authority))
    assert failure.what == (
        "the broker's certificate is not for '127.0.0.1': it is for broker.elsewhere.example"
    )
    assert "certificates.names" in failure.hint
    assert not failure.retriable


def test_a_certificate_that_has_ended_is_refused_with_its_end(authority: Authority, tmp_path: Path) -> None:
    ended = NOW - timedelta(hours=1)
    failure = attempt(server(tmp_path, authority.issue(LOOPBACK, end=ended - NOW)), trusting(authority))
    assert f"ended on {ended:%Y-%m-%d %H:%M} UTC" in failure.what
    assert "twinlog certs renew" in failure.hint


def test_a_certificate_of_another_authority_is_refused_and_its_signer_is_shown(
    authority: Authority, tmp_path: Path
) -> None:
    other = Authority("another CA")
    failure = attempt(server(tmp_path, other.issue(LOOPBACK)), trusting(authority))
    assert "signed by 'CN=another CA'" in failure.what
    assert failure.hint.startswith("is the CA right?")


def test_a_listener_that_wants_a_client_certificate_says_so(authority: Authority, tmp_path: Path) -> None:
    context = server(tmp_path, authority.issue(LOOPBACK))
    context.verify_mode = ssl.CERT_REQUIRED
    failure = attempt(context, trusting(authority))
    assert "does this listener want a client certificate?" in failure.hint


def test_a_client_certificate_of_another_authority_is_refused(authority: Authority, tmp_path: Path) -> None:
    context = server(tmp_path, authority.issue(LOOPBACK))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.pem)
    cert, key = Authority("another CA").issue(LOOPBACK)
    access = Access(("unused:1",), Protocol.SSL, ca_pem=authority.pem, cert_pem=cert, key_pem=key)
    assert attempt(context, access).hint.startswith("is our certificate signed by the CA")


def test_a_client_certificate_that_has_ended_says_so(authority: Authority, tmp_path: Path) -> None:
    context = server(tmp_path, authority.issue(LOOPBACK))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.pem)
    cert, key = authority.issue(LOOPBACK, end=-timedelta(hours=1))
    access = Access(("unused:1",), Protocol.SSL, ca_pem=authority.pem, cert_pem=cert, key_pem=key)
    failure = attempt(context, access)
    assert "has expired" in failure.what
    assert failure.hint == "twinlog certs renew"


def test_tls_against_a_plaintext_listener_asks_what_the_listener_speaks(authority: Authority) -> None:
    # Kafka takes the first bytes for the length of a request, finds it too long and hangs up.
    with (
        broker.listening(read_four_bytes) as address,
        pytest.raises(ConnectionFailed, match="during the TLS handshake") as caught,
    ):
        Connection(address, trusting(authority), timeout_s=5.0)
    assert "does this listener speak TLS?" in caught.value.hint


def test_checks_that_are_switched_off_let_any_certificate_pass(authority: Authority, tmp_path: Path) -> None:
    access = Access(("unused:1",), Protocol.SSL, verify_peer=False)
    context = server(tmp_path, authority.issue(ELSEWHERE))
    with (
        broker.listening(serve, context) as address,
        Connection(address, access, timeout_s=5.0) as connection,
    ):
        assert connection.is_open


@pytest.mark.parametrize("ca", ["rubbish", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_ca_that_is_no_certificate_is_refused_without_showing_it(ca: str) -> None:
    access = Access(("unused:1",), Protocol.SSL, ca_pem=ca)
    with broker.listening(serve) as address, pytest.raises(UsageError, match="cannot be read") as caught:
        Connection(address, access, timeout_s=5.0)
    assert "AAAA" not in str(caught.value)


def test_a_key_that_belongs_to_another_certificate_is_refused(authority: Authority) -> None:
    cert, key = authority.issue(LOOPBACK)[0], authority.issue(LOOPBACK)[1]
    access = Access(("unused:1",), Protocol.SSL, ca_pem=authority.pem, cert_pem=cert, key_pem=key)
    with broker.listening(serve) as address, pytest.raises(UsageError, match="cannot be used"):
        Connection(address, access, timeout_s=5.0)
