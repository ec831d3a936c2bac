"""The way up to where the active's log begins."""

from __future__ import annotations

import pytest

from twinlog.mirror.alignment import ENOUGH_BYTES, SHORT, piece
from twinlog.mirror.steps import MOST_FILLED, Chain, Copy, Fill
from twinlog.mirror.twin import Start, Twin
from twinlog.wire.batches import read
from twinlog.wire.recode import MOST_NULLS

NOW_MS = 1_800_000_000_000
FAR = 1_000_000_000


def new_twin(position: int = 0) -> Twin:
    return Twin(Start(position, Chain(1 << 62, 0), 0))


def answer(twin: Twin, step: Copy | Fill) -> None:
    if isinstance(step, Fill):
        twin.filled(0, step.end)
    else:
        twin.answered(0, step.first)


@pytest.mark.parametrize(("end", "compacted"), [(1, False), (SHORT, False), (FAR, True)])
def test_short_or_compacted_way_is_one_gap(end: int, compacted: bool) -> None:
    assert list(piece(new_twin(), end, compacted=compacted)) == [Fill(0, end)]


def test_long_gap_is_sent_in_pieces_that_a_broker_writes_quickly() -> None:
    twin = new_twin(5)
    twin.offer(piece(twin, 2 * MOST_FILLED + 6, compacted=True))
    taken = []
    while (step := twin.take(NOW_MS)) is not None:
        taken.append(step)
        assert twin.take(NOW_MS) is None  # one at a time
        answer(twin, step)
    assert taken == [Fill(5, MOST_FILLED), Fill(5 + MOST_FILLED, MOST_FILLED), Fill(5 + 2 * MOST_FILLED, 1)]
    assert twin.settled == twin.planned == 2 * MOST_FILLED + 6


def test_far_way_goes_by_large_batches_and_ends_where_it_should() -> None:
    twin, end = new_twin(), MOST_NULLS + SHORT + 1
    while twin.planned < end:
        twin.offer(piece(twin, end, compacted=False))
        step = twin.take(NOW_MS)
        assert isinstance(step, Copy)
        assert read(step.view).header.record_count == step.length
        answer(twin, step)
    assert twin.planned == end


def test_a_thousand_million_offsets_wait_in_bounded_memory() -> None:
    twin = new_twin()
    largest = one_batch = 0
    for _ in range(40):  # of about a thousand turns: each is like the other
        twin.offer(piece(twin, FAR, compacted=False))
        largest = max(largest, twin.queued_bytes)
        step = twin.take(NOW_MS)
        assert isinstance(step, Copy) and step.length == MOST_NULLS
        one_batch = len(step.view)
        answer(twin, step)
    assert largest < ENOUGH_BYTES + one_batch
    assert twin.settled == 40 * MOST_NULLS


def test_enough_waiting_nothing_more_is_made() -> None:
    twin = new_twin()
    twin.offer(piece(twin, FAR, compacted=False))
    assert list(piece(twin, FAR, compacted=False)) == []
