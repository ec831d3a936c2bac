"""Values as bytes: what Kafka's Java serializers write, for keys and values of any kind. Pure.

A `Topic` has one for its keys and one for its values. `Serializer` is a protocol: anything with these two
methods will do, and a schema registry's needs no more, because it is told the topic and which half of
the record it works on. None stands for itself in both directions: a record may lack key or value.
"""

from __future__ import annotations

import json
import struct
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeVar

from twinlog.errors import TwinlogError

T = TypeVar("T")


class Half(StrEnum):
    """Which half of a record."""

    KEY = "key"
    VALUE = "value"


class Spot(NamedTuple):
    """Where a value belongs."""

    topic: str
    half: Half

    def __str__(self) -> str:
        return f"{self.half} of topic '{self.topic}'"


class SerializationError(TwinlogError):
    """A value cannot be written as bytes, or bytes are not such a value."""


class Serializer(Protocol[T]):
    """Writes values of one type as bytes and reads them again."""

    def encode(self, value: T, spot: Spot) -> bytes:
        """The bytes of a value; raises SerializationError."""

    def decode(self, data: bytes, spot: Spot) -> T:
        """The value that bytes stand for; raises SerializationError."""


class _Bytes:
    def encode(self, value: bytes, _: Spot) -> bytes:
        return value

    def decode(self, data: bytes, _: Spot) -> bytes:
        return data


class _String:
    def encode(self, value: str, spot: Spot) -> bytes:
        try:
            return value.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise _no_way(value, "text", spot) from error

    def decode(self, data: bytes, spot: Spot) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise _not(data, "text in UTF-8", spot) from error


class _Json:
    def encode(self, value: Any, spot: Spot) -> bytes:
        try:
            # NaN and Infinity are no JSON, and other languages refuse them.
            return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise _no_way(value, "JSON", spot) from error

    def decode(self, data: bytes, spot: Spot) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise _not(data, "JSON", spot) from error


class _Number:
    """Numbers of a fixed size, big-endian, as java.nio.ByteBuffer has them."""

    def __init__(self, form: str, what: str) -> None:
        self._struct = struct.Struct(form)
        self._what = what

    def encode(self, value: Any, spot: Spot) -> bytes:
        try:
            return self._struct.pack(value)
        except (struct.error, OverflowError) as error:
            raise _no_way(value, self._what, spot) from error

    def decode(self, data: bytes, spot: Spot) -> Any:
        try:
            return self._struct.unpack(data)[0]
        except struct.error as error:
            raise _not(data, self._what, spot) from error


BYTES: Serializer[bytes] = _Bytes()
STRING: Serializer[str] = _String()
JSON: Serializer[Any] = _Json()
INT32: Serializer[int] = _Number(">i", "an integer of 32 bits")
INT64: Serializer[int] = _Number(">q", "an integer of 64 bits")
FLOAT64: Serializer[float] = _Number(">d", "a floating-point number of 64 bits")


def _no_way(value: object, what: str, spot: Spot) -> SerializationError:
    return SerializationError(
        f"a {type(value).__name__} cannot be written as {what}",
        where=str(spot),
        hint="is it what it should be?",
    )


def _not(data: bytes, what: str, spot: Spot) -> SerializationError:
    return SerializationError(
        f"{len(data)} bytes are not {what}",
        where=str(spot),
        hint="was the record written with another serializer?",
    )
