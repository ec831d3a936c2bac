"""Environment variables that change what the file says.

`TWINLOG_SITES_A_BROKERS=5` names a value by its path; `KAFKA_MESSAGE_MAX_BYTES=15MB` sets a broker
setting of the whole bus, written as container images of Kafka write it. Called by the loader on the
file's plain data, before it is validated: what a variable says is checked like what the file says,
and a problem with it has the variable as its place. Variables win over the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any

from twinlog.errors import Problem
from twinlog.spec import shape, typed
from twinlog.spec.document import Path, read
from twinlog.spec.kafka_settings import names as kafka_names
from twinlog.spec.model import Bus

PREFIX = "TWINLOG_"
KAFKA_PREFIX = "KAFKA_"
RESERVED = frozenset({"TWINLOG_FILE", "TWINLOG_CACHE", "TWINLOG_DEBUG"})
# Variables of Kafka's own scripts and images, which say how a JVM is started.
SCRIPT_VARIABLES = frozenset(
    f"KAFKA_{name}"
    for name in (
        "CLASSPATH",
        "CLUSTER_ID",
        "DEBUG",
        "GC_LOG_OPTS",
        "HEAP_OPTS",
        "HOME",
        "JMX_HOSTNAME",
        "JMX_OPTS",
        "JMX_PORT",
        "JVM_PERFORMANCE_OPTS",
        "LOG4J_CMD_OPTS",
        "LOG4J_LOGGERS",
        "LOG4J_OPTS",
        "LOG4J_ROOT_LOGLEVEL",
        "MODE",
        "OPTS",
        "TOOLS_LOG4J_LOGLEVEL",
        "URL",
        "USER",
        "VERSION",
    )
)
# What Kubernetes sets in every pod beside a service called "kafka".
_SERVICE_LINK = re.compile(r"KAFKA_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_[0-9]+_(TCP|UDP)(_\w+)?)")
_SETTINGS = {"kafka", "config"}  # mappings of Kafka's settings
_SEPARATORS = {"_": ".", "__": "_", "___": "-"}


@dataclass
class Overrides:
    """What the environment says: values by path, the variable of each, and what made no sense."""

    values: dict[Path, Any] = field(default_factory=dict)
    variables: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def variable_at(self, path: Path) -> str | None:
        """The variable that a path comes from, if one does."""
        while path:
            if path in self.variables:
                return self.variables[path]
            path = path[:-1]
        return None


def collect(env: Mapping[str, str], data: Any) -> Overrides:
    """All overrides in an environment, for a file with that data."""
    overrides = Overrides()
    others = {*RESERVED, *_password_variables(data)}
    variables = sorted(set(env) - others)
    for variable in variables:
        if variable.startswith(KAFKA_PREFIX):
            _take_setting(variable, env[variable], overrides)
    named = [variable for variable in variables if variable.startswith(PREFIX)]
    places = _places(data) if named else {}
    for variable in named:
        _take_path(variable, env[variable], places, overrides)
    return overrides


def apply(overrides: Overrides, data: Any) -> Any:
    """The file's data with the overrides in it; `data` itself stays as it is."""
    for path, value in overrides.values.items():
        data = _put(data, path, value)
    return data


def setting_of(variable: str) -> str | None:
    """The broker setting that a KAFKA_ variable names, or None if it names none."""
    rest = variable.removeprefix(KAFKA_PREFIX)
    if not rest or variable in SCRIPT_VARIABLES or _SERVICE_LINK.fullmatch(variable):
        return None
    return re.sub("_+", lambda run: _SEPARATORS.get(run[0], run[0]), rest).lower()


def variable_of(setting: str) -> str:
    """The KAFKA_ variable that names a broker setting."""
    words = setting.upper().replace("_", "__").replace("-", "___").replace(".", "_")
    return f"{KAFKA_PREFIX}{words}"


