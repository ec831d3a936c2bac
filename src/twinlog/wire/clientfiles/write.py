"""Client files, ready to use: how a user reaches the bus, for the client of its choice.

Called by `twinlog client`. One main file and, where the client reads no certificates from it, files
beside it whose paths stand in the main file: so the caller says first where everything will lie.
Every file may hold a secret and is written for its owner only. Java's, librdkafka's and kcat's
files read back (`read`) give the same Access.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from twinlog.errors import UsageError
from twinlog.wire import stores
from twinlog.wire.access import Access, Mechanism, Protocol
from twinlog.wire.clientfiles import jaas, snippets
from twinlog.wire.clientfiles.files import ClientFile, ClientFiles
from twinlog.wire.clientfiles.properties import format_entry
from twinlog.wire.clientfiles.tuning import Role, Tuned, Tuning, java_tuning, librdkafka_tuning
from twinlog.wire.stores import StoreType

_KCAT_LINE_BYTES = 510  # kcat reads lines into 512 bytes
_STORE_PASSWORD_LENGTH = 24
_SCRAM = (Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512)
_KEEP = "It lets its holder in: keep it to yourself."


class Format(StrEnum):
    """The clients that files are written for."""

    JAVA = "java"
    LIBRDKAFKA = "librdkafka"
    KCAT = "kcat"
    PYTHON = "python"
    SPARK = "spark"
    SPRING = "spring"
    QUARKUS = "quarkus"


@dataclass(frozen=True)
class Client:
    """Whose files are to be written, and how."""

    name: str  # the user: it stands in the files and in their names
    access: Access
    tuning: Tuning
    store: StoreType
    directory: Path  # where the files will lie


def render(client: Client, form: Format) -> ClientFiles:
    """The files of one client in one format."""
    if client.store is not StoreType.PEM and form in (Format.LIBRDKAFKA, Format.KCAT, Format.PYTHON):
        raise UsageError(f"{form} clients read PEM only", hint="leave --store out; stores are for Java")
    return _RENDERERS[form](client)


def _java(client: Client) -> ClientFiles:
    title = f"User {client.name}, for Kafka's Java clients{_since(client)}. {_KEEP}"
    settings, beside = _java_settings(client)
    text = _properties(title, settings, lambda setting: setting.key)
    return ClientFiles(_file(f"{client.name}.properties", text), beside)


def _quarkus(client: Client) -> ClientFiles:
    title = f"User {client.name}, for Quarkus: part of application.properties. {_KEEP}"
    settings, beside = _java_settings(client)
    _refuse_placeholders(settings, Format.QUARKUS)
    text = _properties(title, settings, lambda setting: f"kafka.{setting.key}")
    return ClientFiles(_file("application.properties", text), beside)


def _spring(client: Client) -> ClientFiles:
    title = f"User {client.name}, for Spring Boot: part of application.properties. {_KEEP}"
    settings, beside = _java_settings(client)
    _refuse_placeholders(settings, Format.SPRING)
    text = _properties(title, settings, _spring_key)
    return ClientFiles(_file("application.properties", text), beside)


def _spark(client: Client) -> ClientFiles:
    settings, beside = _java_settings(client)
    return ClientFiles(
        _file(f"{_module(client.name)}_spark.py", snippets.spark(client.name, settings)), beside
    )


def _python(client: Client) -> ClientFiles:
    access = [_plain(key, _setting_text(value)) for key, value in client.access.librdkafka().items()]
    text = snippets.python(client.name, access, librdkafka_tuning(client.tuning))
    return ClientFiles(_file(f"{_module(client.name)}_client.py", text))


def _librdkafka(client: Client) -> ClientFiles:
    title = f"User {client.name}, for librdkafka's clients since 2.10. {_KEEP}"
    settings, beside = _librdkafka_settings(client)
    text = _lines(title, [*settings, *librdkafka_tuning(client.tuning)])
    return ClientFiles(_file(f"{client.name}.conf", text), beside)


def _kcat(client: Client) -> ClientFiles:
    name = f"{client.name}.kcat.conf"
    title = f"User {client.name}, for kcat -F {name}{_kcat_since(client)}. {_KEEP}"
    settings, beside = _librdkafka_settings(client)
    # kcat is often built with a librdkafka before 2.10, which refuses settings that it does not know.
    tuned = librdkafka_tuning(client.tuning, can_rebootstrap=False)
    return ClientFiles(_file(name, _lines(title, [*settings, *tuned])), beside)


_RENDERERS: dict[Format, Callable[[Client], ClientFiles]] = {
    Format.JAVA: _java,
    Format.LIBRDKAFKA: _librdkafka,
    Format.KCAT: _kcat,
    Format.PYTHON: _python,
    Format.SPARK: _spark,
    Format.SPRING: _spring,
    Format.QUARKUS: _quarkus,
}


def java_settings(access: Access, tuning: Tuning, role: Role) -> dict[str, str]:
    """The settings of a Java client in one of its roles, for programs that start it themselves."""
    settings, _ = _java_settings(Client("", access, tuning, StoreType.PEM, Path()))
    return {one.key: one.value for one in settings if one.role in (Role.ANY, role)}


def _java_settings(client: Client) -> tuple[list[Tuned], tuple[ClientFile, ...]]:
    access = client.access
    settings = [
        _plain("bootstrap.servers", ",".join(access.bootstrap)),
        _plain("security.protocol", access.protocol.value),
    ]
    if access.mechanism is not None:
        settings.append(_plain("sasl.mechanism", access.mechanism.value))
        login = jaas.render(access.mechanism, access.username, access.password)
        settings.append(_plain("sasl.jaas.config", login))
    beside: tuple[ClientFile, ...] = ()
    if access.protocol in (Protocol.SSL, Protocol.SASL_SSL):
        if not access.verify_peer:
            raise UsageError(
                "Java clients always verify the brokers' certificates",
                hint="give the site's client file a trust store",
            )
        tls, beside = _java_pem(access) if client.store is StoreType.PEM else _java_stores(client)
        algorithm = "https" if access.verify_hostname else ""
        settings += [*tls, _plain("ssl.endpoint.identification.algorithm", algorithm)]
    return [*settings, *java_tuning(client.tuning)], beside


def _java_pem(access: Access) -> tuple[list[Tuned], tuple[ClientFile, ...]]:
    settings = []
    if access.ca_pem:
        settings += [
            _plain("ssl.truststore.type", "PEM"),
            _plain("ssl.truststore.certificates", access.ca_pem),
        ]
    if access.cert_pem:
        settings += [
            _plain("ssl.keystore.type", "PEM"),
            _plain("ssl.keystore.certificate.chain", access.cert_pem),
            _plain("ssl.keystore.key", access.key_pem),
        ]
    return settings, ()


def _java_stores(client: Client) -> tuple[list[Tuned], tuple[ClientFile, ...]]:
    access, kind = client.access, client.store
    end = "p12" if kind is StoreType.PKCS12 else "jks"
    password = _store_password(access)
    settings, beside = [], []
    if access.ca_pem:
        data = stores.write_trust_store(kind, access.ca_pem, password)
        beside.append(ClientFile(f"{client.name}.trust.{end}", data))
        settings += _store_settings("ssl.truststore", kind, client.directory / beside[-1].name, password)
    if access.cert_pem:
        data = stores.write_key_store(kind, access.cert_pem, access.key_pem, password)
        beside.append(ClientFile(f"{client.name}.key.{end}", data))
        settings += _store_settings("ssl.keystore", kind, client.directory / beside[-1].name, password)
        settings.append(_plain("ssl.key.password", password))
    return settings, tuple(beside)


def _store_password(access: Access) -> str:
    """The same password for the same content, so that files printed earlier go on fitting the stores.

    It stands beside the store and guards nothing more than the file's own rights do: Java wants one.
    """
    digest = hashlib.sha256((access.key_pem or access.ca_pem).encode()).digest()
    return base64.urlsafe_b64encode(digest)[:_STORE_PASSWORD_LENGTH].decode()


def _store_settings(prefix: str, kind: StoreType, path: Path, password: str) -> list[Tuned]:
    return [
        _plain(f"{prefix}.type", kind.value.upper()),
        _plain(f"{prefix}.location", str(path)),
        _plain(f"{prefix}.password", password),
    ]


def _librdkafka_settings(client: Client) -> tuple[list[Tuned], tuple[ClientFile, ...]]:
    beside = []
    settings = []
    files = {
        "ssl.ca.pem": ("ssl.ca.location", f"{client.name}.ca.crt"),
        "ssl.certificate.pem": ("ssl.certificate.location", f"{client.name}.crt"),
        "ssl.key.pem": ("ssl.key.location", f"{client.name}.key"),
    }
    for key, value in client.access.librdkafka().items():
        text = _setting_text(value)
        if key in files:
            # One line is one setting here, and PEM has many.
            location, name = files[key]
            beside.append(_file(name, text))
            settings.append(_plain(location, str(client.directory / name)))
        else:
            settings.append(_plain(key, text))
    return settings, tuple(beside)


def _properties(title: str, settings: Iterable[Tuned], key_of: Callable[[Tuned], str]) -> str:
    lines = [f"# {title}"]
    for setting in settings:
        lines += [f"# {setting.why}"] if setting.why else []
        lines.append(format_entry(key_of(setting), setting.value))
    return "\n".join(lines) + "\n"


def _lines(title: str, settings: Iterable[Tuned]) -> str:
    lines = [f"# {title}"]
    for setting in settings:
        lines += [f"# {setting.why}"] if setting.why else []
        lines.append(_line(setting))
    return "\n".join(lines) + "\n"


def _line(setting: Tuned) -> str:
    value = setting.value
    line = f"{setting.key}={value}"
    # There are no escapes in these files, except two that kcat undoes without being asked.
    control = any(ord(character) < ord(" ") or character == "\x7f" for character in value)
    if control or value != value.strip() or "\\:" in value or "\\=" in value:
        raise UsageError(
            f"the value of {setting.key} cannot be written into this kind of file",
            hint="no blanks at its ends, no line breaks, no \\: and no \\=; or another --format",
        )
    if len(line.encode()) > _KCAT_LINE_BYTES:
        raise UsageError(f"the value of {setting.key} is too long for a line", hint="choose a shorter path")
    return line


def _spring_key(setting: Tuned) -> str:
    known = {"bootstrap.servers": "bootstrap-servers", "security.protocol": "security.protocol"}
    if setting.key in known:
        return f"spring.kafka.{known[setting.key]}"
    role = "" if setting.role is Role.ANY else f"{setting.role}."
    return f"spring.kafka.{role}properties[{setting.key}]"


def _refuse_placeholders(settings: Iterable[Tuned], form: Format) -> None:
    for setting in settings:
        if "${" in setting.value:
            raise UsageError(
                f"the value of {setting.key} holds ${{, which {form} would replace",
                hint="choose another password, or --format java and load that file",
            )


def _since(client: Client) -> str:
    return " since 2.7 (older ones: --store pkcs12)" if client.store is StoreType.PEM else ""


def _kcat_since(client: Client) -> str:
    # Before 2.6.1 the client's nonce stands twice in the last message of SCRAM, which Kafka 4 refuses
    # as wrong credentials. Debian 12 has 2.0.2.
    return " on librdkafka since 2.6.1 (kcat -V says which)" if client.access.mechanism in _SCRAM else ""


def _plain(key: str, value: str) -> Tuned:
    return Tuned(key, value, why="")


def _setting_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _module(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _file(name: str, text: str) -> ClientFile:
    return ClientFile(name, text.encode())
