"""What pydantic found, in plain words and by path.

Called by the loader with a ValidationError and the data that was validated. One finding comes out
for each place: where a value may be of several types, pydantic reports each of them, and people
want one sentence. Text that may be a secret is never repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from twinlog.spec import shape
from twinlog.spec.document import Path
from twinlog.spec.finding import Finding
from twinlog.spec.model import BUS_NAME, NAME_PATTERN, SITE_NAME, USER_NAME
from twinlog.spec.parts import TOPIC_NAME
from twinlog.spec.streams import COLUMN_NAME, FIELD_TYPE, FUNCTION_NAME, JOB_NAME

_NAMES = {
    BUS_NAME: ("a bus name", "lower-case letters, digits and dashes, at most 40: my-bus"),
    SITE_NAME: ("a site name", "lower-case letters and digits, a letter first, at most 16: a, east1"),
    TOPIC_NAME: ("a topic name", "letters, digits, dots, dashes and underscores, at most 249"),
    USER_NAME: ("a user name", "letters, digits, dots, dashes and underscores, at most 64"),
    JOB_NAME: ("the name of a job", "lower-case letters, digits and dashes, a letter first, at most 40"),
    COLUMN_NAME: (
        "a name for SQL",
        "lower-case letters, digits and underscores, a letter first, at most 64",
    ),
    FIELD_TYPE: (
        "the type of a field",
        "string, boolean, int, long, float, double, date, timestamp, binary or decimal(10,2)",
    ),
    FUNCTION_NAME: ("the name of a function", "module:name, as in park.cleaning:fix"),
    NAME_PATTERN: ("a name or prefix", "an exact name, a prefix and an asterisk (stock-*), or * for all"),
}
_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "float_type": "a number",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_SETTING = {"text", "a whole number", "a number", "true or false"}  # what `kafka:` and `config:` take
_EXAMPLES = {"bus": "bus: orders", "sites": "sites: {a: {brokers: 3}, b: {brokers: 3}}"}
_LIMITS = {
    "greater_than_equal": ("ge", "at least", "use {} or more"),
    "greater_than": ("gt", "more than", "use a number above {}"),
    "less_than_equal": ("le", "at most", "use {} or less"),
}


@dataclass(frozen=True)
class _Raw:
    """One pydantic error with its place in the data."""

    path: Path
    kind: str
    value: Any
    context: dict[str, Any]
    at_key: bool

    @property
    def is_type_error(self) -> bool:
        return self.kind in _TYPES


def findings(error: ValidationError, data: Any) -> list[Finding]:
    """Every error once, where it stands and in our words."""
    raws = [_locate(entry, data) for entry in error.errors(include_url=False)]
    result = []
    for path in dict.fromkeys(raw.path for raw in raws):
        here = [raw for raw in raws if raw.path == path]
        deeper = any(raw.path[: len(path)] == path and len(raw.path) > len(path) for raw in raws)
        if deeper and all(raw.is_type_error for raw in here):
            continue  # the other type of a union was meant, and has its own findings below
        result.append(_finding(path, here))
    return result


def _locate(entry: Any, data: Any) -> _Raw:
    """Drop the parts of pydantic's location that name types instead of places."""
    location: tuple[Any, ...] = entry["loc"]
    at_key = bool(location) and location[-1] == "[key]"
    path: list[str | int] = []
    value = data
    for part in location[:-1] if at_key else location:
        if _holds(value, part):
            value = value[part]
        elif not (entry["type"] == "missing" and part == location[-1]):
            continue
        path.append(part)
    at_key = at_key or entry["type"] == "extra_forbidden"
    return _Raw(tuple(path), entry["type"], entry["input"], entry.get("ctx", {}), at_key)


def _holds(value: Any, part: Any) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list | tuple) and isinstance(part, int) and part < len(value)


