"""Where the jobs of a bus keep what is theirs: one directory for each, in the bus's directory.

A checkpoint and its `run` belong together: notes in the progress topic bear the run, so that a job
that begins anew is not taken for one that has written its batches already.
"""

from __future__ import annotations

import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

from twinlog.durable import make_private_directory, write_text
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

    @property
    def checkpoint(self) -> Path:
        """What Spark keeps."""
        return self.directory / "checkpoint"

    @property
    def table(self) -> Path:
        """The file of a table."""
        return self.directory / "table.sqlite"

    @property
    def lake(self) -> Path:
        """The Delta table of a lake whose path the file does not say."""
        return self.directory / "lake"

    def run(self) -> str:
        """What tells this checkpoint from one that was here before."""
        file = self.directory / "run"
        if not file.exists() or not self.checkpoint.exists():
            make_private_directory(self.directory)
            write_text(file, uuid.uuid4().hex[:12])
        return file.read_text().strip()


def place(home: Home, query: str) -> Place:
    """The place of one query."""
    return Place(directory(home) / query)
