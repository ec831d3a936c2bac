"""Records that wait for the standby, and those that do not."""

from __future__ import annotations

import pytest

from twinlog.errors import SiteError
from twinlog.ordering import intake
from twinlog.ordering.intake import Intake
from twinlog.wire.tail import Entry


class Log:
    """Records in portions, as a reader gets them, and a standby that lacks the last ones."""

    def __init__(self, *portions: list[int]) -> None:
        self.portions = list(portions)
        self.mark = 0
        self.is_silent = False
        self.waited: list[float] = []

    def read(self, most: int, timeout_s: float) -> list[Entry]:
        return [(offset, b"value") for offset in self.portions.pop(0)] if self.portions else []

    def covered(self) -> int:
        if self.is_silent:
            raise SiteError("no answer")
        return self.mark


def _offsets(entries: list[Entry]) -> list[int]:
    return [offset for offset, _ in entries]


def test_every_record_counts_gives_what_came() -> None:
    log = Log([3, 4], [7])
    taking = Intake(3, log.read, log.waited.append)
    assert _offsets(taking.take(1.0)) == [3, 4]
    assert (_offsets(taking.take(1.0)), taking.next_offset) == ([7], 8)


def test_reading_begins_again_gives_no_record_twice() -> None:
    log = Log([3, 4], [3, 4, 5], [4])
    taking = Intake(3, log.read, log.waited.append)
    assert [_offsets(taking.take(1.0)) for _ in range(3)] == [[3, 4], [5], []]


def test_standby_lacks_records_holds_them_back_in_order() -> None:
    log = Log([3, 4], [5], [6])
    taking = Intake(3, log.read, log.waited.append, log.covered)
    log.mark = 4
    assert _offsets(taking.take(1.0)) == [3]
    assert _offsets(taking.take(1.0)) == []
    log.mark = 7
    assert _offsets(taking.take(1.0)) == [4, 5, 6]


def test_standby_was_seen_further_on_is_not_asked_again() -> None:
    log = Log([3], [4])
    taking = Intake(3, log.read, log.waited.append, log.covered)
    log.mark = 5
    assert _offsets(taking.take(1.0)) == [3]
    log.is_silent = True
    assert (_offsets(taking.take(1.0)), taking.trouble) == ([4], None)


def test_standby_is_silent_holds_back_and_says_why() -> None:
    log = Log([3])
    taking = Intake(3, log.read, log.waited.append, log.covered)
    log.is_silent = True
    assert taking.take(1.0) == []
    assert "no answer" in str(taking.trouble)
    log.is_silent, log.mark = False, 4
    assert (_offsets(taking.take(1.0)), taking.trouble) == ([3], None)


def test_much_is_held_reads_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST_HELD_BYTES", 5)
    log = Log([3], [4])
    taking = Intake(3, log.read, log.waited.append, log.covered)
    taking.take(1.0)
    taking.take(1.0)
    assert (taking.next_offset, len(log.waited)) == (4, 1)
    log.mark = 9
    assert _offsets(taking.take(1.0)) == [3]
    assert _offsets(taking.take(1.0)) == [4]