def _finding(path: Path, raws: list[_Raw]) -> Finding:
    telling = [raw for raw in raws if not raw.is_type_error and raw.kind != "literal_error"]
    if not telling and all(raw.is_type_error for raw in raws):
        return _wrong_type(path, raws)
    raw = (telling or raws)[0]
    if raw.kind == "missing":
        name = str(path[-1])
        return Finding(path, f"{name} is missing", f"add a line such as `{_EXAMPLES.get(name, name)}`")
    if raw.kind == "extra_forbidden":
        return _unknown_key(path)
    if raw.kind == "unit":
        literal = ", or forever" if any(other.kind == "literal_error" for other in raws) else ""
        hint = raw.context["hint"]
        return Finding(path, raw.context["what"], hint if hint.endswith("?") else hint + literal)
    if raw.kind == "string_pattern_mismatch":
        what, hint = _NAMES[raw.context["pattern"]]
        if raw.at_key and ":" in str(raw.value):
            hint = "is there a blank after the colon?"
        return Finding(path, f"{_shown(path, raw.value)} is not {what}", hint, at_key=raw.at_key)
    if raw.kind in ("enum", "literal_error"):
        return _not_one_of(path, raw)
    if raw.kind in _LIMITS:
        name, words, use = _LIMITS[raw.kind]
        limit = f"{raw.context[name]:g}" if isinstance(raw.context[name], float) else raw.context[name]
        what = f"{path[-1]} must be {words} {limit}, found {_shown(path, raw.value)}"
        return Finding(path, what, use.format(limit))
    return Finding(path, f"{_shown(path, raw.value)} cannot stand here", at_key=raw.at_key)


def _wrong_type(path: Path, raws: list[_Raw]) -> Finding:
    expected = [_TYPES[raw.kind] for raw in raws]
    found = _shown(path, raws[0].value)
    if set(expected) == _SETTING:
        return Finding(path, f"expected one value, found {found}", _setting_hint(raws[0].value))
    words = " or ".join(dict.fromkeys(expected))
    return Finding(path, f"expected {words}, found {found}", _type_hint(path, raws[0]))


def _setting_hint(value: Any) -> str:
    return 'write the parts as one text: "a,b"' if isinstance(value, list) else "give it a value or remove it"


def _type_hint(path: Path, raw: _Raw) -> str:
    value = raw.value
    if raw.kind == "int_type" and isinstance(value, str) and value.strip().isdigit():
        return "remove the quotes"
    if path[-1:] == ("brokers",):
        return "write how many, or a list with one entry for each broker"
    if raw.kind == "tuple_type" and isinstance(value, str):
        return f"write it as a list: [{value}]"
    if raw.kind == "string_type" and isinstance(value, int | float):
        return f'put it in quotes: "{str(value).lower() if isinstance(value, bool) else value}"'
    if raw.kind == "bool_type" and isinstance(value, str) and value.lower() in ("yes", "no", "on", "off"):
        return f"YAML 1.2 writes {'true' if value.lower() in ('yes', 'on') else 'false'}"
    if path and path[-1] == "password":
        return "name where it is kept: {file: shop.password} or {env: SHOP_PASSWORD}"
    if shape.mapping_of(shape.at(path)) is not None:
        return "write each name as a key, with what belongs to it below"
    keys = shape.keys_at(path)
    return f"its keys are {_listed(keys)}" if keys else ""


def _unknown_key(path: Path) -> Finding:
    name, known = str(path[-1]), shape.keys_at(path[:-1])
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"known here: {_listed(known)}"
    return Finding(path, f"unknown key {name}", hint, at_key=True)


def _not_one_of(path: Path, raw: _Raw) -> Finding:
    choices = [part.strip("'") for part in raw.context["expected"].replace(" or ", ", ").split(", ")]
    near = nearest(str(raw.value), choices) if isinstance(raw.value, str) else None
    hint = f"did you mean {near}?" if near else f"one of {_listed(choices)}"
    return Finding(path, f"{path[-1]} cannot be {_shown(path, raw.value)}", hint)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    by_form = {candidate.lower().replace("-", "_"): candidate for candidate in known}
    close = get_close_matches(name.lower().replace("-", "_"), by_form, n=1, cutoff=0.6)
    return by_form[close[0]] if close else None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _shown(path: Path, value: Any) -> str:
    """The value for a message: short, and not at all where it may be a secret."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    if "password" in path:
        return "something else"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
