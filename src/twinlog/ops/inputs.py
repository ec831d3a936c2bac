"""What is written: records from lines, whole files or JSON lines. Pure but for reading the files.

Used by `twinlog produce`. A line is a value, or a key and a value with a separator between them; a
line of JSON is what `twinlog consume --json` printed. A line that cannot be read stops the run with
its number: what was sent before it stays sent.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlog.errors import UsageError
from twinlog.ops.formats import unescape
from twinlog.wire.driver import Headers, Outgoing

_KNOWN = {
    "topic",
    "partition",
    "offset",
    "timestamp_ms",
    "key",
    "key_base64",
    "value",
    "value_base64",
    "headers",
}


@dataclass(frozen=True)
class Form:
    """What lines mean, and what every record gets beside what its line says."""

    topic: str
    separator: bytes | None = None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    empty_is_null: bool = False
    is_json: bool = False


def separator(text: str) -> bytes:
    """A separator as it was typed, with the escapes that formats know."""
    given = unescape(text.encode("utf-8", "surrogateescape"))
    if not given:
        raise UsageError("the separator between key and value is empty", hint=r"--key-separator '\t'")
    return given


def header(text: str) -> tuple[str, bytes | None]:
    """A header as it was typed: name=value; a name alone has a null value."""
    name, equals, value = text.partition("=")
    if not name:
        raise UsageError(f"the header {text!r} has no name", hint="--header name=value")
    return name, value.encode("utf-8", "surrogateescape") if equals else None


def from_lines(lines: Iterable[bytes], form: Form) -> Iterator[Outgoing]:
    """A record for each line."""
    for number, line in enumerate(lines, 1):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        yield _from_json(content, form, number) if form.is_json else _from_line(content, form, number)


def from_files(paths: Iterable[Path], form: Form) -> Iterator[Outgoing]:
    """A record for each whole file."""
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}", hint=f"ls -l {path}") from error
        yield _made(form, form.key, content)


def _from_line(line: bytes, form: Form, number: int) -> Outgoing:
    if form.separator is None:
        return _made(form, form.key, line)
    key, found, value = line.partition(form.separator)
    if not found:
        raise UsageError(
            f"line {number} has no separator between key and value",
            hint="is --key-separator right? records before this line were sent",
        )
    return _made(form, key, value)


def _made(form: Form, key: bytes | None, value: bytes | None) -> Outgoing:
    if form.empty_is_null:
        key, value = key or None, value or None
    return Outgoing(form.topic, value, key, tuple(form.headers), form.partition)


def _from_json(line: bytes, form: Form, number: int) -> Outgoing:
    try:
        told = json.loads(line)
        if not isinstance(told, dict):
            raise ValueError("it is no object")
        unknown = told.keys() - _KNOWN
        if unknown:
            raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
        partition = told.get("partition") if form.partition is None else form.partition
        return Outgoing(
            form.topic,
            _content(told, "value"),
            _content(told, "key") if form.key is None else form.key,
            (*_headers(told.get("headers", [])), *form.headers),
            _whole(partition, "partition"),
            _whole(told.get("timestamp_ms"), "timestamp_ms"),
        )
    except (ValueError, Base64Error) as error:
        raise UsageError(
            f"line {number} is no record: {error}",
            hint='a record looks like {"key": "k", "value": "v"}; records before this line were sent',
        ) from error


def _content(told: Mapping[str, Any], name: str) -> bytes | None:
    encoded = told.get(f"{name}_base64")
    if encoded is not None:
        return b64decode(str(encoded), validate=True)
    content = told.get(name)
    if content is None:
        return None
    # An object in place of a text is what people mean by a record of JSON.
    return (content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)).encode()


def _headers(told: Any) -> Iterator[tuple[str, bytes | None]]:
    pairs = told.items() if isinstance(told, dict) else None
    if pairs is not None:
        yield from ((name, None if value is None else str(value).encode()) for name, value in pairs)
        return
    if not isinstance(told, list):
        raise ValueError("headers are a list or an object")
    for one in told:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise ValueError("a header has a name and a value")
        yield one["name"], _content(one, "value")


def _whole(value: Any, name: str) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ValueError(f"{name} is {value!r} and no number from 0 on")
    return value
