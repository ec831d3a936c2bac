"""Answers that are kept on disk, so that they need not be found again while nothing has changed.

For what takes a command longer to find than all the rest of its work. An answer (anything that JSON has)
is kept with a digest of itself and of everything that it depends on, which the caller names in full. It
counts only if that digest is right and nobody but this user can have written it; else it is as if there
were none. So it may be lost, damaged or old: that costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from twinlog.durable import write_secret

# Not waiting: a pipe in its place, to which nobody writes, is no memo either.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def recall(path: Path, depends_on: Iterable[str | bytes]) -> Any | None:
    """The answer that was kept for just this; None if there is none."""
    try:
        kept = _read_own(path)
        digest, newline, answer = kept.partition(b"\n")
        if not newline or digest != _digest(depends_on, answer):
            return None
        return json.loads(answer)
    except (OSError, ValueError):
        return None


def keep(path: Path, depends_on: Iterable[str | bytes], answer: Any) -> None:
    """Keep an answer, if its directory is there and nobody else's."""
    text = json.dumps(answer).encode()
    with suppress(OSError):  # a full disk, another user's bus: the answer is found again next time
        if _is_own(path.parent.stat()):
            write_secret(path, _digest(depends_on, text) + b"\n" + text)


def code_in(*places: Path) -> str:
    """What tells one state of some files of code, or of all those in a directory, from another."""
    entries: list[os.DirEntry[str] | Path] = []
    for place in places:
        with suppress(NotADirectoryError), os.scandir(place) as found:
            entries += found
            continue
        entries.append(place)
    marks = [(entry.name, entry.stat()) for entry in entries if not entry.name.startswith("__pycache__")]
    return repr(sorted((name, found.st_size, found.st_mtime_ns) for name, found in marks))


def _digest(depends_on: Iterable[str | bytes], answer: bytes) -> bytes:
    whole = hashlib.sha256()
    for part in (*depends_on, answer):
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "big"))  # where one ends must not be in doubt
        whole.update(data)
    return whole.hexdigest().encode()


def _read_own(path: Path) -> bytes:
    if not _is_own(path.parent.stat()):
        raise PermissionError
    with open(os.open(path, _FLAGS), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or not _is_own(found):
            raise PermissionError
        return file.read()


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS
