"""Secrets of a bus that others on this machine may read.

For `twinlog certs status`. Twinlog writes keys, passwords and client files for their owner only; a copy, a
restored backup or a hasty chmod may have opened them since. Nothing is changed here: whoever could read a
secret may have done so, and then it is to be replaced and not only closed.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEYS = frozenset([".key", ".pem"])


@dataclass(frozen=True)
class Exposed:
    """A secret that is not its owner's alone."""

    file: Path
    mode: str  # as chmod takes it


def exposed(directory: Path) -> list[Exposed]:
    """Those under the directory of a bus."""
    found = []
    for path in _secrets(directory):
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            continue  # replaced just now
        if mode & _BY_OTHERS:
            found.append(Exposed(path, f"{mode:o}"))
    return found


def _secrets(directory: Path) -> Iterator[Path]:
    for below in ("secrets", "clients"):
        yield from (path for path in sorted((directory / below).rglob("*")) if path.is_file())
    yield from (path for path in sorted((directory / "pki").rglob("*")) if path.suffix in _KEYS)
