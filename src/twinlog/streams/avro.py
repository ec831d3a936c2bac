"""Avro records as rows: which columns a schema gives, and bytes to values and back.

The schema stands in the file (`record:`). Its fields are columns, by their names in lower case. A field
that is no single value (an array, a map, another record) is a text in JSON, which SQL can take apart.
What columns there are is known without fastavro, which only Spark's workers import.
"""

from __future__ import annotations

import base64
import functools
import io
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from twinlog.errors import UsageError

_TYPES = {
    "string": "string",
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "fixed": "binary",
    "enum": "string",
}
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "uuid": "string",
}
_NESTED = ("record", "array", "map")
_MOST_DIGITS = 38


def columns(text: str) -> dict[str, str]:
    """The columns of a record, in its order."""
    found: dict[str, str] = {}
    for field in _fields(text):
        name = str(field["name"]).lower()
        if name in found:
            raise UsageError(f"two fields are called {name}", hint="columns do not know upper case")
        found[name] = _column(field["type"], str(field["name"]))
    return found


def decode(text: str, raw: bytes) -> list[Any]:
    """The values of a record, in the order of its fields; an error of any kind if the bytes are none."""
    import fastavro  # noqa: PLC0415  not there where only plans are made

    stream = io.BytesIO(raw)
    told: Any = fastavro.schemaless_reader(stream, _parsed(text), None)
    if stream.tell() != len(raw):
        raise ValueError(f"{len(raw) - stream.tell()} bytes stand behind it")
    kinds = columns(text)
    return [_read(told[field["name"]], kinds[str(field["name"]).lower()]) for field in _fields(text)]


def encode(text: str, row: Mapping[str, Any]) -> bytes:
    """A row, by columns, as a record."""
    import fastavro  # noqa: PLC0415

    stream = io.BytesIO()
    told = {field["name"]: _written(row.get(str(field["name"]).lower()), field) for field in _fields(text)}
    fastavro.schemaless_writer(stream, _parsed(text), told, strict=True)
    return stream.getvalue()


def _fields(text: str) -> list[dict[str, Any]]:
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise UsageError(f"this is no JSON: {error}", hint="the text of an .avsc file") from None
    if not isinstance(schema, dict) or schema.get("type") != "record" or not schema.get("fields"):
        raise UsageError(
            "this is no Avro record", hint="{type: record, name: Order, fields: [{name: id, type: long}]}"
        )
    fields: list[dict[str, Any]] = schema["fields"]
    for field in fields:
        if not isinstance(field, dict) or "name" not in field or "type" not in field:
            raise UsageError("a field has a name and a type", hint="{name: id, type: long}")
    return fields


def _column(kind: Any, name: str) -> str:
    if isinstance(kind, list):
        options = [one for one in kind if one != "null"]
        if len(options) != 1:
            raise UsageError(f"{name} may be one of several", hint="[null, TYPE] is understood")
        return _column(options[0], name)
    described = kind if isinstance(kind, dict) else {"type": kind}
    logical = described.get("logicalType")
    if logical == "decimal":
        return f"decimal({min(int(described['precision']), _MOST_DIGITS)},{int(described.get('scale', 0))})"
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    inner = described["type"]
    if isinstance(inner, dict | list):
        return _column(inner, name)
    if inner in _NESTED:
        return "string"
    if inner not in _TYPES:
        raise UsageError(
            f"{name} has a type that is not known: {inner}", hint=f"it can be {', '.join(_TYPES)}"
        )
    return _TYPES[inner]


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    import fastavro  # noqa: PLC0415

    return fastavro.parse_schema(json.loads(text))


def _read(value: Any, kind: str) -> Any:
    if kind == "string" and not isinstance(value, str | None):
        return json.dumps(value, default=_plain) if isinstance(value, dict | list) else str(value)
    return value


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, date) else str(value)


def _written(value: Any, field: Mapping[str, Any]) -> Any:
    if isinstance(value, datetime):  # Spark gives times of this machine's zone, without saying so
        return value.astimezone(UTC)
    if isinstance(value, Decimal):
        kind = _column(field["type"], str(field["name"]))
        return value if kind.startswith("decimal") else float(value)
    return bytes(value) if isinstance(value, bytearray) else value
