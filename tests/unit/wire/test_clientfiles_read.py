"""Client files of clusters that exist already."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from twinlog.errors import FileProblems, UsageError
from twinlog.wire.access import Access, Mechanism, Protocol
from twinlog.wire.clientfiles.properties import format_entry
from twinlog.wire.clientfiles.read import ClientSettings, read_client_file

DATA = Path(__file__).parent / "data"
CA = (DATA / "ca.crt").read_text()
CHAIN = (DATA / "shop.crt").read_text()
KEY = (DATA / "shop.key").read_text()
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOGIN = f'sasl.jaas.config={SCRAM} required username="u" password="p";\n'
SASL = "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in DATA.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def read(folder: Path, text: str) -> ClientSettings:
    path = folder / "client.properties"
    path.write_text(text)
    return read_client_file(path)


def problems(folder: Path, text: str) -> str:
    with pytest.raises(FileProblems) as caught:
        read(folder, text)
    assert "schema" not in caught.value.hint  # which is about twinlog.yaml
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("store", ["trust.jks", "trust-pkcs12.jks"])
def test_java_file_with_continued_lines_works_as_it_stands(folder: Path, store: str) -> None:
    text = f"""\
\tsecurity.protocol=SASL_SSL
\tssl.truststore.location={store}
\tssl.truststore.password=test1234
\tssl.endpoint.identification.algorithm=HTTPS

\tsasl.mechanism=SCRAM-SHA-512
\tsasl.jaas.config={SCRAM} required \\
          username="my-user" \\
          password="gUoNKbFYIPV5";
"""
    assert read(folder, text) == ClientSettings(
        Access((), Protocol.SASL_SSL, CA, "", "", Mechanism.SCRAM_SHA_512, "my-user", "gUoNKbFYIPV5"), {}, ()
    )


def test_blanks_and_quotes_around_values_are_taken_off(folder: Path) -> None:
    text = f"""\
bootstrap.servers = "kafka-1:443, kafka-2:443"
security.protocol="SASL_SSL" \nssl.truststore.location = "trust.jks"
ssl.truststore.password = "test1234"
sasl.mechanism=PLAIN
sasl.jaas.config={SCRAM.replace("scram.Scram", "plain.Plain")} required username="u" password="p" ;
"""
    access = read(folder, text).access
    assert (access.bootstrap, access.ca_pem) == (("kafka-1:443", "kafka-2:443"), CA)
    assert (access.mechanism, access.username, access.password) == (Mechanism.PLAIN, "u", "p")


def test_keys_may_have_the_prefix_of_a_framework(folder: Path) -> None:
    text = f"""\
kafka.ssl.truststore.location = trust.jks
kafka.ssl.truststore.password = test1234

## SASL SCRAM-SHA-512
kafka.security.protocol=SASL_SSL
kafka.sasl.mechanism=SCRAM-SHA-512
kafka.{LOGIN}kafka.client.id=me
"""
    access, extra, warnings = read(folder, text)
    assert access == Access((), Protocol.SASL_SSL, CA, "", "", Mechanism.SCRAM_SHA_512, "u", "p")
    assert (extra, warnings) == ({"client.id": "me"}, ())


def test_librdkafka_form_is_read_and_backslashes_stay(folder: Path) -> None:
    text = """\
