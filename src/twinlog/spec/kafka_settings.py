"""What Kafka's broker and topic settings are called and what they hold.

The facts are in `kafka_settings.json`, made by asking Kafka itself; nothing here is from memory.
Called by the rules of the file, by `environment` and by `effective`. `canonical` turns what a
person wrote (`15MB`, `7d`, `true`) into the text that Kafka takes, in the unit that the name says.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal

from twinlog.spec.units import SIZE_UNITS, UnitError, parse_bytes, parse_milliseconds, parse_rate

Scope = Literal["broker", "topic"]
LISTENER_PREFIX = "listener.name."  # of settings that are for one listener
# What a plug-in is configured with: Kafka hands these on unread.
PLUGIN_PREFIXES = ("rsm.config.", "rlmm.config.", "config.providers.")
_INTEGER_LIMITS = {"short": 2**15 - 1, "int": 2**31 - 1, "long": 2**63 - 1}
_MILLISECONDS = {
    "ms": 1,
    "millis": 1,
    "seconds": 1000,
    "secs": 1000,
    "minutes": 60_000,
    "hours": 3_600_000,
}


class SettingError(ValueError):
    """A value that a setting cannot have, with a hint."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


@cache
def _facts() -> dict[str, dict[str, Any]]:
    text = Path(__file__).with_name("kafka_settings.json").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, Any]] = json.loads(text)
    return loaded


def names(scope: Scope = "broker") -> tuple[str, ...]:
    """Every setting that Kafka has."""
    return tuple(_facts()[scope])


def is_known(name: str, scope: Scope = "broker") -> bool:
    """Whether Kafka has a setting of that name."""
    return _entry(name, scope) is not None


def kind_of(name: str, scope: Scope = "broker") -> str:
    """What the setting holds: boolean, int, long, short, double, string, list, class or password."""
    entry = _entry(name, scope)
    if entry is None:
        raise KeyError(name)
    return str(entry["kind"])


def default_of(name: str, scope: Scope = "broker") -> str | None:
    """The value that Kafka takes when nothing is said; None if it has none."""
    entry = _entry(name, scope)
    return None if entry is None else entry.get("default")


def is_dynamic(name: str) -> bool:
    """Whether a running broker takes a new value without a restart."""
    entry = _entry(name, "broker")
    return entry is not None and "dynamic" in entry


def nearest(name: str, scope: Scope = "broker") -> str | None:
    """The name that was probably meant: the other scope's word for it, or one spelled alike."""
    synonyms: dict[str, str] = _facts()["synonym"]
    words = synonyms if scope == "broker" else {broker: topic for topic, broker in synonyms.items()}
    plain = name.replace("_", ".").replace("-", ".").lower()
    if plain in words:
        return words[plain]
    if is_known(plain, scope):
        return plain
    close = get_close_matches(plain, names(scope), n=1, cutoff=0.75)
    return close[0] if close else None


def canonical(name: str, value: object, scope: Scope = "broker") -> str:
    """The value as Kafka takes it, or a SettingError that says what it should have been."""
    entry = _entry(name, scope)
    if entry is None:
        near = nearest(name, scope)
        raise SettingError(f"Kafka has no {scope} setting {name}", f"did you mean {near}?" if near else "")
    kind = entry["kind"]
    text = ("true" if value else "false") if isinstance(value, bool) else str(value).strip()
    if any(character in text for character in "\n\r\0"):
        raise SettingError(f"{name} cannot hold more than one line")
    if kind == "boolean":
        return _boolean(name, text)
    if kind in _INTEGER_LIMITS:
        return _whole(name, text, entry)
    if kind == "double":
        return _number(name, text, entry)
    return _choice(name, text, entry)


def shown(name: str, value: object) -> str:
    """The value for a message; secrets are not shown."""
    return "the given value" if _is_secret(name) else repr(value)


def _is_secret(name: str) -> bool:
    entry = _entry(name, "broker")
    return name.startswith(PLUGIN_PREFIXES) or (entry is not None and entry["kind"] == "password")


def _default_hint(name: str) -> str:
    default = default_of(name) or default_of(name, "topic")
    return f"Kafka's default is {default}" if default else ""


def _entry(name: str, scope: Scope) -> dict[str, Any] | None:
    if scope == "broker" and name.startswith(LISTENER_PREFIX):
        name = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
    if scope == "broker" and name.startswith(PLUGIN_PREFIXES):
        return {"kind": "string"}
    entry: dict[str, Any] | None = _facts()[scope].get(name)
    return entry


def _boolean(name: str, text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise SettingError(f"{name} is true or false, found {shown(name, text)}", _default_hint(name))
    return text.lower()


def _whole(name: str, text: str, entry: dict[str, Any]) -> str:
    number = _digits(text)
    if number is None:
        number = _with_unit(name, text)
    high = min(entry.get("max", 2**63), _INTEGER_LIMITS[entry["kind"]])
    low = max(entry.get("min", -(2**63)), -_INTEGER_LIMITS[entry["kind"]] - 1)
    if not low <= number <= high:
        limits = f"from {low} to {high}" if "min" in entry else f"at most {high}"
        raise SettingError(f"{name} cannot be {text}", f"Kafka takes whole numbers {limits}")
    return str(number)


def _digits(text: str) -> int | None:
    sign = text[1:] if text[:1] in "+-" else text
    return int(text) if sign.isascii() and sign.isdigit() and len(sign) < 30 else None


def _with_unit(name: str, text: str) -> int:
    """`15MB` for a setting that counts bytes, `7d` for one that counts time in its own unit."""
    unit = name.rsplit(".", 1)[-1]
    try:
        if unit in _MILLISECONDS:
            amount = parse_milliseconds(text) / _MILLISECONDS[unit]
            if amount.denominator != 1:
                raise SettingError(f"{name} counts whole {unit}, found {text!r}")
            return int(amount)
        if _counts_bytes(name):
            return parse_rate(text) if "/" in text else parse_bytes(text)
    except UnitError as error:
        raise SettingError(f"{name}: {error.what}", error.hint) from None
    raise SettingError(f"{name} is a whole number, found {shown(name, text)}", _default_hint(name))


def _counts_bytes(name: str) -> bool:
    return "bytes" in name.split(".") or name.endswith("buffer.size")


def _number(name: str, text: str, entry: dict[str, Any]) -> str:
    try:
        if _counts_bytes(name) and text.partition("/")[0].lower().endswith(tuple(map(str.lower, SIZE_UNITS))):
            return str(parse_rate(text) if "/" in text else parse_bytes(text))
        number = float(text)
    except UnitError as error:
        raise SettingError(f"{name}: {error.what}", error.hint) from None
    except ValueError:
        raise SettingError(f"{name} is a number, found {shown(name, text)}", _default_hint(name)) from None
    low, high = entry.get("min", float("-inf")), entry.get("max", float("inf"))
    if not low <= number <= high:
        raise SettingError(f"{name} cannot be {text}", f"Kafka takes numbers from {low} to {high}")
    return text


def _choice(name: str, text: str, entry: dict[str, Any]) -> str:
    choices = entry.get("choices")
    if choices is None:
        return text
    parts = [part.strip() for part in text.split(",")] if entry["kind"] == "list" else [text]
    fold = str.lower if entry.get("any_case") else str
    known = {fold(choice) for choice in choices}
    for part in parts:
        if fold(part) not in known:
            close = get_close_matches(part, choices, n=1)
            hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(choices)}"
            raise SettingError(f"{name} cannot be {shown(name, part)}", hint)
    return ",".join(parts)
