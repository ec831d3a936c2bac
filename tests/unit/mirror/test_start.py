"""Where a twin may begin, what is begun together, and when a log end stands still."""

from __future__ import annotations

import pytest

from twinlog.errors import SiteError
from twinlog.mirror.compare import Seen
from twinlog.mirror.start import STILL_S, STUBBORN_S, Ends, groups, stands_still
from twinlog.mirror.tails import LOOKS, Tail, Verdict
from twinlog.mirror.track import Track

RECORD, OTHER = Seen(1, b"one"), Seen(1, b"two")


def test_settled_end_that_the_active_has_reached_is_fit() -> None:
    assert Ends(0, 100, 0, 100, is_lasting=True).unfit == ""


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        (Ends(0, 100, 0, 90, is_lasting=False), "offset 90 is not settled"),
        (Ends(0, 100, 0, 101, is_lasting=True), "ends at offset 101 and the active at 100"),
    ],
)
def test_end_that_may_change_or_is_ahead_is_not_fit(ends: Ends, why: str) -> None:
    assert why in ends.unfit


def test_log_end_stands_still_when_it_was_the_same_for_a_while() -> None:
    track = Track("orders", 0)
    assert not stands_still(track, 10, 100.0)
    assert 100.0 < track.not_before < 100.0 + STILL_S
    assert not stands_still(track, 10, 100.0 + STILL_S * 0.9)
    assert stands_still(track, 10, 100.0 + STILL_S)


def test_log_end_that_moved_has_to_stand_still_anew() -> None:
    track = Track("orders", 0)
    assert not stands_still(track, 10, 100.0)
    assert not stands_still(track, 11, 100.0 + STILL_S)
    assert not stands_still(track, 11, 100.0 + STILL_S * 1.9)
    assert stands_still(track, 11, 100.0 + STILL_S * 2)


def test_partitions_of_the_same_two_leaders_begin_together_and_stubborn_ones_alone() -> None:
    tracks = [Track("orders", number) for number in range(5)]
    leaders = {track.key: (1, 11 if track.partition < 2 else 12) for track in tracks}
    tracks[3].pause_s = STUBBORN_S
    together, alone = groups(tracks, leaders)
    assert together == [tracks[:2], [tracks[2], tracks[4]]]
    assert alone == [tracks[3]]


def test_look_at_a_tail_never_goes_behind_what_both_sites_have() -> None:
    tail = Tail(("orders", 0), least=90, end=100, compacted=False)
    assert [tail.first(look.back) for look in LOOKS] == [99, 90, 90, 90]
    assert not tail.is_empty
    assert Tail(("orders", 0), least=100, end=100, compacted=False).is_empty


def test_tail_is_judged_by_what_both_sites_show() -> None:
    tail = Tail(("orders", 0), least=0, end=100, compacted=False)
    assert tail.judge({99: RECORD}, {99: RECORD}) == Verdict()
    assert "offset 99" in tail.judge({99: OTHER}, {99: RECORD}).differs
    assert "offset 98" in tail.judge({98: OTHER, 99: RECORD}, {99: RECORD}).differs
    assert "gone" in tail.judge(SiteError("the leader is gone"), {99: RECORD}).trouble


def test_tail_of_a_compacted_topic_may_lack_what_the_cleaner_took() -> None:
    tail = Tail(("orders", 0), least=0, end=100, compacted=True)
    assert tail.judge({98: OTHER}, {99: RECORD}) == Verdict()
    assert tail.judge({99: OTHER}, {99: RECORD}).differs
