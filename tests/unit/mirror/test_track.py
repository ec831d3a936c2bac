"""How a partition stands, and what a surprise leaves behind for whoever begins it again."""

from __future__ import annotations

import pytest

from twinlog.mirror.steps import Chain, Copy, Fill
from twinlog.mirror.track import FIRST_PAUSE_S, LONGEST_PAUSE_S, Track
from twinlog.mirror.twin import Start, Twin
from twinlog.wire.recode import null_batch

LINK = Chain(1 << 62, 4)
NOW_MS = 1_800_000_000_000
NOT_ENOUGH_REPLICAS = 19


def begun(*lengths: int, gap: bool = False) -> tuple[Track, Twin]:
    """A track whose twin has batches of these lengths, or a gap, to send."""
    track, twin = Track("orders", 3), Twin(Start(100, LINK, 7))
    track.begin(twin)
    first = 100
    for length in lengths:
        batch = memoryview(null_batch(length, NOW_MS))
        twin.offer([Fill(first, length) if gap else Copy(batch, first, length, NOW_MS, None)])
        first += length
    return track, twin


def test_surprise_while_all_was_answered_nothing_is_waited_for() -> None:
    track, twin = begun(2)
    twin.take(NOW_MS)
    twin.answered(0, 100)
    track.surprise("the leader moved", 50.0)
    assert (track.twin, track.position, track.trouble) == (None, 102, "the leader moved")
    assert (track.settle_first, track.raise_epoch, track.last) == (False, False, (LINK, 9))
    assert track.is_clear and not track.is_orderly


def test_surprise_with_a_batch_in_flight_settles_first_and_keeps_its_epoch() -> None:
    track, twin = begun(2)
    twin.take(NOW_MS)
    assert not track.is_clear
    track.surprise("the connection broke", 50.0)
    assert (track.settle_first, track.raise_epoch, track.last) == (True, False, (LINK, 7))
    assert not track.is_clear


def test_surprise_with_markers_in_flight_settles_first_and_raises_the_epoch() -> None:
    track, twin = begun(2, gap=True)
    twin.take(NOW_MS)
    track.surprise("the connection broke", 50.0)
    assert (track.settle_first, track.raise_epoch) == (True, True)


def test_surprise_after_unclear_markers_settles_first_and_raises_the_epoch() -> None:
    track, twin = begun(2, gap=True)
    twin.take(NOW_MS)
    twin.filled(NOT_ENOUGH_REPLICAS, 101)
    assert not track.is_clear
    track.surprise("a gap", 50.0)
    assert (track.settle_first, track.raise_epoch) == (True, True)


def test_begun_again_it_waits_for_nothing() -> None:
    track, twin = begun(2, gap=True)
    twin.take(NOW_MS)
    track.surprise("the connection broke", 50.0)
    track.begin(Twin(Start(102, LINK, 0)))
    assert (track.settle_first, track.raise_epoch, track.orderly) == (False, False, False)
    assert track.position == 102


def test_begun_again_after_something_went_unanswered_it_is_clear_when_it_moves() -> None:
    track, twin = begun(2)
    twin.take(NOW_MS)
    track.surprise("the connection broke", 50.0)
    track.begin(Twin(Start(100, LINK, 7)))
    assert not track.is_clear and not track.is_orderly
    track.moves()
    assert track.is_clear and track.is_orderly


def test_never_begun_it_is_clear_and_not_orderly() -> None:
    track = Track("orders", 3, orderly=True)
    assert track.is_clear and not track.is_orderly


def test_refused_twin_is_not_handed_over_in_order() -> None:
    track, twin = begun(2)
    twin.take(NOW_MS)
    twin.answered(0, 5_000)
    assert track.is_clear and not track.is_orderly


def test_surprises_in_a_row_the_pause_grows_to_its_limit_and_starts_anew() -> None:
    track, pauses = Track("orders", 3), []
    for _ in range(10):
        track.surprise("no leader", 50.0)
        pauses.append(track.not_before - 50.0)
    assert pauses[:3] == pytest.approx([FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S])
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE_S)
    assert track.counts.surprises == 10
    track.moves()
    assert (track.trouble, track.pause_s) == ("", FIRST_PAUSE_S)


def test_stop_waits_longest_and_is_over_when_it_moves() -> None:
    track, _ = begun()
    track.surprise("too large", 50.0, stop=True)
    assert track.stopped and track.not_before == 50.0 + LONGEST_PAUSE_S
    track.moves()
    assert not track.stopped
