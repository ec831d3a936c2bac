"""Each record counts once: its result and its offset are written in one transaction of the same database.

Kafka keeps no offsets for this group. Where to go on is read from the database whenever partitions are
assigned, and a result is only written if the database still is where the record follows: of two
programs that both think they own a partition, one fails. It may be killed at any moment.

Run beside a bus that is up: python examples/offsets_in_sqlite.py twinlog.yaml USER TOPIC GROUP DATABASE
"""

from __future__ import annotations

import sqlite3
import sys

from twinlog import Consumer, Received

TABLES = """
CREATE TABLE IF NOT EXISTS results (customer TEXT, value TEXT);
CREATE TABLE IF NOT EXISTS offsets (
  topic TEXT, partition INTEGER, next INTEGER, PRIMARY KEY (topic, partition)
);
"""
Places = list[tuple[str, int]]


class Ledger:
    """The application's database."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, timeout=30.0, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript(TABLES)

    def begin(self, places: Places) -> dict[tuple[str, int], int]:
        """Where to go on in these partitions: at their beginning unless the database knows better."""
        return {place: self._next(place) for place in places}

    def add(self, records: list[Received]) -> None:
        """Write the results of records and where they end, all or nothing."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            for record in records:
                self._add(record)
            self._database.execute("COMMIT")
        except BaseException:
            self._database.execute("ROLLBACK")
            raise

    def _add(self, record: Received) -> None:
        place = (record.topic, record.partition)
        # Offsets may have gaps, so what follows is anything behind; what is not behind was counted.
        if record.offset < self._next(place):
            raise RuntimeError(f"{place} is at {self._next(place)} already: another program reads it")
        self._database.execute(
            "INSERT INTO results VALUES (?, ?)",
            ((record.key or b"").decode(), (record.value or b"").decode()),
        )
        self._database.execute(
            "INSERT INTO offsets VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next",
            (*place, record.offset + 1),
        )

    def _next(self, place: tuple[str, int]) -> int:
        found = self._database.execute("SELECT next FROM offsets WHERE topic = ? AND partition = ?", place)
        row = found.fetchone()
        return int(row[0]) if row is not None else 0


def main(file: str, user: str, topic: str, group: str, database: str) -> None:
    """Count records until somebody ends it."""
    ledger = Ledger(database)
    # A member with a name of its own is known again after a restart, and gets its partitions at once.
    settings = {"group.instance.id": f"{group}-1"}
    with Consumer.of_bus(file, user, group, [topic], begin=ledger.begin, settings=settings) as consumer:
        while True:
            records = consumer.poll_many(1.0, most=20)
            if records:
                ledger.add(records)
                consumer.settle()


if __name__ == "__main__":
    main(*sys.argv[1:6])