[default]
metadata.broker.list=kafka:9092
security.protocol=sasl_ssl
sasl.mechanisms=SCRAM-SHA-256
sasl.username=u
sasl.password=a\\b#=c\\
ssl.ca.location=ca.crt
compression.type=zstd
"""
    access, extra, warnings = read(folder, text)
    assert access == Access(
        ("kafka:9092",), Protocol.SASL_SSL, CA, "", "", Mechanism.SCRAM_SHA_256, "u", "a\\b#=c\\"
    )
    assert (extra, warnings) == ({"compression.type": "zstd"}, ())


def test_both_forms_may_stand_in_one_file(folder: Path) -> None:
    access = read(folder, f"{SASL}sasl.username=u\nsasl.password=p\nssl.truststore.location=ca.crt\n").access
    assert (access.ca_pem, access.username, access.password) == (CA, "u", "p")


@pytest.mark.parametrize(
    "text",
    [
        "ssl.keystore.location=shop.pem\nssl.keystore.type=PEM\n",
        "ssl.certificate.location=shop.crt\nssl.key.location=shop.key\n",
        format_entry("ssl.keystore.certificate.chain", CHAIN) + "\n" + format_entry("ssl.keystore.key", KEY),
        format_entry("ssl.certificate.pem", CHAIN) + "\n" + format_entry("ssl.key.pem", KEY),
    ],
)
def test_client_certificate_is_read_from_wherever_it_is(folder: Path, text: str) -> None:
    (folder / "shop.pem").write_text(KEY + CHAIN)
    access = read(folder, f"security.protocol=SSL\nssl.ca.location=ca.crt\n{text}").access
    assert access == Access((), Protocol.SSL, CA, CHAIN, KEY)


@pytest.mark.parametrize(("store", "more"), [("key.p12", ""), ("key.jks", "ssl.key.password=keypass9\n")])
def test_client_certificate_is_read_from_java_stores(folder: Path, store: str, more: str) -> None:
    text = f"security.protocol=SSL\nssl.keystore.location={store}\nssl.keystore.password=test1234\n{more}"
    access = read(folder, text).access
    assert access.cert_pem.startswith("-----BEGIN CERTIFICATE-----")
    assert access.key_pem.startswith("-----BEGIN PRIVATE KEY-----")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("client.id=x\n", 1, "security.protocol is not set"),
        ("\nsecurity.protocol=PLAINTEXT\n", 2, "with PLAINTEXT everything travels unencrypted"),
        (f"{LOGIN}sasl.mechanism=SCRAM-SHA-512\nsecurity.protocol=SASL_PLAINTEXT\n", 3, "unencrypted"),
        (
            f"{SASL}{LOGIN}enable.ssl.certificate.verification=false\n",
            4,
            "the brokers' certificates are not verified",
        ),
        (f"{SASL}{LOGIN}ssl.endpoint.identification.algorithm=\n", 4, "names in the brokers'"),
        (f"{SASL}{LOGIN}ssl.endpoint.identification.algorithm=none\n", 4, "names in the brokers'"),
        (f"{SASL}{LOGIN}bootstrap.server=a:1\n", 4, "taken as bootstrap.servers"),
        (f'{SASL}sasl.username=u\nsasl.password="p"\n', 4, "quotes are part of the value"),
    ],
)
def test_what_is_merely_doubtful_is_a_warning(folder: Path, text: str, line: int, what: str) -> None:
    warnings = read(folder, text).warnings
    assert [(warning.line, warning.severity) for warning in warnings] == [(line, "warning")]
    assert what in warnings[0].what


def test_switched_off_verification_stands_in_the_access(folder: Path) -> None:
    text = f"{SASL}{LOGIN}enable.ssl.certificate.verification=false\nssl.endpoint.identification.algorithm=\n"
    access = read(folder, text).access
    assert (access.verify_peer, access.verify_hostname) == (False, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("security.protocol=TLS\n", "client.properties:1:1: error: unknown security.protocol 'TLS'"),
        (
            SASL.replace("SCRAM-SHA-512", "GSSAPI"),
            "client.properties:2:1: error: sasl.mechanism GSSAPI is not",
        ),
        (SASL.replace("SCRAM-SHA-512", "OAUTHBEARER") + LOGIN, ":2:1: error: sasl.mechanism OAUTHBEARER"),
        (f"security.protocol=SASL_SSL\n{LOGIN}", ":2:1: error: sasl.mechanism is missing"),
        (SASL.replace("SCRAM-SHA-512", "PLAIN") + LOGIN, "PLAIN needs the login module PlainLoginModule"),
        (SASL, ":2:1: error: SCRAM-SHA-512 needs a username and a password"),
        (SASL + LOGIN.replace(";", ""), ":3:1: error: sasl.jaas.config cannot be read"),
        (SASL + LOGIN.replace('"p"', '""'), ":3:1: error: username or password is missing or empty"),
        (
            f"{SASL}{LOGIN}ssl.truststore.location=no.jks\n",
            ":4:1: error: no.jks cannot be read: No such file",
        ),
        (
            f"{SASL}{LOGIN}ssl.truststore.location=trust.jks\nssl.truststore.password=bad\n",
            ":4:1: error: trust.jks",
        ),
        (f"{SASL}{LOGIN}ssl.truststore.location=shop.key\n", "holds no trusted certificate"),
        (f"{SASL}{LOGIN}ssl.ca.pem=hello\n", ":4:1: error: ssl.ca.pem: no certificate"),
        ("security.protocol=SSL\nssl.keystore.location=ca.crt\n", "holds no private key"),
        ("security.protocol=SSL\nssl.key.location=shop.key\n", "are needed together"),
        ("security.protocol=SSL\nclient.id=\\u12\n", ":2:1: error: after \\u four"),
    ],
)
def test_what_cannot_work_is_an_error_with_its_place(folder: Path, text: str, expected: str) -> None:
    assert expected in problems(folder, text)


def test_all_problems_are_shown_at_once_and_no_secret(folder: Path) -> None:
    text = f"""\
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config={SCRAM} required username="u" password="hunter2";
ssl.truststore.location=trust.jks
ssl.truststore.password=hunter3
ssl.certificate.location=shop.crt
"""
    shown = problems(folder, text)
    assert shown.count("error:") == 3
    assert "hunter" not in shown


def test_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_client_file(tmp_path / "client.properties")


def test_file_in_java_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes((SASL + LOGIN).encode().replace(b'"p"', b'"p\xe4"'))
    assert read_client_file(path).access.password == "pä"
