"""One thing that a rule found, by path: the loader knows where in the file that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twinlog.spec.document import Path


@dataclass(frozen=True)
class Finding:
    """What is wrong (or doubtful) at a path of the bus, and what to do about it."""

    path: Path
    what: str
    hint: str = ""
    severity: str = "error"  # or "warning"
    at_key: bool = False  # the name is meant, not what stands under it
    within: int | None = None  # of a text: the character that is meant, counted from 0


Findings = Iterator[Finding]


def warning(path: Path, what: str, hint: str = "", *, at_key: bool = False) -> Finding:
    """A finding that does not stop anything."""
    return Finding(path, what, hint, "warning", at_key)