def _take_path(variable: str, text: str, places: Mapping[str, list[Path]], overrides: Overrides) -> None:
    wanted = variable.removeprefix(PREFIX).upper()
    paths = places.get(wanted, [])
    if len(paths) == 1:
        path = paths[0]
        if overrides.variable_at(path) is None:
            overrides.values[path] = _value(text, shape.at(path))
            overrides.variables[path] = variable
            return
        what, hint = f"says the same as ${overrides.variable_at(path)}", "keep one of the two"
    elif paths:
        names = " and ".join(".".join(map(str, path)) for path in paths)
        what, hint = f"can mean {names}", "set it in the file instead"
    else:
        what, hint = "names nothing in the file", _path_hint(wanted, places)
    overrides.problems.append(Problem(0, 0, what, hint, f"${variable}"))


def _take_setting(variable: str, text: str, overrides: Overrides) -> None:
    setting = setting_of(variable)
    if setting is None:
        return
    path = ("kafka", setting)
    overrides.values[path] = text
    overrides.variables[path] = variable


def _places(data: Any) -> dict[str, list[Path]]:
    """Every value that a variable can name, by what the variable is called after its prefix."""
    places: dict[str, list[Path]] = {}
    for path in _paths(Bus, data, ()):
        places.setdefault(_form(path), []).append(path)
    return places


def _paths(annotation: Any, data: Any, path: Path) -> Iterator[Path]:
    """Every path that a variable can name: keys of the models, and names that the file has."""
    section, mapping = shape.section_of(annotation), shape.mapping_of(annotation)
    item = shape.item_of(annotation)
    if item is not None and shape.section_of(item) is not None and isinstance(data, list):
        yield path  # `brokers: 5` may replace a list
        for index, element in enumerate(data):
            yield from _paths(item, element, (*path, index))
    elif section is not None and item is None:
        inner = data if isinstance(data, dict) else {}
        for name, inside in shape.types_of(section).items():
            yield from _paths(inside, inner.get(name), (*path, name))
    elif path and path[-1] in _SETTINGS:
        yield from ((*path, name) for name in _names(data, path))
    elif mapping is not None:
        for name in _names(data, path):
            value = data.get(name) if isinstance(data, dict) else None
            yield from _paths(mapping, value, (*path, name))
    else:
        yield path


def _names(data: Any, path: Path) -> list[str]:
    """The names of a mapping: those in the file, and of settings all that Kafka has."""
    found = list(data) if isinstance(data, dict) else []
    if path[-1] in _SETTINGS:
        found += kafka_names("broker" if path[-1] == "kafka" else "topic")
    return list(dict.fromkeys(found))


def _form(path: Path) -> str:
    """A path as a variable writes it, without the prefix."""
    return "_".join(_word(str(part)) for part in path)


@cache
def _word(part: str) -> str:
    return re.sub("[^A-Za-z0-9]", "_", part).upper()


def _path_hint(wanted: str, places: Mapping[str, list[Path]]) -> str:
    if inside := sorted(form for form in places if form.startswith(f"{wanted}_")):
        return f"it is a section; name a value in it, as in {PREFIX}{inside[0]}"
    # Kafka's settings are hundreds; they are likely names only where settings were meant.
    settings = "KAFKA" in wanted or "CONFIG" in wanted
    likely = [form for form, paths in places.items() if settings or not _SETTINGS & set(paths[0])]
    close = get_close_matches(wanted, likely, n=1, cutoff=0.6)
    return f"did you mean {PREFIX}{close[0]}?" if close else "sites, topics and users are added in the file"


def _value(text: str, annotation: Any) -> Any:
    """What a variable's text means where it goes: text if text will do, else what YAML makes of it."""
    document = read(text)
    parsed = text if document.problems else document.data
    if text.startswith(("[", "{")):
        return parsed
    return text if typed.takes(annotation, text) else parsed


def _put(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(head, int) and isinstance(data, list):
        return [_put(item, rest, value) if index == head else item for index, item in enumerate(data)]
    if data is None:
        data = {}
    if not isinstance(data, dict):
        return data  # not what it should be; the file's own problem says so
    return {**data, head: _put(data.get(head), rest, value)}


def _password_variables(data: Any) -> Iterator[str]:
    users = data.get("users") if isinstance(data, dict) else None
    for user in users.values() if isinstance(users, dict) else ():
        password = user.get("password") if isinstance(user, dict) else None
        name = password.get("env") if isinstance(password, dict) else None
        if isinstance(name, str):
            yield name
