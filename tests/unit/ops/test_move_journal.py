"""A move that was written down is read again as it was."""

from __future__ import annotations

from pathlib import Path

from twinlog.ops.move_journal import Intended, MoveJournal
from twinlog.sites.home import Home
from twinlog.spec.model import Bus, Site

INTENDED = Intended(
    before={("t", 0): (1, 2), ("t.x", 10): (3,)},
    after={("t", 0): (3, 1), ("t.x", 10): (2,)},
    size_bytes={("t", 0): 7, ("t.x", 10): 0},
    rate_bytes=1_000_000,
)


def journal_in(directory: Path, site: str) -> MoveJournal:
    return MoveJournal(Home(Bus(bus="moved", sites={"a": Site()}), directory / "twinlog.yaml"), site)


def test_a_move_is_there_until_it_ends(tmp_path: Path) -> None:
    journal = journal_in(tmp_path, "a")
    assert journal.read() is None
    journal.write(INTENDED)
    found = journal.read()
    assert found == INTENDED
    assert [(change.place, change.adding) for change in found.changes] == [
        (("t", 0), (3,)),
        (("t.x", 10), (2,)),
    ]
    journal.end()
    assert journal.read() is None


def test_moves_of_two_sites_are_two(tmp_path: Path) -> None:
    journal_in(tmp_path, "a").write(INTENDED)
    assert journal_in(tmp_path, "b").read() is None
