"""What Spark's Python workers do with single records: Avro, Protobuf, and functions of the user's.

Objects of these classes are sent to the workers. What cannot be understood, or makes a function fail, is
told as a reason beside the values, so that it becomes a dead letter and not the end of a job.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from twinlog.errors import UsageError
from twinlog.spec.streams import Format
from twinlog.streams import avro, protobuf

_CODECS: Mapping[Format, Any] = {Format.AVRO: avro, Format.PROTOBUF: protobuf}
_NAMES = {Format.AVRO: "Avro record", Format.PROTOBUF: "Protobuf message"}
_MOST_CHARACTERS = 200
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Decoder:
    """Bytes to the values of all columns, and the reason why there are none."""

    format: Format
    schema: str
    width: int

    def __call__(self, raw: bytes | bytearray | None) -> tuple[Any, ...] | None:
        """The values with no reason, or nothing with one."""
        if raw is None:
            return None
        try:
            return (*_CODECS[self.format].decode(self.schema, bytes(raw)), None)
        except Exception as error:  # of any kind: the bytes are anybody's
            return (*([None] * self.width), f"the value is no such {_NAMES[self.format]}: {_said(error)}")


@dataclass(frozen=True)
class Encoder:
    """The columns of a row to bytes."""

    format: Format
    schema: str

    def __call__(self, row: Any) -> bytes:
        """The record; a row that does not fit ends the job, as it would with a producer of one's own."""
        encoded: bytes = _CODECS[self.format].encode(self.schema, row.asDict())
        return encoded


@dataclass(frozen=True)
class Caller:
    """A row to the rows that a function makes of it, and the reason why it made none."""

    function: str  # module:name
    gives: tuple[tuple[str, str], ...]
    paths: tuple[str, ...] = ()  # where the module may lie, beside where Python looks

    def __call__(self, row: Any) -> tuple[list[tuple[Any, ...]], str | None]:
        """All rows, or none and a reason."""
        if row is None:  # of a record that was not understood
            return [], None
        try:
            made = find(self.function, self.paths)(row.asDict())
            return [shaped(one, self.gives) for one in _rows(made)], None
        except Exception as error:  # of any kind: the function is anybody's
            return [], f"{self.function} failed: {_said(error)}"


@functools.lru_cache(maxsize=64)
def find(function: str, paths: tuple[str, ...] = ()) -> Callable[[dict[str, Any]], Any]:
    """The function that `module:name` means."""
    module, _, name = function.partition(":")
    for path in paths:
        if path not in sys.path:
            sys.path.append(path)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"there is no function {function}: {error}", hint="is the module beside the file, or installed?"
        ) from error
    if not callable(found):
        raise UsageError(f"{function} is no function", hint="def name(row): return {…}")
    return found  # type: ignore[no-any-return]


def shaped(row: Row, gives: Iterable[tuple[str, str]]) -> tuple[Any, ...]:
    """A row that a function gave, as the columns that the file says."""
    told = dict(gives)
    if unknown := set(row) - set(told):
        raise ValueError(f"it gave {', '.join(sorted(unknown))}, which the file does not have")
    return tuple(_as(kind, row.get(name)) for name, kind in told.items())


def _as(kind: str, value: Any) -> Any:
    """A value of a declared type: Spark makes null of what is none, and says nothing."""
    if value is None:
        return None
    if kind in ("int", "long"):
        if int(value) != value:
            raise ValueError(f"{value!r} is no {kind}")
        return int(value)
    if kind in ("float", "double"):
        return float(value)
    if kind.startswith("decimal"):
        return Decimal(str(value))
    wanted = {"string": str, "boolean": bool, "binary": bytes | bytearray}.get(kind)
    if wanted is not None and not isinstance(value, wanted):
        raise ValueError(f"{value!r} is no {kind}")
    return value


def _rows(made: Any) -> list[Row]:
    if made is None:
        return []
    return [made] if isinstance(made, Mapping) else list(made)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_MOST_CHARACTERS]
