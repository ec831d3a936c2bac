"""Authorities and certificates of a bus, on disk and in real handshakes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import SiteError, UsageError
from twinlog.sites import certificates as made
from twinlog.sites.authorities import Kind, Realm
from twinlog.sites.certificates import State
from twinlog.sites.pemfiles import read_certificate
from twinlog.sites.pki import Phase, Pki
from twinlog.spec.model import Certificates
from twinlog.spec.units import Duration

START = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pki(tmp_path: Path, clock: Clock) -> Pki:
    pki = Pki(tmp_path / "pki", "orders", Certificates(), clock)
    pki.ensure()
    return pki


def content(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def leaf(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def request(name: str = "shop", key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None) -> str:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.DNSName("broker.bank")]), critical=False
    )
    signed = builder.sign(key or made.new_key(), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM).decode()


def test_ensure_twice_changes_nothing(pki: Pki, tmp_path: Path) -> None:
    before = content(tmp_path)
    pki.ensure()
    assert content(tmp_path) == before


def test_ensure_after_every_interrupted_write_ends_with_fitting_pairs(tmp_path: Path, clock: Clock) -> None:
    whole = Pki(tmp_path / "whole", "orders", Certificates(), clock)
    whole.ensure()
    files = ("ca-1.key", "ca-1.crt", "authority.json", "trust.crt")
    for count in range(len(files) + 1):
        directory = tmp_path / f"after-{count}"
        (directory / Realm.CLIENTS).mkdir(parents=True)
        for name in files[:count]:
            data = (tmp_path / "whole" / Realm.CLIENTS / name).read_bytes()
            (directory / Realm.CLIENTS / name).write_bytes(data)
        again = Pki(directory, "orders", Certificates(), clock)
        again.ensure()
        issued = again.issue(Kind.USER, "shop")
        ca = x509.load_pem_x509_certificate(again.trust_path(Realm.CLIENTS).read_bytes())
        leaf(issued.certificate).verify_directly_issued_by(ca)
        kept = (directory / Realm.CLIENTS / "ca-1.key").read_bytes()
        assert count == 0 or kept == (tmp_path / "whole" / Realm.CLIENTS / "ca-1.key").read_bytes()


def test_private_keys_are_readable_by_the_owner_only(pki: Pki, tmp_path: Path) -> None:
    pki.issue(Kind.NODE, "node-1", ["localhost"])
    secret = [path for path in tmp_path.rglob("*") if path.suffix in (".key", ".pem")]
    assert len(secret) == 4
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in secret)


def test_subject_is_encoded_so_that_java_prints_the_common_name_first(pki: Pki) -> None:
    certificate = leaf(pki.issue(Kind.NODE, "node-1").certificate)
    assert [attribute.value for attribute in certificate.subject] == ["orders", "node", "node-1"]
    assert made.subject_text(certificate) == "CN=node-1,OU=node,O=orders"


def test_removed_certificate_leaves_nothing_behind_and_is_made_anew(pki: Pki) -> None:
    first = pki.issue(Kind.USER, "shop")
    serial = read_certificate(first.certificate).serial_number
    pki.remove(Kind.USER, "shop")
    assert not any(path.exists() for path in (first.store, first.key, first.certificate))
    assert pki.names(Kind.USER) == []
    pki.remove(Kind.USER, "shop")
    again = pki.issue(Kind.USER, "shop")
    assert again.why == "there was none"
    assert read_certificate(again.certificate).serial_number != serial


@pytest.mark.parametrize(
    ("kind", "usages"),
    [
        (Kind.NODE, [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
        (Kind.SERVER, [ExtendedKeyUsageOID.SERVER_AUTH]),
        (Kind.USER, [ExtendedKeyUsageOID.CLIENT_AUTH]),
        (Kind.LINK, [ExtendedKeyUsageOID.CLIENT_AUTH]),
        (Kind.VOTE, [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
    ],
)
def test_certificate_may_be_used_for_its_kind_only(
    pki: Pki, kind: Kind, usages: list[x509.ObjectIdentifier]
) -> None:
    certificate = leaf(pki.issue(kind, "someone").certificate)
    assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == usages


def test_certificate_begins_before_now_and_lasts_as_declared(pki: Pki) -> None:
    certificate = leaf(pki.issue(Kind.USER, "shop").certificate)
    assert certificate.not_valid_before_utc == START - timedelta(minutes=5)
    assert certificate.not_valid_after_utc == START + 365 * DAY


def test_certificate_never_outlives_its_authority_and_is_not_renewed_in_vain(
    tmp_path: Path, clock: Clock
) -> None:
    pki = Pki(tmp_path, "orders", Certificates(ca_validity=Duration(100 * 86400.0)), clock)
    pki.ensure()
    clock.now = START + 50 * DAY
    assert leaf(pki.issue(Kind.USER, "shop").certificate).not_valid_after_utc == START + 100 * DAY
    clock.now = START + 99 * DAY
    assert pki.issue(Kind.USER, "shop").why == ""


def test_second_issue_keeps_the_certificate(pki: Pki, tmp_path: Path) -> None:
    assert pki.issue(Kind.NODE, "node-1", ["Localhost", "127.0.0.1", "[::1]"]).why == "there was none"
    before = content(tmp_path)
    assert pki.issue(Kind.NODE, "node-1", ["::1", "127.0.0.1", "localhost"]).why == ""
    assert content(tmp_path) == before


def test_changed_names_make_a_new_certificate(pki: Pki) -> None:
    pki.issue(Kind.NODE, "node-1", ["localhost"])
    issued = pki.issue(Kind.NODE, "node-1", ["localhost", "10.0.0.7"])
    assert issued.why == "its names changed"
    assert made.names_of(leaf(issued.certificate)) == {"localhost", "10.0.0.7"}


@pytest.mark.parametrize(("days", "why"), [(334, ""), (336, "it ends soon"), (366, "it has ended")])
def test_certificate_is_renewed_inside_its_window(pki: Pki, clock: Clock, days: int, why: str) -> None:
    pki.issue(Kind.USER, "shop")
    clock.now = START + days * DAY
    assert pki.issue(Kind.USER, "shop").why == why
    assert pki.issue(Kind.USER, "shop").why == ""


def test_short_certificate_is_not_renewed_at_every_look(tmp_path: Path, clock: Clock) -> None:
    pki = Pki(tmp_path, "orders", Certificates(validity=Duration(3600.0)), clock)
    pki.ensure()
    pki.issue(Kind.USER, "shop")
    assert pki.issue(Kind.USER, "shop").why == ""


def test_damaged_store_is_made_anew(pki: Pki) -> None:
    issued = pki.issue(Kind.USER, "shop")
    issued.store.write_text("not a certificate")
    assert pki.issue(Kind.USER, "shop").why == "it could not be read"


def test_interrupted_renewal_is_completed_from_the_store(pki: Pki) -> None:
    issued = pki.issue(Kind.USER, "shop")
    issued.key.write_text("an older key")
    issued.certificate.unlink()
    assert pki.issue(Kind.USER, "shop").why == ""
    assert issued.store.read_text() == issued.key_pem + issued.chain_pem


def test_rotation_goes_through_its_phases_and_each_may_be_repeated(pki: Pki, tmp_path: Path) -> None:
    old = pki.trust_pem(Realm.LINK)
    first = pki.issue(Kind.NODE, "node-1").chain_pem
    assert pki.phase(Realm.LINK) is Phase.STEADY
    for _ in range(2):
        pki.begin_rotation(Realm.LINK)
        assert pki.phase(Realm.LINK) is Phase.BEGUN
    both = pki.trust_pem(Realm.LINK)
    assert both.startswith(old) and both.count("BEGIN CERTIFICATE") == 2
    assert pki.issue(Kind.NODE, "node-1").why == ""
    for _ in range(2):
        pki.switch_rotation(Realm.LINK)
        assert pki.phase(Realm.LINK) is Phase.SWITCHED
    assert pki.trust_pem(Realm.LINK) == both
    issued = pki.issue(Kind.NODE, "node-1")
    assert issued.why == "another authority signs now" and issued.chain_pem != first
    for _ in range(2):
        pki.finish_rotation(Realm.LINK)
        assert pki.phase(Realm.LINK) is Phase.STEADY
    assert pki.trust_path(Realm.LINK).read_text() == both.removeprefix(old)
    assert pki.issue(Kind.NODE, "node-1").why == ""
    assert [path.name for path in sorted((tmp_path / "pki" / Realm.LINK).glob("ca-*"))] == [
        "ca-2.crt",
        "ca-2.key",
    ]


def test_rotation_of_one_authority_leaves_the_other_alone(pki: Pki) -> None:
    before = pki.trust_pem(Realm.CLIENTS)
    pki.begin_rotation(Realm.LINK)
    assert (pki.phase(Realm.CLIENTS), pki.trust_pem(Realm.CLIENTS)) == (Phase.STEADY, before)


def test_phases_out_of_order_are_refused(pki: Pki) -> None:
    with pytest.raises(UsageError, match="has begun"):
        pki.switch_rotation(Realm.LINK)
    pki.begin_rotation(Realm.LINK)
    with pytest.raises(UsageError, match="does not sign yet"):
        pki.finish_rotation(Realm.LINK)
    pki.switch_rotation(Realm.LINK)
    with pytest.raises(UsageError, match="not finished"):
        pki.begin_rotation(Realm.LINK)


def test_signed_request_keeps_key_and_name_and_nothing_else(pki: Pki) -> None:
    key = made.new_key()
    certificate = x509.load_pem_x509_certificates(pki.sign(request("shop", key)).encode())[0]
    assert made.subject_text(certificate) == "CN=shop,OU=user,O=orders"
    assert certificate.public_key() == key.public_key()
    assert made.names_of(certificate) == frozenset()
    certificate.verify_directly_issued_by(
        x509.load_pem_x509_certificate(pki.trust_pem(Realm.CLIENTS).encode())
    )


def test_request_that_was_changed_is_refused(pki: Pki) -> None:
    lines = request().splitlines()
    last = lines[-2]
    flipped = ("B" if last[0] != "B" else "C") + last[1:]
    with pytest.raises(UsageError, match=r"not signed by its own key|not a certificate signing request"):
        pki.sign("\n".join([*lines[:-2], flipped, lines[-1]]))


@pytest.mark.parametrize(
    ("csr", "what"),
    [
        ("nonsense", "not a certificate signing request"),
        (request(""), "0 common names"),
        (request("shop", rsa.generate_private_key(65537, 1024)), "1024 bits"),
    ],
)
def test_bad_request_is_refused(pki: Pki, csr: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        pki.sign(csr)


def test_status_lists_authorities_and_leaves_with_their_state(pki: Pki, clock: Clock) -> None:
    pki.issue(Kind.SERVER, "node-1", ["localhost"])
    clock.now = START + 340 * DAY
    pki.issue(Kind.USER, "shop")
    clock.now = START + 366 * DAY
    rows = [(row.subject, row.authority, row.state, round(row.days_left)) for row in pki.status()]
    assert rows == [
        ("CN=clients-1,OU=authority,O=orders", "clients", State.OK, 3284),
        ("CN=link-1,OU=authority,O=orders", "link", State.OK, 3284),
        ("CN=node-1,OU=server,O=orders", "clients", State.EXPIRED, -1),
        ("CN=shop,OU=user,O=orders", "clients", State.OK, 339),
    ]


def test_lost_authority_key_is_an_error_that_names_the_file(pki: Pki, tmp_path: Path) -> None:
    (tmp_path / "pki" / Realm.LINK / "ca-1.key").unlink()
    with pytest.raises(SiteError, match=r"ca-1\.key: a private key is missing"):
        pki.issue(Kind.NODE, "node-1")


def test_bus_without_authorities_says_so(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="does not exist yet"):
        Pki(tmp_path, "orders", Certificates()).status()


@given(st.ip_addresses())
def test_addresses_have_one_form_however_they_are_written(address: object) -> None:
    assert made.normal_names([f"[{address}]"]) == made.normal_names([str(address)])


def test_name_that_is_no_host_name_is_refused() -> None:
    with pytest.raises(UsageError, match="neither a host name nor an address"):
        made.normal_names(["ä..b"])


def test_authority_that_nobody_remembers_is_found_again(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "pki" / "clients"
    pki = Pki(tmp_path / "pki", "orders", Certificates(), clock)
    pki.ensure()
    for name in ("ca-1.crt", "ca-1.key"):
        (folder / name).rename(folder / name.replace("1", "2"))
    (folder / "authority.json").unlink()
    before = (folder / "ca-2.crt").read_text()
    pki.ensure()
    assert pki.trust_pem(Realm.CLIENTS) == before
    assert not (folder / "ca-1.crt").exists()
    (folder / "ca-1.crt").write_text(before)
    (folder / "authority.json").unlink()
    with pytest.raises(SiteError, match=r"there are ca-1\.crt and ca-2\.crt"):
        pki.ensure()
