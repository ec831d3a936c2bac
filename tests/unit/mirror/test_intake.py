"""Which partitions are fetched, and which wait because they have enough in memory."""

from __future__ import annotations

from twinlog.mirror.intake import ENOUGH_BYTES, FULL_MS, IDLE_MS, LEAST_BYTES, MOST_BYTES, Intake
from twinlog.mirror.steps import Chain, Copy
from twinlog.mirror.track import Track
from twinlog.mirror.twin import Start, Twin

LINK = Chain(1 << 62, 0)
ONE = Chain(101, 0)
NOW_MS = 1_800_000_000_000


def begun(partition: int = 0) -> tuple[Track, Twin]:
    """A track that has just begun."""
    track, twin = Track("orders", partition), Twin(Start(0, LINK, 0))
    track.begin(twin)
    return track, twin


def offer(twin: Twin, *sizes: int) -> None:
    """Let batches of these sizes wait for a twin; nothing looks into them."""
    for size in sizes:
        first = twin.planned
        twin.offer([Copy(memoryview(bytearray(size)), first, 1, NOW_MS, ONE, first)])


def send(twin: Twin) -> None:
    """Send and hear of one batch."""
    step = twin.take(NOW_MS)
    assert step is not None
    twin.answered(0, step.first)


def test_partition_with_enough_is_full_until_half_of_it_was_sent() -> None:
    intake, (track, twin) = Intake(), begun()
    intake.add(track, twin)
    offer(twin, *[ENOUGH_BYTES // 4] * 3)
    assert not intake.is_full(track.key)
    offer(twin, ENOUGH_BYTES // 4)
    assert intake.is_full(track.key)
    for _ in range(2):
        send(twin)
        assert intake.drained() == []
    send(twin)
    assert intake.drained() == [(track, twin)]
    assert intake.drained() == []


def test_one_full_partition_fetches_of_the_others_wait_only_briefly() -> None:
    intake = Intake()
    hot, idle = begun(0), begun(1)
    for work in (hot, idle):
        intake.add(*work)
    assert intake.patience_ms == IDLE_MS
    offer(hot[1], ENOUGH_BYTES)
    assert intake.is_full(hot[0].key)
    assert intake.patience_ms == FULL_MS
    send(hot[1])
    assert intake.drained() == [hot]
    assert intake.patience_ms == IDLE_MS


def test_many_partitions_less_is_enough_for_each() -> None:
    intake = Intake()
    works = [begun(number) for number in range(1000)]
    for work in works:
        intake.add(*work)
    track, twin = works[0]
    offer(twin, LEAST_BYTES - 1)
    assert not intake.is_full(track.key)
    offer(twin, 1)
    assert intake.is_full(track.key)


def test_full_partition_whose_twin_was_thrown_away_is_named_at_once() -> None:
    intake, (track, twin) = Intake(), begun()
    intake.add(track, twin)
    offer(twin, ENOUGH_BYTES)
    assert intake.is_full(track.key)
    track.surprise("the leader moved", 0.0)
    assert intake.drained() == [(track, twin)]


def test_full_partition_with_a_new_twin_is_not_full() -> None:
    intake, (track, twin) = Intake(), begun()
    intake.add(track, twin)
    offer(twin, ENOUGH_BYTES)
    assert intake.is_full(track.key)
    track.begin(Twin(Start(0, LINK, 0)))
    assert track.twin is not None
    intake.add(track, track.twin)
    assert intake.patience_ms == IDLE_MS
    assert list(intake) == [(track, track.twin)]


def test_all_together_have_too_much_there_is_no_room_until_one_is_given_up() -> None:
    intake = Intake()
    works = [begun(number) for number in range(2)]
    for track, twin in works:
        intake.add(track, twin)
        offer(twin, MOST_BYTES // 2)
    assert not intake.has_room
    works[0][0].surprise("the leader moved", 0.0)
    assert intake.has_room
