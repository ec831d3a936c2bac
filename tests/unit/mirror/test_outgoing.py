"""What goes into the next request of a writer."""

from __future__ import annotations

from tests.unit.mirror.test_intake import NOW_MS, begun, offer
from twinlog.mirror.outgoing import MOST_REQUEST_BYTES, Load, Outgoing
from twinlog.mirror.steps import Fill
from twinlog.mirror.twin import Twin


def gap(twin: Twin, length: int) -> None:
    twin.offer([Fill(twin.planned, length)])


def partitions(load: Load) -> tuple[list[int], list[int]]:
    """Whose batches and whose gaps go out."""
    return [track.partition for track, _, _ in load.batches], [track.partition for track, _, _ in load.gaps]


def test_each_partition_sends_one_batch_or_one_gap() -> None:
    outgoing = Outgoing()
    for number in range(3):
        track, twin = begun(number)
        if number == 1:
            gap(twin, 5)
        offer(twin, 100, 100)
        outgoing.add(track, twin)
    assert partitions(outgoing.take(NOW_MS)) == ([0, 2], [1])


def test_batch_that_must_wait_for_an_answer_goes_when_it_is_added_again() -> None:
    outgoing, (track, twin) = Outgoing(), begun()
    offer(twin, 100, 100)
    outgoing.add(track, twin)
    assert partitions(outgoing.take(NOW_MS)) == ([0], [])
    assert not outgoing.take(NOW_MS)  # the first batch of a twin goes alone
    assert not outgoing
    twin.answered(0, 0)
    outgoing.add(track, twin)
    assert partitions(outgoing.take(NOW_MS)) == ([0], [])


def test_request_is_full_those_that_were_left_out_come_first_next_time() -> None:
    outgoing = Outgoing()
    for number in range(3):
        track, twin = begun(number)
        offer(twin, MOST_REQUEST_BYTES // 2, MOST_REQUEST_BYTES // 2)
        outgoing.add(track, twin)
    assert partitions(outgoing.take(NOW_MS)) == ([0, 1], [])
    assert [track.partition for track, _ in outgoing.works] == [2, 0, 1]
    assert partitions(outgoing.take(NOW_MS)) == ([2], [])


def test_twin_that_was_removed_sends_nothing() -> None:
    outgoing, (track, twin) = Outgoing(), begun()
    offer(twin, 100)
    outgoing.add(track, twin)
    outgoing.remove(twin)
    outgoing.remove(twin)
    assert not outgoing
    assert not outgoing.take(NOW_MS)
