"""From Fabric's `orderer.yaml` and the environment to a `LocalConfig`, with every problem at once.

Called by the process and by `twinlog order run`. Keys are the fields of `localconfig` without regard to
capitals, as Fabric reads them; sections of other ledgers and of other ways to agree are let pass unread.
A variable `ORDERER_GENERAL_LISTENPORT` stands over the file, for sections that the file has. Paths are
seen from the directory of the file. Values that are zero or empty count as absent.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import GenericAlias
from typing import Any, get_args, get_type_hints

from twinlog.errors import FileProblems, Problem, UsageError
from twinlog.ordering.durations import parse_duration_s
from twinlog.ordering.localconfig import READ_ALL, READ_TWIN, LocalConfig, Pem
from twinlog.spec import document as documents
from twinlog.spec.document import Document
from twinlog.spec.document import Path as Place

FILE_NAME = "orderer.yaml"
PREFIX = "ORDERER"
# Read by Fabric for things that are not done here: Raft, ledgers in memory, profiling, other metrics.
_UNUSED = {
    ("consensus",),
    ("ramledger",),
    ("general", "bccsp"),
    ("general", "cluster"),
    ("general", "profile"),
    ("metrics", "statsd"),
}
_VERSION = re.compile(r"v?[0-9]+(\.[0-9]+){1,3}", re.ASCII)
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "true"), True),
    **dict.fromkeys(("0", "f", "false"), False),
}


def find(env: Mapping[str, str], start: Path) -> Path:
    """The file in the directory that FABRIC_CFG_PATH names, else in `start`."""
    directory = start / env.get("FABRIC_CFG_PATH", "")
    if (directory / FILE_NAME).is_file():
        return directory / FILE_NAME
    raise UsageError(f"no {FILE_NAME} in {directory}", hint="twinlog order run --config FILE")


def load(file: Path, env: Mapping[str, str]) -> LocalConfig:
    """What a file and an environment tell an orderer."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the orderer's file: {error}", where=str(file)) from None
    return parse(text, file, env)


def parse(text: str, file: Path, env: Mapping[str, str]) -> LocalConfig:
    """As `load`, for text that was read already."""
    found = documents.read(text)
    data = {} if found.data is None else found.data
    if not isinstance(data, dict) or found.problems:
        problems = found.problems or [Problem(1, 1, "expected sections such as `General:` here")]
        raise FileProblems(str(file), problems, hint="does Fabric's own orderer read it?")
    reader = _Reader(found, file.absolute().parent, env)
    config: LocalConfig = reader.section(LocalConfig, data, ())
    reader.check(config)
    if reader.problems:
        raise FileProblems(str(file), reader.problems, hint="does Fabric's own orderer read it?")
    return config


