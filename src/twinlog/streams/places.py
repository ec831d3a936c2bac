"""Where the jobs of a bus keep what is theirs: one directory for each, in the bus's directory.

Checkpoints can be elsewhere, on any file system that Hadoop reaches; tables, and lakes without a path
of their own, are on this machine.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from twinlog.sites.background import Background
from twinlog.sites.home import Home

DIRECTORY = "streams"
NAME = "streams"
START_TIMEOUT_S = 300.0  # Spark and all jobs, on a machine that does other things too


def directory(home: Home) -> Path:
    """Where all jobs keep their files."""
    return home.directory / DIRECTORY


def background(home: Home) -> Background:
    """The runner as a process of its own."""
    command = (sys.executable, "-m", "twinlog.streams.runner", str(home.file))
    return Background(NAME, directory(home), command, START_TIMEOUT_S)


@dataclass(frozen=True)
class Place:
    """The directory of one query; a job has one, and another for its dead letters."""

    directory: Path
    checkpoints: str  # a directory, or a path of another file system

    @property
    def table(self) -> Path:
        """The file of a table."""
        return self.directory / "table.sqlite"

    @property
    def lake(self) -> Path:
        """The Delta table of a lake whose path the file does not say."""
        return self.directory / "lake"


def place(home: Home, query: str) -> Place:
    """The place of one query."""
    own = directory(home) / query
    elsewhere = home.bus.pipeline.checkpoints
    if elsewhere is None:
        return Place(own, str(own))
    return Place(own, f"{elsewhere.rstrip('/')}/{home.bus.bus}/{query}")
