"""A client file of a cluster that exists already, as an Access.

Called for sites with `client:`. Java's form and librdkafka's form are told apart key by key and may
stand in one file, also with the prefix `kafka.` that some frameworks use. Paths in a file are taken
from the file's own directory, so that it works wherever the command is called. What is merely
unsafe (plaintext, no verification) is a warning: the cluster is not ours to secure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from twinlog.errors import FileProblems, Problem, UsageError
from twinlog.wire import stores
from twinlog.wire.access import Access, Mechanism, Protocol
from twinlog.wire.clientfiles import jaas
from twinlog.wire.clientfiles.properties import Entry, parse

_PREFIX = "kafka."
_ADDRESS_KEYS = ("bootstrap.servers", "metadata.broker.list", "bootstrap.server")
# Keys that only librdkafka's clients know: a backslash in their values is just a backslash.
_RAW_KEYS = (
    "sasl.username",
    "sasl.password",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
)
_MECHANISMS = ", ".join(Mechanism)

T = TypeVar("T")


class ClientSettings(NamedTuple):
    """What a client file says; `extra` holds the settings that have nothing to do with access."""

    access: Access
    extra: dict[str, str]
    warnings: tuple[Problem, ...]


def read_client_file(path: Path, given: Mapping[str, str] | None = None) -> ClientSettings:
    """Read a client file, with settings that overrule it; everything that is wrong is raised at once."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the client file cannot be read: {error.strerror}",
            where=str(path),
            hint="the path is taken from the directory of the bus's file",
        ) from error
    raw_keys = {*_RAW_KEYS, *(_PREFIX + key for key in _RAW_KEYS)}
    entries, problems = parse(_decode(data), raw_keys)
    return _settings(path, entries + _entries(given or {}), problems)


def read_client_properties(given: Mapping[str, str]) -> ClientSettings:
    """Settings that stand in no file, as on a command line; paths are taken from the working directory."""
    return _settings(Path("properties"), _entries(given), [])


def _entries(given: Mapping[str, str]) -> list[Entry]:
    return [Entry(key, value, line=0, column=0) for key, value in given.items()]


def _settings(path: Path, entries: Sequence[Entry], problems: list[Problem]) -> ClientSettings:
    reader = _Reader(path, entries, problems)
    access = reader.access()
    if any(problem.severity == "error" for problem in reader.problems):
        hint = "do Kafka's own clients take this file, with --command-config?"
        raise FileProblems(str(path), reader.problems, hint=hint)
    return ClientSettings(access, reader.unused(), tuple(reader.problems))


def _decode(data: bytes) -> str:
    # Java reads ISO 8859-1, librdkafka passes bytes on; what is valid UTF-8 was meant as that.
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return value[1:-1] if quoted else value


