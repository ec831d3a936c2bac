"""Java's stores: what keytool wrote is read, what we write is read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.wire import jks, stores
from twinlog.wire.stores import Store, StoreType

DATA = Path(__file__).parent / "data"
CA = (DATA / "ca.crt").read_text()
CHAIN = (DATA / "shop.crt").read_text()
KEY = (DATA / "shop.key").read_text()
BINARY = [StoreType.PKCS12, StoreType.JKS]


def read(name: str, password: str | None = "test1234", key_password: str | None = None) -> Store:
    return stores.read_store((DATA / name).read_bytes(), password, where=name, key_password=key_password)


@pytest.mark.parametrize("name", ["trust.jks", "trust-pkcs12.jks", "ca.crt"])
def test_trust_store_is_read_whatever_its_name_says(name: str) -> None:
    assert read(name) == Store(trusted_pem=CA)


@pytest.mark.parametrize(("name", "key_password"), [("key.p12", None), ("key.jks", "keypass9")])
def test_key_store_of_keytool_gives_a_key_that_fits_its_certificate(
    name: str, key_password: str | None
) -> None:
    store = read(name, key_password=key_password)
    key = serialization.load_pem_private_key(store.key_pem.encode(), None)
    assert key.public_key() == x509.load_pem_x509_certificate(store.chain_pem.encode()).public_key()


def test_jks_trust_store_opens_without_a_password_as_in_java() -> None:
    assert read("trust.jks", password=None).trusted_pem == CA


@pytest.mark.parametrize("kind", BINARY)
def test_written_stores_read_back_the_same(kind: StoreType) -> None:
    trust = stores.write_trust_store(kind, CHAIN, "pässword")
    assert stores.read_store(trust, "pässword", where="x") == Store(trusted_pem=CHAIN)
    key = stores.write_key_store(kind, CHAIN, KEY, "pässword")
    assert stores.read_store(key, "pässword", where="x") == Store(chain_pem=CHAIN, key_pem=KEY)


@pytest.mark.parametrize("name", ["trust.jks", "trust-pkcs12.jks", "key.jks", "key.p12"])
def test_wrong_password_is_an_error_that_does_not_show_it(name: str) -> None:
    with pytest.raises(UsageError, match="password") as caught:
        read(name, "hunter2")
    assert "hunter2" not in str(caught.value) + caught.value.hint
    assert caught.value.where == name


def test_wrong_key_password_is_an_error() -> None:
    with pytest.raises(UsageError, match="password of a private key"):
        read("key.jks", key_password="hunter2")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "neither"),
        (b"hello", "neither"),
        (b"\xce\xce\xce\xce....", "JCEKS"),
        (b"\x30\x03\x02\x01\x03", "PKCS#12"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "PEM form"),
    ],
)
def test_bytes_that_are_no_store_are_an_error(data: bytes, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        stores.read_store(data, "x", where="store")


@given(st.integers(min_value=4, max_value=506))
def test_shortened_jks_store_is_an_error(length: int) -> None:
    with pytest.raises(UsageError):
        stores.read_store((DATA / "trust.jks").read_bytes()[:length], None, where="store")


def test_encrypted_key_is_opened_with_its_password() -> None:
    key = serialization.load_pem_private_key(KEY.encode(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    ).decode()
    assert stores.read_pem(CHAIN + encrypted, "secret", where="x") == Store(chain_pem=CHAIN, key_pem=KEY)
    for wrong in ("hunter2", None):
        with pytest.raises(UsageError, match="private key cannot be read"):
            stores.normal_key(encrypted, wrong, where="x")


@given(
    st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=300)), max_size=4),
    st.tuples(st.text(max_size=20), st.binary(max_size=300), st.lists(st.binary(max_size=50), max_size=3)),
    st.text(max_size=20),
)
def test_jks_entries_read_back_the_same(
    trusted: list[tuple[str, bytes]], key: tuple[str, bytes, list[bytes]], password: str
) -> None:
    entries: list[jks.Entry] = [jks.TrustedEntry(alias, data) for alias, data in trusted]
    entries.append(jks.KeyEntry(key[0], key[1], tuple(key[2])))
    assert jks.decode(jks.encode(entries, password, created_ms=0), password) == entries
