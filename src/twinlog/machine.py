"""Where Twinlog keeps what belongs to the machine and not to a bus: the user's cache.

Jars, class-data archives and traceback files live here; all of it can be deleted at any time and
is made again when needed. `TWINLOG_CACHE` moves it.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """The cache of this user, made if it is missing."""
    named = os.environ.get("TWINLOG_CACHE")
    if named:
        directory = Path(named)
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        directory = Path(base) / "twinlog"
    directory.mkdir(parents=True, exist_ok=True)
    return directory
