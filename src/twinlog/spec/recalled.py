"""A bus that was found right before, from a memo: without YAML, types and rules, which take long to import.

Asked by commands before the loader. What a file means depends on its bytes, on the variables that may
change it, and on the code that reads it; with any other of these there is no memo. What the loader
refused is not kept. Packing is pure: each part with what was given of it, by the names of its classes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlog import __version__, errors, memo
from twinlog.errors import Problem
from twinlog.spec import model, streams, units
from twinlog.spec.file import Loaded
from twinlog.spec.model import Bus
from twinlog.spec.parts import Part

if TYPE_CHECKING:
    from twinlog.spec.finding import Finding

MEMO = "file.memo"
PREFIXES = ("TWINLOG_", "KAFKA_")  # of variables that can change what the file says
_CLASSES: Mapping[str, type[Any]] = {
    name: kind
    for module in (model, streams, units)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Part | Enum | int | float)
}


def recall(
    file: Path, raw: bytes, env: Mapping[str, str], directory: Path, locate: Callable[[Finding], Problem]
) -> Loaded | None:
    """What the loader made of this file before; None if it must be asked."""
    kept = memo.recall(directory / MEMO, _depends_on(raw, env))
    if kept is None:
        return None
    bus = unpacked(kept["bus"])
    assert isinstance(bus, Bus)
    return Loaded(bus, file, tuple(Problem(**fields) for fields in kept["warnings"]), locate)


def keep(loaded: Loaded, raw: bytes, env: Mapping[str, str], directory: Path) -> None:
    """Keep what the loader made of a file, in the directory of its bus if there is one."""
    answer = {
        "bus": packed(loaded.bus),
        "warnings": [asdict(problem) for problem in loaded.warnings],
    }
    memo.keep(directory / MEMO, _depends_on(raw, env), answer)


def packed(value: Any) -> Any:
    """A value of the models in terms of JSON; `unpacked` gives it back with its types."""
    if isinstance(value, Part):
        return [type(value).__name__, {name: packed(item) for name, item in vars(value).items()}]
    if isinstance(value, Enum):
        return [type(value).__name__, value.value]
    if isinstance(value, Mapping):
        return ["", {name: packed(item) for name, item in value.items()}]
    if isinstance(value, tuple):
        return ["", [packed(item) for item in value]]
    if type(value).__name__ in _CLASSES:
        return [type(value).__name__, value]
    return value


def unpacked(raw: Any) -> Any:
    """The value of the models that was packed."""
    if not isinstance(raw, list):
        return raw
    name, inside = raw
    kind = _CLASSES[name] if name else None
    if isinstance(inside, list):
        return tuple(map(unpacked, inside))
    if not isinstance(inside, dict):
        assert kind is not None
        return kind(inside)
    fields = {key: unpacked(item) for key, item in inside.items()}
    return fields if kind is None else kind(**fields)


def _depends_on(raw: bytes, env: Mapping[str, str]) -> Iterator[str | bytes]:
    yield raw
    for name in sorted(env):
        if name.startswith(PREFIXES):
            yield f"{name}={env[name]}"
    yield from (__version__, sys.version)
    yield memo.code_in(Path(__file__).parent, Path(errors.__file__))
    library = find_spec("pydantic")
    if library is not None and library.origin is not None:
        # The directory of all libraries: it changes when one of them is replaced.
        yield str(Path(library.origin).parent.parent.stat().st_mtime_ns)