class _Reader:
    """Turns data into sections, and notes what is wrong with it."""

    def __init__(self, found: Document, directory: Path, env: Mapping[str, str]) -> None:
        self.problems: list[Problem] = []
        self._document = found
        self._directory = directory
        self._env = env

    def section(self, kind: type[Any], data: Any, place: Place) -> Any:
        """One section and those below it."""
        if data is None:
            data = {}
        if not isinstance(data, dict):
            self._problem(place, "expected keys here")
            return kind()
        known = _keys(kind)
        given: dict[str, Any] = {}
        for key, value in data.items():
            name = str(key).lower()
            here = (*place, key)
            if name in known:
                given[name] = (here, value)
            elif _path(here) not in _UNUSED:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {_shown(known[near[0]][0])}?" if near else ""
                self._problem(here, f"an orderer knows no key {key}", hint)
        values = {}
        for name, (attribute, wanted) in known.items():
            here, value = given.get(name, ((*place, _shown(attribute)), None))
            if isinstance(wanted, type) and dataclasses.is_dataclass(wanted) and wanted is not Pem:
                if name in given:
                    values[attribute] = self.section(wanted, value, here)
                continue
            value = self._overridden(here, value)
            if wanted is Path:  # seen from the file's directory also if the file does not name it
                value = value or getattr(kind, attribute)
            if value is not None:
                self._take(values, attribute, wanted, value, here)
        return kind(**values)

    def check(self, config: LocalConfig) -> None:
        """What no single value shows."""
        tls, sasl, twinlog = config.kafka.tls, config.kafka.sasl_plain, config.twinlog
        for name in ("private_key", "certificate", "root_cas"):
            if tls.enabled and not getattr(tls, name):
                self._problem(("Kafka", "TLS"), f"Kafka.TLS is enabled and has no {_shown(name)}")
        for name in ("user", "password"):
            if sasl.enabled and not getattr(sasl, name):
                self._problem(("Kafka", "SASLPlain"), f"Kafka.SASLPlain is enabled and has no {_shown(name)}")
        for where, server in (("General", config.general.tls), ("Operations", config.operations.tls)):
            if server.enabled and not (server.certificate and server.private_key):
                self._problem((where, "TLS"), f"{where}.TLS is enabled and lacks Certificate or PrivateKey")
        if not _VERSION.fullmatch(config.kafka.version):
            self._problem(("Kafka", "Version"), f"{config.kafka.version} is no version of Kafka")
        if twinlog.read not in (READ_ALL, READ_TWIN):
            self._problem(("Twinlog", "Read"), f"Read is {READ_ALL} or {READ_TWIN}, not {twinlog.read}")
        if twinlog.read == READ_TWIN and not twinlog.standby:
            self._problem(("Twinlog", "Standby"), "Read: twin needs the brokers of the standby")

    def _overridden(self, here: Place, value: Any) -> Any:
        """The value of the environment, if it has one; a file's name may be given there too."""
        name = "_".join((PREFIX, *_path(here))).upper()
        if f"{name}_FILE" in self._env:
            return {"File": self._env[f"{name}_FILE"]}
        return self._env.get(name, value)

    def _take(self, values: dict[str, Any], attribute: str, wanted: Any, value: Any, here: Place) -> None:
        try:
            converted = self._converted(attribute, wanted, value, here)
        except ValueError as error:
            self._problem(here, str(error))
            return
        if converted or isinstance(converted, bool):
            values[attribute] = converted

    def _converted(self, attribute: str, wanted: Any, value: Any, here: Place) -> Any:
        if isinstance(wanted, GenericAlias):
            items = _listed(value)
            return tuple(self._converted(attribute, get_args(wanted)[0], item, here) for item in items)
        if wanted is Pem:
            return self._pem(value, is_path=here[0] != "Kafka")
        if isinstance(value, dict | list):
            raise ValueError("expected one value here")
        if wanted is bool:
            return _boolean(value)
        if wanted is int:
            return _whole(value)
        if wanted is float:
            return parse_duration_s(str(value))
        return self._directory / str(value) if wanted is Path else str(value)

    def _pem(self, value: Any, *, is_path: bool) -> Pem:
        """Text, a path, or `File: PATH`: ports of our own take paths where Kafka's keys are text."""
        if isinstance(value, dict):
            if [str(key).lower() for key in value] != ["file"]:
                raise ValueError("expected PEM text or `File: PATH` here")
            named = next(iter(value.values()))
            return Pem(path=self._directory / str(named)) if named else Pem()
        text = str(value)
        if text.startswith("-----BEGIN") or not text:
            return Pem(text)
        if is_path:
            return Pem(path=self._directory / text)
        raise ValueError("expected PEM text or `File: PATH` here")

    def _problem(self, place: Place, what: str, hint: str = "") -> None:
        name = ".".join(map(str, place))
        at = self._document.place(place, at_key=True)
        self.problems.append(Problem(at.line, at.column, f"{name}: {what}" if name else what, hint, name))


def _keys(kind: type[Any]) -> dict[str, tuple[str, Any]]:
    """The keys of a section in small letters, each with its field and what it holds."""
    return {_shown(name).lower(): (name, wanted) for name, wanted in get_type_hints(kind).items()}


def _shown(attribute: str) -> str:
    """A field's key with capitals."""
    words = attribute.removesuffix("_s").split("_")
    capitals = {"tls": "TLS", "cas": "CAs", "msp": "MSP", "mspid": "MSPID", "sasl": "SASL"}
    return "".join(capitals.get(word, word.capitalize()) for word in words)


def _path(place: Place) -> tuple[str, ...]:
    return tuple(str(part).lower() for part in place)


def _listed(value: Any) -> list[Any]:
    """A list of the file, or `[a, b]` of the environment."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [value]
    text = str(value).strip().removeprefix("[").removesuffix("]")
    return [item.strip() for item in text.split(",") if item.strip()]


def _boolean(value: Any) -> bool:
    found = _BOOLEANS.get(str(value).lower())
    if found is None:
        raise ValueError(f"{value} is neither true nor false")
    return found


def _whole(value: Any) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ValueError(f"{value} is no whole number") from None
