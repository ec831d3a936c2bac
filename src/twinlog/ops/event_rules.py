"""Four practices for designing events, as advice on a sample of a topic's records. Pure.

For `twinlog events check`. The practices: one pattern for names, in the past tense; narrow data types; events
of a single purpose; one type of event in a stream. A sample shows what is written and not what is meant, so
all of this is advice: each piece says what was seen in how many records. Only JSON objects are looked into.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any

from twinlog.ops.event_names import Style, does_two_things, says_what_happened, style_of, words_of

TYPE_NAMES = ("type", "eventtype", "event", "eventname", "cetype", "kind", "messagetype", "schema")
SWITCHES = ("action", "operation", "op", "command", "mode", "subtype", "changetype", "verb", "activity")
CODES = ("id", "ids", "code", "phone", "zip", "postcode", "iban", "isbn", "ean", "sku", "version", "number")
LEAST_RECORDS = 3  # of fewer nothing can be said about a field
SOMETIMES = 0.1  # a field that is in fewer records is an exception, not a second purpose
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"[+-]?\d+\.\d+")
_TRUTH = re.compile(r"true|false|yes|no", re.IGNORECASE)


class Practice(StrEnum):
    """What a piece of advice is about."""

    NAMES = "names"
    TYPES = "narrow types"
    PURPOSE = "single purpose"
    STREAM = "one type per stream"
    SAMPLE = "sample"


@dataclass(frozen=True)
class Advice:
    """One thing that could be better."""

    practice: Practice
    subject: str  # a type of event, or a field
    seen: str
    records: int
    advice: str


@dataclass(frozen=True)
class Event:
    """One record, as far as it can be looked into; `fields` is None if it is no JSON object."""

    type: str | None
    fields: Mapping[str, Any] | None


def event_of(value: bytes | None, headers: Iterable[tuple[str, bytes | None]]) -> Event:
    """A record as an event: its type is named in a header, else in a field."""
    fields = _object(value)
    named = [text.decode("utf-8", "replace") for key, text in headers if _plain(key) in TYPE_NAMES and text]
    if not named and fields is not None:
        named = [
            text
            for key, text in fields.items()
            if _plain(key) in TYPE_NAMES and isinstance(text, str) and text
        ]
    return Event(named[0] if named else None, fields)


def review(events: Sequence[Event]) -> list[Advice]:
    """All advice on a sample."""
    by_type: dict[str | None, list[Event]] = defaultdict(list)
    for event in events:
        by_type[event.type].append(event)
    found = [*_sample(events), *_names(by_type), *_stream(by_type)]
    for name, theirs in sorted(by_type.items(), key=lambda item: item[0] or ""):
        objects = [event.fields for event in theirs if event.fields is not None]
        found += _types(name or "", objects)
        found += _purpose(name or "", objects)
    return found


def _sample(events: Sequence[Event]) -> list[Advice]:
    closed = sum(event.fields is None for event in events)
    if not closed:
        return []
    what = "values that are no JSON objects"
    return [Advice(Practice.SAMPLE, "values", what, closed, "only names in headers could be looked at there")]


def _names(by_type: Mapping[str | None, Sequence[Event]]) -> list[Advice]:
    found = []
    if None in by_type:
        found.append(
            Advice(
                Practice.NAMES,
                "type",
                "no name of the event in a header or field",
                len(by_type[None]),
                "name what happened in a header 'type', say: UserCreated",
            )
        )
    named = {name: len(theirs) for name, theirs in by_type.items() if name is not None}
    for name, count in sorted(named.items()):
        if not says_what_happened(name):
            advice = "say what happened, in the past tense: UserCreated, not CreateUser"
            found.append(Advice(Practice.NAMES, name, "no verb in the past", count, advice))
    styles: dict[Style, list[str]] = defaultdict(list)
    for name in sorted(named):
        styles[style_of(name)].append(name)
    if len(styles) > 1:
        usual = max(styles, key=lambda style: sum(named[name] for name in styles[style]))
        for style, names in styles.items():
            if style is not usual:
                seen = f"{style}, where most are {usual}"
                found += [
                    Advice(Practice.NAMES, name, seen, named[name], f"write it as {usual}") for name in names
                ]
    return found


def _stream(by_type: Mapping[str | None, Sequence[Event]]) -> list[Advice]:
    named = {name: len(theirs) for name, theirs in by_type.items() if name is not None}
    if len(named) < 2:
        return []
    usual = max(named, key=lambda name: named[name])
    return [
        Advice(Practice.STREAM, name, f"in one stream with {usual}", count, "give each type of event a topic")
        for name, count in sorted(named.items())
        if name != usual
    ]


def _types(name: str, objects: Sequence[Mapping[str, Any]]) -> list[Advice]:
    found = []
    for path, values in sorted(_leaves(objects).items()):
        present = [value for value in values if value is not None]
        if len(present) < LEAST_RECORDS:
            continue
        subject = f"{name}.{path}" if name else path
        kinds = Counter(_kind(value) for value in present)
        if len(kinds) > 1:
            seen = " and ".join(f"{kind} ({count})" for kind, count in kinds.most_common())
            found.append(Advice(Practice.TYPES, subject, seen, len(present), "give the field one type"))
        elif set(kinds) == {"text"}:
            for pattern, meant in (
                (_WHOLE, "a whole number"),
                (_DECIMAL, "a number"),
                (_TRUTH, "true or false"),
            ):
                if all(pattern.fullmatch(value) for value in present) and not _is_code(path, present):
                    seen = f"text that is always {meant}: {present[0]!r}"
                    found.append(Advice(Practice.TYPES, subject, seen, len(present), f"write it as {meant}"))
                    break
    return found


def _purpose(name: str, objects: Sequence[Mapping[str, Any]]) -> list[Advice]:
    found = []
    subject = name or "events"
    if name and does_two_things(name):
        found.append(
            Advice(Practice.PURPOSE, name, "two things in one name", len(objects), "make an event of each")
        )
    for field, values in sorted(_fields(objects).items()):
        texts = {value for value in values if isinstance(value, str)}
        if _plain(field) in SWITCHES and len(texts) > 1:
            seen = f"{field} is {', '.join(sorted(texts)[:4])}"
            found.append(
                Advice(Practice.PURPOSE, f"{subject}.{field}", seen, len(values), "make an event of each")
            )
    pair = _never_together(objects)
    if pair is not None:
        found.append(
            Advice(
                Practice.PURPOSE,
                subject,
                f"fields that never come together: {pair[0]} and {pair[1]}",
                len(objects),
                "are these two events?",
            )
        )
    return found


def _never_together(objects: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Two fields of which each record has one or the other, and none has both."""
    total = len(objects)
    if total < 2 * LEAST_RECORDS:
        return None
    holders = {field: frozenset(_with(objects, field)) for field in _fields(objects)}
    often = {
        field: held for field, held in holders.items() if SOMETIMES <= len(held) / total <= 1 - SOMETIMES
    }
    for one, other in combinations(sorted(often), 2):
        if not often[one] & often[other] and len(often[one] | often[other]) >= (1 - SOMETIMES) * total:
            return one, other
    return None


