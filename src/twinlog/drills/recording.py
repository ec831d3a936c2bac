"""The files of a history: one for each writer, one JSON object a line, in the order of time.

Whatever takes part in a drill appends with a `Recorder`; `load` merges the files when it is over. A line
is in the file before `add` returns, so that kill -9 of its writer loses none; a line that was cut off
is dropped, and only at a file's end. Any other line that cannot be read is an error.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from enum import StrEnum
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

from twinlog.drills.history import KINDS, Event, Happening, History, Operation, Outcome, Step
from twinlog.errors import TwinlogError

UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
_NAMES = {kind: name for name, kind in KINDS.items()}
_WORDS: dict[str, dict[str, StrEnum]] = {
    name: {word.value: word for word in words}
    for name, words in (("outcome", Outcome), ("step", Step), ("what", Happening))
}
_SHAPES = {
    kind: tuple(
        (one.name, one.default_factory() if one.default_factory is not MISSING else one.default)
        for one in fields(kind)
    )
    for kind in _NAMES
}


def encode(operation: Operation) -> str:
    """One line of a history, without its end; what has its default value is left out."""
    kind = type(operation)
    line: dict[str, Any] = {"op": _NAMES[kind]}
    for name, default in _SHAPES[kind]:
        value = getattr(operation, name)
        if value != default:
            line[name] = value
    return json.dumps(line, separators=(",", ":"), allow_nan=False)


def decode(line: str) -> Operation:
    """The operation that a line tells of; raises one of UNREADABLE if it tells of none."""
    told: dict[str, Any] = json.loads(line)
    kind = KINDS[told.pop("op")]
    for name, words in _WORDS.items():
        if name in told:
            told[name] = words[told[name]]
    return kind(**told)


class Recorder:
    """Appends to a new file of a history; threads of one process may share it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("x", encoding="ascii", buffering=1)  # a line at a time
        self._lock = threading.Lock()
        self._apart_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        """The time of day, which does not jump when somebody sets the clock."""
        return time.monotonic() + self._apart_s

    def add(self, operation: Operation) -> None:
        """Write one operation down."""
        line = encode(operation) + "\n"
        with self._lock:
            self._file.write(line)

    def event(self, what: Happening, text: str, **data: Any) -> None:
        """Write down what happens now."""
        self.add(Event(what, self.now_s(), text, data))

    def close(self) -> None:
        """Nothing more will come."""
        self._file.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def load(paths: Iterable[Path]) -> History:
    """Read the files of one drill and merge them."""
    return History.of(chain.from_iterable(_operations(path) for path in paths))


def _operations(path: Path) -> Iterator[Operation]:
    with path.open(encoding="ascii") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith("\n"):
                return  # its writer was killed in the middle of it
            try:
                yield decode(line)
            except UNREADABLE as problem:
                raise TwinlogError(
                    f"this is no line of a drill's history: {problem!r}",
                    where=f"{path}:{number}",
                    hint="is this file from another version, or did something else write to it?",
                ) from problem
