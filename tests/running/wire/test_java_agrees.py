"""Java's own tools on what we read and write: keytool, and the Properties class."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from twinlog.wire.clientfiles.properties import format_entry, parse
from twinlog.wire.stores import StoreType, read_store, write_key_store, write_trust_store

DATA = Path(__file__).parents[2] / "unit" / "wire" / "data"
TIMEOUT_S = 60  # a JVM starts in a second; the rest is a busy machine
PRINT = """
import java.io.*; import java.nio.charset.StandardCharsets; import java.util.*;
public class Print {
    public static void main(String[] args) throws Exception {
        var properties = new Properties();
        try (var in = new FileInputStream(args[0])) { properties.load(in); }
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (var key : new TreeSet<>(properties.stringPropertyNames()))
            out.print(key + "\\0" + properties.getProperty(key) + "\\0");
    }
}
"""
VALUES = {
    "backslashes": "a\\b\\\\c\\",
    "blanks": "a  b",
    "emoji": "ä 😀 \u2028",
    "marks": "#a!b=c:d",
    "pem": (DATA / "shop.crt").read_text().rstrip("\n"),
    "quotes": '"it\'s"',
    "tabs": "a\tb\fc\rd",
    "two lines": "a\n b",
}


def java_properties(folder: Path, text: str) -> dict[str, str]:
    """A properties file as Java reads it."""
    (folder / "Print.java").write_text(PRINT)
    (folder / "some.properties").write_text(text)
    command = ["java", str(folder / "Print.java"), str(folder / "some.properties")]
    printed = subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT_S).stdout.decode()
    parts = printed.split("\0")
    return dict(zip(parts[::2], parts[1::2], strict=False))


def keytool(*args: str) -> str:
    return subprocess.run(
        ["keytool", *args], capture_output=True, check=True, text=True, timeout=TIMEOUT_S
    ).stdout


def test_java_reads_what_we_write(tmp_path: Path) -> None:
    text = "\n".join(format_entry(key.replace(" ", "-"), value) for key, value in VALUES.items())
    assert java_properties(tmp_path, text) == {key.replace(" ", "-"): value for key, value in VALUES.items()}


def test_we_read_what_java_reads(tmp_path: Path) -> None:
    text = (
        "# comment\n! comment\n\n a = b\nc:d\ne f g\nh=\\u00e4\\ud83d\\ude00\n"
        "i=1\\\n   2\\\n\t# 3\nj=a\\\\\nk\\=l=m\nn==o\np\nq=r\\q\\tz\\ns\n"
    )
    ours = {entry.key: entry.value for entry in parse(text)[0]}
    assert ours == java_properties(tmp_path, text)


@pytest.mark.parametrize("kind", [StoreType.PKCS12, StoreType.JKS])
def test_keytool_sees_our_entries(tmp_path: Path, kind: StoreType) -> None:
    ca, chain, key = ((DATA / name).read_text() for name in ("ca.crt", "shop.crt", "shop.key"))
    (tmp_path / "trust").write_bytes(write_trust_store(kind, ca, "test1234"))
    (tmp_path / "key").write_bytes(write_key_store(kind, chain, key, "test1234"))
    trust = keytool("-list", "-keystore", str(tmp_path / "trust"), "-storepass", "test1234")
    assert f"Keystore type: {kind.upper()}" in trust
    assert "trustedCertEntry" in trust
    own = keytool("-list", "-v", "-keystore", str(tmp_path / "key"), "-storepass", "test1234")
    assert "PrivateKeyEntry" in own
    assert "Owner: CN=shop, OU=user, O=orders" in own
    assert "Certificate chain length: 2" in own


@pytest.mark.parametrize("kind", [StoreType.PKCS12, StoreType.JKS])
def test_we_read_the_store_that_keytool_makes(tmp_path: Path, kind: StoreType) -> None:
    store = tmp_path / "kafka.client.truststore.jks"
    keytool(
        "-importcert", "-noprompt", "-alias", "CARoot", "-file", str(DATA / "ca.crt"),
        "-keystore", str(store), "-storetype", kind.upper(), "-storepass", "test1234",
    )  # fmt: skip
    content = read_store(store.read_bytes(), "test1234", where="store")
    assert content.trusted_pem == (DATA / "ca.crt").read_text()
