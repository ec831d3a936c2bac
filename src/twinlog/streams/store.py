"""Tables as jobs keep them: the latest value of each key, in a file of SQLite beside the checkpoint.

The job's driver writes a batch of changes and the batch's number in one transaction, so a batch that
Spark runs again changes nothing. `twinlog table` and joins read it at the same time (SQLite's
write-ahead log lets them). Of two changes of one key the one at the higher offset counts: a key has
one partition, as in a compacted topic. A run that begins anew begins with an empty table.

For the last batches it is kept what each has replaced, so that a table can go back to a batch when a
failover has lost records.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from twinlog.durable import make_private_directory
from twinlog.errors import SiteError
from twinlog.streams.rewinding import KEPT

NOTHING = -1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (
    key TEXT PRIMARY KEY, value TEXT, partition INTEGER NOT NULL, offset INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS replaced (
    key TEXT, batch INTEGER, value TEXT, partition INTEGER, offset INTEGER, PRIMARY KEY (key, batch)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS replaced_in ON replaced (batch);
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
# A key that was not there is replaced too: without a partition.
_REMEMBER = """
INSERT OR IGNORE INTO replaced (key, batch, value, partition, offset)
SELECT ?, ?, old.value, old.partition, old.offset FROM (SELECT 1) LEFT JOIN rows AS old ON old.key = ?
"""
_FIRST_REPLACED = """
SELECT key, value, partition, offset FROM replaced AS one
WHERE batch > ?1 AND batch = (SELECT min(batch) FROM replaced WHERE key = one.key AND batch > ?1)
"""
_TOGETHER = 1000


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
                file.execute("DELETE FROM replaced")
            elif last_batch >= batch:
                return False
            rest = iter(changes)
            while some := list(islice(rest, _TOGETHER)):
                file.executemany(_REMEMBER, [(one.key, batch, one.key) for one in some])
                file.executemany(_PUT, some)
            file.execute("DELETE FROM replaced WHERE batch <= ?", (batch - KEPT,))
            file.execute("INSERT OR REPLACE INTO progress VALUES (1, ?, ?)", (run, batch))
        return True

    def go_back(self, run: str, batch: int) -> None:
        """Be what the table was behind a batch, as a new run; done twice it changes nothing more."""
        with self._open(str(self.path)) as file, file:
            file.execute("BEGIN IMMEDIATE")
            for key, *before in file.execute(_FIRST_REPLACED, (batch,)).fetchall():
                file.execute("DELETE FROM rows WHERE key = ?", (key,))
                if before[1] is not None:
                    file.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", (key, *before))
            file.execute("DELETE FROM replaced WHERE batch > ?", (batch,))
            file.execute("INSERT OR REPLACE INTO progress VALUES (1, ?, ?)", (run, batch))

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
