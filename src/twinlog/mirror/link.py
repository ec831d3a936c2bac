"""Which link a bus has: its two ends, its names, its process and its files."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

from twinlog.durable import write_text
from twinlog.errors import PrerequisiteError, UsageError
from twinlog.sites.background import Background
from twinlog.sites.home import Home
from twinlog.spec.model import Role

DIRECTORY = "link"
NAME = "mirror"
PAUSED = "paused"
HELD = "held"
START_TIMEOUT_S = 120.0  # Spark and its workers on a machine that does other things too
FIRST_LINK_ID = 1 << 62  # no allocator of producer ids comes near


def directory(home: Home) -> Path:
    """Where the link keeps its files."""
    return home.directory / DIRECTORY


def background(home: Home) -> Background:
    """The mirror as a process of its own."""
    command = (sys.executable, "-m", "twinlog.pipeline.mirror", str(home.file))
    return Background(NAME, directory(home), command, START_TIMEOUT_S)


def pause_flag(home: Home) -> Path:
    """A file that is there while the link is paused."""
    return directory(home) / PAUSED


def hold(home: Home, why: str) -> None:
    """Have the mirror give all its rights back and wait, because roles change."""
    directory(home).mkdir(parents=True, exist_ok=True)
    write_text(directory(home) / HELD, why + "\n")


def release(home: Home) -> None:
    """Let the mirror begin again, in the direction that roles have then."""
    (directory(home) / HELD).unlink(missing_ok=True)


def held(home: Home) -> str:
    """Why the mirror is to wait; empty when it is not."""
    try:
        return (directory(home) / HELD).read_text().strip() or "no reason given"
    except FileNotFoundError:
        return ""


def sides(home: Home) -> tuple[str, str]:
    """The active site and the standby."""
    names = list(home.bus.sites)
    standbys = [name for name in names if home.role(name) is Role.STANDBY]
    if len(names) != 2 or len(standbys) != 1:
        raise UsageError(
            f"a link needs two sites, one active and one standby; the file has {len(names)}",
            where=str(home.file),
            hint="twinlog plan",
        )
    (standby,) = standbys
    return next(name for name in names if name != standby), standby


def link_id(active: str) -> int:
    """The link's first producer id in the direction from this site; the next 65,535 are its own too."""
    return FIRST_LINK_ID + (crc32(active.encode()) << 16)


def need_spark() -> None:
    """Say what is missing where Spark is not installed."""
    if find_spec("pyspark") is None:
        raise PrerequisiteError(
            "the mirror runs on Spark, and pyspark is not installed",
            hint=f"{sys.executable} -m pip install 'twinlog[spark]'",
        )
