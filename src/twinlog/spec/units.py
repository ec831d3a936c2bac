"""Sizes, rates and durations as people write them: `15MB`, `5MB/s`, `7d`.

Used by the models of the file, by `kafka_settings` for broker settings, and by everything that
prints such a value. A value is an ordinary number (bytes, bytes a second, seconds) that
remembers what it counts. Reading what `format_…` wrote gives the same number again.
A unit is always part of a duration: a bare `10` could mean seconds or milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Self

SIZE_UNITS: Mapping[str, int] = {
    "B": 1,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
}
# In milliseconds, so that every unit is a whole number.
DURATION_UNITS: Mapping[str, int] = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_COUNT = 2**63 - 1  # what Kafka can hold in a long

# Larger units first: of two forms of one length the larger unit is the one people read.
_SIZES_DOWN = sorted(SIZE_UNITS.items(), key=lambda item: -item[1])
_DURATIONS_DOWN = sorted(DURATION_UNITS.items(), key=lambda item: -item[1])
_SIZE_NAMES = {
    **{unit.lower(): unit for unit in SIZE_UNITS},
    "byte": "B",
    "bytes": "B",
    "k": "kB",
    "m": "MB",
    "g": "GB",
    "t": "TB",
    "ki": "KiB",
    "mi": "MiB",
    "gi": "GiB",
    "ti": "TiB",
}
_DURATION_NAMES = {
    **{unit: unit for unit in DURATION_UNITS},
    **dict.fromkeys(("msec", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
}
_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?)\s*(.*?)\s*", re.ASCII | re.DOTALL)

_SIZE_HINT = "write a number and a unit, as in 15MB (decimal), 15MiB (binary) or 512kB"
_RATE_HINT = "write a size a second, as in 5MB/s or 512KiB/s"
_DURATION_HINT = "write a number and a unit, as in 7d, 12h, 30m, 10s or 500ms"


class UnitError(ValueError):
    """Text that is no size, rate or duration, with a hint at what was meant."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def parse_bytes(text: str) -> int:
    """The number of bytes that `text` names."""
    if text.rstrip().endswith("/s"):
        raise UnitError(f"{text!r} is a rate, not a size", f"did you mean {text.strip()[:-2]}?")
    amount, unit = _split(text, "size", _SIZE_HINT)
    return _count(text, amount, _size_unit(text, unit))


def parse_rate(text: str) -> int:
    """The number of bytes a second that `text` names."""
    size, slash, per = text.rpartition("/")
    if not slash:
        amount, unit = _split(text, "rate", _RATE_HINT)
        if unit:
            raise UnitError(f"{text!r} is a size, not a rate", f"did you mean {text.strip()}/s?")
        return _count(text, amount, 1)
    amount, unit = _split(size, "rate", _RATE_HINT)
    if per.strip() not in ("s", "sec", "second"):
        raise UnitError(f"{text!r} is not a rate: rates are per second", f"did you mean {size.strip()}/s?")
    return _count(text, amount, _size_unit(text, unit))


def parse_milliseconds(text: str) -> Fraction:
    """The exact number of milliseconds that `text` names."""
    amount, unit = _split(text, "duration", _DURATION_HINT)
    if not unit:
        return _unitless(text, amount)
    if unit not in DURATION_UNITS:
        near = _near(unit.lower(), _DURATION_NAMES)
        hint = f"did you mean {_plain(amount)}{near}?" if near else _DURATION_HINT
        raise UnitError(f"{unit!r} is not a unit of time", hint)
    value = amount * DURATION_UNITS[unit]
    if value < 0:
        raise UnitError(f"{text!r} is below zero", _DURATION_HINT)
    if value > MAX_COUNT:
        raise UnitError(f"{text!r} is too long", _DURATION_HINT)
    return value


def parse_duration(text: str) -> float:
    """The number of seconds that `text` names."""
    return float(parse_milliseconds(text) / 1000)


def format_bytes(count: int) -> str:
    """The shortest exact form: 15000000 is 15MB, 15728640 is 15MiB, 1001 is 1001B."""
    if count == 0:
        return "0B"
    forms = [f"{count // factor}{unit}" for unit, factor in _SIZES_DOWN if count % factor == 0]
    return min(forms, key=len)