def _with(objects: Sequence[Mapping[str, Any]], field: str) -> Iterable[int]:
    return (number for number, one in enumerate(objects) if one.get(field) is not None)


def _fields(objects: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for one in objects:
        for field, value in one.items():
            found[field].append(value)
    return found


def _leaves(objects: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """All values that are no objects, by their path: `customer.id`."""
    found: dict[str, list[Any]] = defaultdict(list)

    def walk(one: Mapping[str, Any], prefix: str) -> None:
        for field, value in one.items():
            if isinstance(value, Mapping):
                walk(value, f"{prefix}{field}.")
            else:
                found[f"{prefix}{field}"].append(value)

    for one in objects:
        walk(one, "")
    return found


_KINDS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda value: isinstance(value, bool), "true or false"),
    (lambda value: isinstance(value, int | float), "number"),
    (lambda value: isinstance(value, str), "text"),
    (lambda value: isinstance(value, list), "list"),
)


def _kind(value: Any) -> str:
    return next((kind for is_it, kind in _KINDS if is_it(value)), "object")


def _is_code(path: str, values: Sequence[str]) -> bool:
    """True if digits are a name and no number: a phone, a code, an identifier with zeros in front."""
    words = words_of(path.rpartition(".")[2])
    named = bool(words) and words[-1] in CODES
    return named or any(len(value) > 1 and value.startswith("0") and value.isdigit() for value in values)


def _object(value: bytes | None) -> Mapping[str, Any] | None:
    try:
        told = json.loads(value) if value else None
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())
