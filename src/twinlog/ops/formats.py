r"""How a record is printed: kcat's format strings, byte for byte. Pure.

`%t %p %o %k %K %s %S %T %h %R %%` and the escapes `\n \t \r \xNN \NNN` mean what they mean in kcat 1.7.
Whoever has such a string in a script can keep it. A format is compiled once and gives bytes for each
record; what a record lacks is printed as nothing, its length as -1. In a literal piece kcat ends at
a zero byte, and so does this. Used by `twinlog consume`.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64encode
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from twinlog.errors import UsageError
from twinlog.wire.received import Received

Shown = Callable[[bytes | None], bytes]
Piece = Callable[[Received], bytes]
LINES = "%s\\n"
KEYED = "%k{separator}%s\\n"

_HEX = re.compile(rb"(?:0[xX])?([0-9a-fA-F]+)")
_OCTAL = re.compile(rb"(0[0-7]*)")
_DECIMAL = re.compile(rb"[1-9][0-9]*")
_NAMED = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_NUMBERS = {"byte": ">b", "short": ">h", "int": ">i", "long": ">q", "float": ">f", "double": ">d"}


class KeyType(StrEnum):
    """How the bytes of a key or a value are shown; numbers are as Java's serializers write them."""

    BYTES = "bytes"
    HEX = "hex"
    BYTE = "byte"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"


def shown_as(kind: KeyType) -> Shown:
    """What turns a key or a value into what is printed for it; what is no such number is printed in hex."""
    if kind is KeyType.BYTES:
        return _as_it_is
    if kind is KeyType.HEX:
        return lambda data: (data or b"").hex().encode()
    form = struct.Struct(_NUMBERS[kind.value])

    def number(data: bytes | None) -> bytes:
        if data is None:
            return b""
        if len(data) != form.size:
            return data.hex().encode()
        return repr(form.unpack(data)[0]).encode()

    return number


def _as_it_is(data: bytes | None) -> bytes:
    return data or b""


def compile_format(text: str, *, key: Shown = _as_it_is, value: Shown = _as_it_is) -> Piece:
    """The format as a function from a record to its bytes."""
    pieces: list[Piece] = []
    rest = text.encode("utf-8", "surrogateescape")
    while rest:
        literal, percent, rest = rest.partition(b"%")
        if literal:
            pieces.append(_constant(unescape(literal)))
        if percent:
            letter, rest = rest[:1], rest[1:]
            pieces.append(_field(letter.decode("latin-1"), text, key, value))
    return lambda record: b"".join([piece(record) for piece in pieces])


def unescape(literal: bytes) -> bytes:
    """A literal piece of a format, its escapes replaced; it ends at a zero byte."""
    out = bytearray()
    at = 0
    while at < len(literal):
        byte = literal[at : at + 1]
        following = literal[at + 1 : at + 2]
        if byte != b"\\" or not following:
            out += byte
            at += 1
        elif following == b"x" or following.isdigit():
            piece, at = _number(literal, at + 1)
            out += piece
        else:
            out += _NAMED.get(following, following)
            at += 2
    return bytes(out).partition(b"\0")[0]


def _number(literal: bytes, at: int) -> tuple[bytes, int]:
    """The byte that a numeric escape means, and the place behind it; an x without digits means nothing."""
    hexadecimal = literal[at : at + 1] == b"x"
    if hexadecimal:
        at += 1
    found = (_HEX if hexadecimal or literal[at : at + 2].lower() == b"0x" else _OCTAL).match(literal, at)
    if found is not None:
        return _char(int(found[1], 16 if found.re is _HEX else 8)), found.end()
    if hexadecimal:
        return b"", at
    decimal = _DECIMAL.match(literal, at)
    assert decimal is not None, "called at a digit"
    return _char(int(decimal[0])), decimal.end()


def _char(number: int) -> bytes:
    """A number as C keeps it: at most what a long holds, and of that the last byte."""
    return bytes((min(number, 2**64 - 1) & 0xFF,))


def _constant(literal: bytes) -> Piece:
    return lambda record: literal


def _field(letter: str, text: str, key: Shown, value: Shown) -> Piece:
    fields: dict[str, Piece] = {
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "k": lambda record: key(record.key),
        "K": lambda record: b"%d" % _length(record.key),
        "s": lambda record: value(record.value),
        "S": lambda record: b"%d" % _length(record.value),
        "R": lambda record: struct.pack(">i", _length(record.value)),
        "T": lambda record: b"%d" % record.timestamp_ms,
        "h": lambda record: headers(record.headers),
        "%": _constant(b"%"),
    }
    if letter not in fields:
        problem = f"%{letter} is no field" if letter else "it ends in a single %"
        raise UsageError(
            f"the format {text!r} cannot be used: {problem}",
            hint="fields are %t %p %o %k %K %s %S %R %T %h %%",
        )
    return fields[letter]


def headers(pairs: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Headers as kcat prints them: name=value, separated by commas; a value that is null as NULL."""
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in pairs)


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def as_json(record: Received, *, key: Shown | None = None, value: Shown | None = None) -> bytes:
    """A record as one line of JSON, which `twinlog produce --json` takes back as it is."""
    told: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **_told("key", record.key, key),
        **_told("value", record.value, value),
    }
    if record.headers:
        told["headers"] = [
            {"name": name, **_told("value", content, None)} for name, content in record.headers
        ]
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _told(name: str, data: bytes | None, shown: Shown | None) -> dict[str, str | None]:
    """A key or a value as text where it is text, else in base64 under another name."""
    if data is None:
        return {name: None}
    if shown is not None:
        return {name: shown(data).decode("utf-8", "replace")}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data).decode()}