def format_rate(count: int) -> str:
    """The shortest exact form of a number of bytes a second."""
    return f"{format_bytes(count)}/s"


def format_duration(seconds: float) -> str:
    """The shortest exact form: 604800 is 7d, 90 is 90s, 0.5 is 500ms."""
    if seconds == 0:
        return "0s"
    milliseconds = Fraction(str(seconds)) * 1000
    if milliseconds.denominator != 1:
        return f"{_plain(milliseconds)}ms"
    forms = [
        f"{milliseconds // factor}{unit}" for unit, factor in _DURATIONS_DOWN if milliseconds % factor == 0
    ]
    return min(forms, key=len)


def _split(text: str, what: str, hint: str) -> tuple[Fraction, str]:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UnitError(f"{text!r} is not a {what}", hint)
    return Fraction(match[1]), match[2]


def _size_unit(text: str, unit: str) -> int:
    if not unit:
        return 1
    # Upper and lower case are the same here: "mb" for megabits is nothing that Kafka knows.
    exact = {name.lower(): factor for name, factor in SIZE_UNITS.items()}.get(unit.lower())
    if exact is not None:
        return exact
    near = _near(unit.lower(), _SIZE_NAMES)
    known = f"units of size are {', '.join(SIZE_UNITS)}"
    hint = f"did you mean {text.strip().replace(unit, near, 1)}?" if near else known
    raise UnitError(f"{unit!r} is not a unit of size", hint)


def _unitless(text: str, amount: Fraction) -> Fraction:
    if amount == 0:
        return amount
    plain = _plain(amount)
    raise UnitError(f"{text.strip()!r} has no unit of time", f"did you mean {plain}s, {plain}m or {plain}ms?")


def _count(text: str, amount: Fraction, factor: int) -> int:
    value = amount * factor
    if value < 0:
        raise UnitError(f"{text!r} is below zero", _SIZE_HINT)
    if value.denominator != 1:
        raise UnitError(f"{text!r} is not a whole number of bytes", _SIZE_HINT)
    if value > MAX_COUNT:
        raise UnitError(f"{text!r} is more than Kafka can count", _SIZE_HINT)
    return int(value)


def _near(unit: str, names: Mapping[str, str]) -> str | None:
    if unit in names:
        return names[unit]
    close = get_close_matches(unit, names, n=1, cutoff=0.5)
    return names[close[0]] if close else None


def _plain(amount: Fraction) -> str:
    """A decimal number without exponent; `amount` came from decimal text, so this is exact."""
    if amount.denominator == 1:
        return str(amount.numerator)
    digits = 0
    while (amount * 10**digits).denominator != 1:
        digits += 1
    scaled = str(abs(int(amount * 10**digits))).rjust(digits + 1, "0")
    return f"{'-' if amount < 0 else ''}{scaled[:-digits]}.{scaled[-digits:]}"


class Bytes(int):
    """A number of bytes."""

    @classmethod
    def parse(cls, value: Any) -> Self:
        """From text with a unit, or from a whole number of bytes."""
        return cls(parse_bytes(_text(value, _SIZE_HINT)))


class BytesPerSecond(int):
    """A number of bytes a second."""

    @classmethod
    def parse(cls, value: Any) -> Self:
        """From text with a unit, or from a whole number of bytes a second."""
        return cls(parse_rate(_text(value, _RATE_HINT)))


class Duration(float):
    """A number of seconds."""

    @classmethod
    def parse(cls, value: Any) -> Self:
        """From text with a unit; the only bare number is 0."""
        if isinstance(value, cls):
            return value
        return cls(parse_duration(_text(value, _DURATION_HINT)))


def _text(value: Any, hint: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        # int.__str__ would refuse thousands of digits; no such number is meant.
        return repr(value) if abs(value) <= MAX_COUNT else "a number that large"
    raise UnitError(f"expected a number with a unit, found {_kind(value)}", hint)


def _kind(value: Any) -> str:
    names = {bool: str(value).lower(), type(None): "nothing", list: "a list", dict: "a mapping"}
    return names.get(type(value), type(value).__name__)
