"""The journal of a rolling restart, and who counts as following the quorum's leader."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from twinlog.sites.home import Home
from twinlog.sites.roll_journal import Progressed, RollJournal
from twinlog.sites.rolling import behind
from twinlog.spec.model import Bus, Site
from twinlog.wire.quorum import Quorum, Replica


def journal_in(directory: Path) -> RollJournal:
    home = Home(Bus(bus="rolled", sites={"a": Site()}), directory / "twinlog.yaml")
    journal = RollJournal(home, "a")
    journal.path.parent.mkdir(parents=True)
    return journal


def test_a_journal_keeps_what_is_left_and_is_gone_at_the_end(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    assert journal.read() is None
    journal.write(Progressed("2026-01-31T12:00:00", (1, 2, 901)))
    journal.note_done(2)
    found = journal.read()
    assert found is not None and found.left == (1, 901)
    journal.end()
    assert journal.read() is None


def test_a_journal_that_is_not_ours_counts_as_none(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.path.write_text("[]")
    assert journal.read() is None


def voting(*caught_up_ms: int | None) -> Quorum:
    voters = tuple(
        Replica(901 + number, UUID(int=number), 10, 0, None, time) for number, time in enumerate(caught_up_ms)
    )
    return Quorum(901, 1, 10, voters, (), {})


def test_a_voter_that_was_not_heard_of_lately_is_behind() -> None:
    assert behind(voting(100_000, 99_600, 94_000)) == {903}
    assert behind(voting(100_000, None)) == {902}


def test_where_the_leader_does_not_tell_its_time_nobody_is_called_behind() -> None:
    assert behind(voting(None, 1)) == frozenset()
