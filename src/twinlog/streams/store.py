"""Tables as jobs keep them: the latest value of each key, in a file of SQLite beside the checkpoint.

The job's driver writes a batch of changes and the batch's number in one transaction, so a batch that
Spark runs again changes nothing. `twinlog table` and joins read it at the same time (SQLite's
write-ahead log lets them). Of two changes of one key the one at the higher offset counts: a key has
one partition, as in a compacted topic. A run that begins anew begins with an empty table.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from twinlog.durable import make_private_directory
from twinlog.errors import SiteError

NOTHING = -1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (
    key TEXT PRIMARY KEY, value TEXT, partition INTEGER NOT NULL, offset INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS progress (
    one INTEGER PRIMARY KEY CHECK (one = 1), run TEXT NOT NULL, batch INTEGER NOT NULL
);
"""
_PUT = """
INSERT INTO rows (key, value, partition, offset) VALUES (?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, partition = excluded.partition, offset = excluded.offset
WHERE excluded.partition <> rows.partition OR excluded.offset > rows.offset
"""


class Change(NamedTuple):
    """The latest that a batch says of one key; no value deletes it."""

    key: str
    value: str | None  # JSON
    partition: int
    offset: int


class Entry(NamedTuple):
    """One row of a table."""

    key: str
    value: Any
    partition: int
    offset: int


class Store:
    """The file of one table."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Have an empty table, unless it is there."""
        make_private_directory(self.path.parent)
        with self._open(str(self.path)) as file:
            file.execute("PRAGMA journal_mode=WAL")
            file.executescript(_SCHEMA)
        self.path.chmod(0o600)

    def apply(self, run: str, batch: int, changes: Iterable[Change]) -> bool:
        """Take in the changes of a batch; False if it was taken in before."""
        with self._open(str(self.path)) as file, file:
            # Before anything is read: a driver that was thought dead may be about to write too.
            file.execute("BEGIN IMMEDIATE")
            last_run, last_batch = _progress(file)
            if last_run != run:
                file.execute("DELETE FROM rows")
            elif last_batch >= batch:
                return False
            file.executemany(_PUT, changes)
            file.execute("INSERT OR REPLACE INTO progress VALUES (1, ?, ?)", (run, batch))
        return True

    def get(self, key: str) -> Entry | None:
        """The row of a key, if there is one."""
        with self._reading() as file:
            found = file.execute("SELECT * FROM rows WHERE key = ? AND value IS NOT NULL", (key,)).fetchone()
        return _entry(found) if found is not None else None

    def scan(self, most: int | None = None) -> list[Entry]:
        """The rows by key, all or so many."""
        with self._reading() as file:
            limit = -1 if most is None else most
            query = "SELECT * FROM rows WHERE value IS NOT NULL ORDER BY key LIMIT ?"
            return [_entry(row) for row in file.execute(query, (limit,))]

    def texts(self) -> list[tuple[str, str]]:
        """All rows: keys, and values as JSON."""
        with self._reading() as file:
            return list(file.execute("SELECT key, value FROM rows WHERE value IS NOT NULL"))

    def version(self) -> tuple[str, int]:
        """The run and batch that were taken in last: as long as it stays, so do the rows."""
        with self._reading() as file:
            return _progress(file)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if not self.path.exists():
            raise SiteError("this table was never kept", where=str(self.path), hint="twinlog stream up")
        with self._open(f"file:{self.path}?mode=ro", uri=True) as file:
            yield file

    @contextmanager
    def _open(self, name: str, *, uri: bool = False) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(name, timeout=30.0, uri=uri)) as file:
            yield file


def _progress(file: sqlite3.Connection) -> tuple[str, int]:
    found = file.execute("SELECT run, batch FROM progress").fetchone()
    return ("", NOTHING) if found is None else (str(found[0]), int(found[1]))


def _entry(row: tuple[str, str, int, int]) -> Entry:
    key, value, partition, offset = row
    return Entry(key, json.loads(value), partition, offset)