class _Reader:
    """Takes entries by name and collects what is wrong with them."""

    def __init__(self, path: Path, entries: Sequence[Entry], problems: list[Problem]) -> None:
        self._folder = path.parent
        self._entries = {entry.key.removeprefix(_PREFIX): entry for entry in entries}
        self._used: set[str] = set()
        self.problems = problems

    def access(self) -> Access:
        """The whole file as an Access."""
        protocol = self._protocol()
        ca_pem, (cert_pem, key_pem) = self._trust(), self._key()
        verify_peer, verify_hostname = self._verification(protocol)
        mechanism, username, password = self._login(protocol)
        secured = protocol in (Protocol.SSL, Protocol.SASL_SSL)
        return Access(
            bootstrap=self._addresses(),
            protocol=protocol,
            ca_pem=ca_pem if secured else "",
            cert_pem=cert_pem if secured else "",
            key_pem=key_pem if secured else "",
            mechanism=mechanism,
            username=username,
            password=password,
            verify_peer=verify_peer,
            verify_hostname=verify_hostname,
        )

    def unused(self) -> dict[str, str]:
        """The settings that nothing asked for, without section headings like `[default]`."""
        rest = (key for key in self._entries if key not in self._used and not key.startswith("["))
        return {key: _unquoted(self._entries[key].value) for key in rest}

    def _take(self, *keys: str) -> Entry | None:
        """The entry of the first of these keys that the file has a value for."""
        self._used.update(keys)
        found = (self._entries[key] for key in keys if key in self._entries and self._entries[key].value)
        return next(found, None)

    def _text(self, *keys: str) -> str | None:
        entry = self._take(*keys)
        return _unquoted(entry.value) if entry else None

    def _error(self, entry: Entry | None, what: str, hint: str = "") -> None:
        self._problem(entry, what, hint, "error")

    def _warn(self, entry: Entry | None, what: str, hint: str = "") -> None:
        self._problem(entry, what, hint, "warning")

    def _problem(self, entry: Entry | None, what: str, hint: str, severity: str) -> None:
        line, column = (entry.line, entry.column) if entry else (1, 1)
        self.problems.append(Problem(line, column, what, hint, entry.key if entry else "", severity))

    def _addresses(self) -> tuple[str, ...]:
        entry = self._take(*_ADDRESS_KEYS)
        if entry is None:
            return ()
        if entry.key.removeprefix(_PREFIX) == "bootstrap.server":
            self._warn(entry, "bootstrap.server is taken as bootstrap.servers", "Kafka's clients ignore it")
        parts = (part.strip() for part in _unquoted(entry.value).split(","))
        return tuple(part for part in parts if part)

    def _protocol(self) -> Protocol:
        entry = self._take("security.protocol")
        name = _unquoted(entry.value).upper() if entry else Protocol.PLAINTEXT.value
        if name not in Protocol.__members__:
            self._error(entry, f"unknown security.protocol {name!r}", f"one of {', '.join(Protocol)}")
            return Protocol.SASL_SSL
        protocol = Protocol(name)
        hint = "security.protocol=SASL_SSL, if the cluster offers it"
        if entry is None:
            self._warn(entry, "security.protocol is not set, so everything travels unencrypted", hint)
        elif protocol in (Protocol.PLAINTEXT, Protocol.SASL_PLAINTEXT):
            self._warn(entry, f"with {protocol} everything travels unencrypted", hint)
        return protocol

    def _verification(self, protocol: Protocol) -> tuple[bool, bool]:
        peer = self._take("enable.ssl.certificate.verification")
        self._used.add("ssl.endpoint.identification.algorithm")
        name = self._entries.get("ssl.endpoint.identification.algorithm")
        verify_peer = peer is None or _unquoted(peer.value).lower() not in ("false", "f", "0")
        # Java switches it off with an empty value, librdkafka with `none`.
        verify_name = name is None or _unquoted(name.value).lower() not in ("", "none")
        if protocol in (Protocol.SSL, Protocol.SASL_SSL):
            if not verify_peer:
                self._warn(
                    peer, "the brokers' certificates are not verified: anybody can pose as the cluster"
                )
            if not verify_name:
                self._warn(name, "the names in the brokers' certificates are not verified")
        return verify_peer, verify_name

    def _login(self, protocol: Protocol) -> tuple[Mechanism | None, str, str]:
        mechanism_entry = self._take("sasl.mechanism", "sasl.mechanisms")
        jaas_entry = self._take("sasl.jaas.config")
        user_entry, password_entry = self._take("sasl.username"), self._take("sasl.password")
        if protocol not in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL):
            return None, "", ""
        mechanism = self._mechanism(mechanism_entry, jaas_entry)
        if mechanism is None:
            return None, "", ""
        if jaas_entry is not None:
            username, password = self._jaas_login(jaas_entry, mechanism)
        else:
            username = user_entry.value if user_entry else ""
            password = password_entry.value if password_entry else ""
            for entry in (user_entry, password_entry):
                if entry is not None and _unquoted(entry.value) != entry.value:
                    self._warn(entry, "the quotes are part of the value, as they are for Kafka's clients")
            if not username or not password:
                hint = "sasl.jaas.config, or sasl.username and sasl.password"
                self._error(mechanism_entry, f"{mechanism} needs a username and a password", hint)
        return mechanism, username, password

    def _mechanism(self, entry: Entry | None, jaas_entry: Entry | None) -> Mechanism | None:
        if entry is None:
            # Kafka's default is GSSAPI, which nobody means who leaves it out beside a password.
            self._error(jaas_entry, "sasl.mechanism is missing", f"one of {_MECHANISMS}")
            return None
        name = _unquoted(entry.value).upper()
        if name not in list(Mechanism):
            self._error(
                entry, f"sasl.mechanism {name} is not supported", f"is there a user for one of {_MECHANISMS}?"
            )
            return None
        return Mechanism(name)

    def _jaas_login(self, entry: Entry, mechanism: Mechanism) -> tuple[str, str]:
        module = jaas.module_of(mechanism)
        hint = f'{module} required username="..." password="...";'
        try:
            login = jaas.parse(_unquoted(entry.value))
        except jaas.JaasError as error:
            self._error(entry, f"sasl.jaas.config cannot be read: {error}", hint)
            return "", ""
        if login.module != module:
            self._error(entry, f"{mechanism} needs the login module {module}, not {login.module}", hint)
        username, password = login.options.get("username", ""), login.options.get("password", "")
        if not username or not password:
            self._error(entry, "username or password is missing or empty in sasl.jaas.config", hint)
        return username, password

    def _trust(self) -> str:
        self._used.update(("ssl.truststore.type", "ssl.truststore.password"))
        inline = self._take("ssl.truststore.certificates", "ssl.ca.pem")
        store = self._take("ssl.truststore.location", "ssl.ca.location")
        if inline is not None:
            return self._pem(inline, partial(stores.normal_certificates, where=inline.key))
        if store is None or (store.key.endswith("ssl.ca.location") and store.value == "probe"):
            return ""
        content = self._store(store, "ssl.truststore.password")
        if content is not None and not content.trusted_pem:
            self._error(store, "the store holds no trusted certificate", "is it the key store?")
        return content.trusted_pem if content else ""

    def _key(self) -> tuple[str, str]:
        self._used.update(("ssl.keystore.type", "ssl.keystore.password", "ssl.key.password"))
        chain = self._take(
            "ssl.keystore.certificate.chain", "ssl.certificate.pem", "ssl.certificate.location"
        )
        key = self._take("ssl.keystore.key", "ssl.key.pem", "ssl.key.location")
        store = self._take("ssl.keystore.location")
        if chain is not None and key is not None:
            open_key = partial(stores.normal_key, password=self._text("ssl.key.password"), where=key.key)
            return self._pem(chain, partial(stores.normal_certificates, where=chain.key)), self._pem(
                key, open_key
            )
        if chain is not None or key is not None:
            self._error(chain or key, "a certificate and its key are needed together")
        elif store is not None:
            content = self._store(store, "ssl.keystore.password")
            if content is not None and not content.key_pem:
                self._error(store, "the store holds no private key", "is it the trust store?")
            return (content.chain_pem, content.key_pem) if content else ("", "")
        return "", ""

    def _pem(self, entry: Entry, normal: Callable[[str], str]) -> str:
        """A certificate or key, written out or in a file of its own."""
        value = _unquoted(entry.value)
        if entry.key.endswith(".location"):
            data = self._try(entry, (self._folder / value).read_bytes)
            if data is None:
                return ""
            value = data.decode("utf-8", "replace")
        return self._try(entry, lambda: normal(value)) or ""

    def _store(self, entry: Entry, password_key: str) -> stores.Store | None:
        path = self._folder / _unquoted(entry.value)
        data = self._try(entry, path.read_bytes)
        if data is None:
            return None
        password_entry = self._take(password_key)
        password = password_entry.value if password_entry else None
        key_password = self._text("ssl.key.password")

        def open_with(text: str | None) -> stores.Store:
            return stores.read_store(data, text, where=str(path), key_password=key_password)

        if password is not None and _unquoted(password) != password:
            # Quotes belong to the password for Java; people who never tried the file think otherwise.
            try:
                return open_with(password)
            except UsageError:
                password = _unquoted(password)
        return self._try(entry, lambda: open_with(password))

    def _try(self, entry: Entry, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except OSError as error:
            self._error(entry, f"{error.filename} cannot be read: {error.strerror}")
        except UsageError as error:
            self._error(entry, str(error), error.hint)
        return None
