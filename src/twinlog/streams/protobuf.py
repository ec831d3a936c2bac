"""Protobuf messages as rows: a message's text read without a compiler, and bytes to values and back.

The message stands in the file (`message:`), as it does in a .proto file, in proto3: fields of single
values and times. Other fields need not be named: what a schema does not name is skipped, as Protobuf
has it. A field without `optional` that was not set has its default, 0 or an empty text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from twinlog.errors import UsageError

TIMESTAMP = "google.protobuf.Timestamp"
_TYPES = {
    "double": "double",
    "float": "float",
    "int32": "int",
    "int64": "long",
    "uint32": "long",
    "uint64": "decimal(20,0)",
    "sint32": "int",
    "sint64": "long",
    "fixed32": "long",
    "fixed64": "decimal(20,0)",
    "sfixed32": "int",
    "sfixed64": "long",
    "bool": "boolean",
    "string": "string",
    "bytes": "binary",
    TIMESTAMP: "timestamp",
}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ASIDE = re.compile(r'\s*(?:syntax\s*=\s*"proto3"|package\s+[\w.]+|import\s+"[^"]*"|option\s+[^;]*)\s*;')
_MESSAGE = re.compile(r"\s*message\s+([A-Za-z_]\w*)\s*\{([^{}]*)\}\s*")
_FIELD = re.compile(r"(?:(optional|repeated)\s+)?\.?([\w.]+)\s+([A-Za-z_]\w*)\s*=\s*(\d+)\s*(?:\[[^\]]*\])?")
_MOST = 2**29 - 1
_RESERVED = range(19000, 20000)


@dataclass(frozen=True)
class Field:
    """One field of a message."""

    name: str
    type: str
    number: int
    optional: bool


@dataclass(frozen=True)
class Message:
    """A message of single values."""

    name: str
    fields: tuple[Field, ...]


def parse(text: str) -> Message:
    """The one message of a text."""
    rest = _COMMENT.sub(" ", text)
    while aside := _ASIDE.match(rest):
        rest = rest[aside.end() :]
    match = _MESSAGE.fullmatch(rest)
    if match is None:
        raise UsageError(
            "this is not one Protobuf message", hint="message Order { int64 id = 1; string name = 2; }"
        )
    parts = [part.strip() for part in match[2].split(";")]
    fields = tuple(_field(part) for part in parts if part and not part.startswith(("reserved", "option ")))
    if not fields:
        raise UsageError("the message has no fields", hint="int64 id = 1;")
    _once("name", [one.name.lower() for one in fields])
    _once("number", [str(one.number) for one in fields])
    return Message(match[1], fields)


def _once(what: str, told: list[str]) -> None:
    for one in told:
        if told.count(one) > 1:
            raise UsageError(f"two fields have the {what} {one}", hint=f"give each a {what} of its own")


def _field(text: str) -> Field:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise UsageError(f"this is no field: {text}", hint="int64 id = 1;")
    label, kind, name, number = match[1], match[2], match[3], int(match[4])
    if label == "repeated" or kind not in _TYPES:
        what = f"{name} is repeated" if label == "repeated" else f"{name} is a {kind}"
        hint = "leave it out, it is skipped then; fields can be double, int32, int64, bool, string, …"
        raise UsageError(f"{what}, and a column is one value", hint=hint)
    if not 0 < number <= _MOST or number in _RESERVED:
        raise UsageError(f"{number} is no number of a field", hint="1, 2, 3, …")
    return Field(name, kind, number, label == "optional")


def columns(text: str) -> dict[str, str]:
    """The columns of a message, in its order."""
    return {field.name.lower(): _TYPES[field.type] for field in parse(text).fields}


def decode(text: str, raw: bytes) -> list[Any]:
    """The values of a message, in the order of its fields; an error of any kind if the bytes are none."""
    made = _class(text)()
    made.ParseFromString(raw)
    return [_read(made, field) for field in _parsed(text).fields]


def encode(text: str, row: Mapping[str, Any]) -> bytes:
    """A row, by columns, as a message; what is null is not set."""
    made = _class(text)()
    for field in _parsed(text).fields:
        value = row.get(field.name.lower())
        if value is None:
            continue
        if field.type == TIMESTAMP:  # Spark gives times of this machine's zone, without saying so
            getattr(made, field.name).FromDatetime(value.astimezone(UTC).replace(tzinfo=None))
        else:
            setattr(made, field.name, _number(value, field))
    return bytes(made.SerializeToString(deterministic=True))


_parsed = functools.lru_cache(maxsize=64)(parse)


def _read(made: Any, field: Field) -> Any:
    if (field.optional or field.type == TIMESTAMP) and not made.HasField(field.name):
        return None
    value = getattr(made, field.name)
    if field.type == TIMESTAMP:
        return value.ToDatetime(tzinfo=UTC)
    return _decimal(value) if _TYPES[field.type].startswith("decimal") else value


def _decimal(value: int) -> Any:
    from decimal import Decimal  # noqa: PLC0415

    return Decimal(value)


def _number(value: Any, field: Field) -> Any:
    kind = _TYPES[field.type]
    if kind in ("int", "long") or kind.startswith("decimal"):
        return int(value)
    if kind in ("double", "float"):
        return float(value)
    return bytes(value) if kind == "binary" else value


@functools.lru_cache(maxsize=64)
def _class(text: str) -> Any:
    """A class for a message, in a pool of its own."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2  # noqa: PLC0415

    message = _parsed(text)
    file = descriptor_pb2.FileDescriptorProto(
        name="record.proto", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    declared = file.message_type.add(name=message.name)
    for field in message.fields:
        own = declared.field.add(name=field.name, number=field.number, label="LABEL_OPTIONAL")
        if field.type == TIMESTAMP:
            own.type, own.type_name = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE, f".{TIMESTAMP}"
        else:
            own.type = descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{field.type.upper()}")
        if field.optional:  # as the compiler does it
            own.proto3_optional, own.oneof_index = True, len(declared.oneof_decl)
            declared.oneof_decl.add(name=f"_{field.name}")
    pool = descriptor_pool.DescriptorPool()
    times = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(times)
    pool.Add(times)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(message.name))
