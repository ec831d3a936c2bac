"""The cutter against its rules, said once more in another way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.ordering.cutter import Batch, Cutter
from twinlog.ordering.support import BatchSize

_LIMITS = BatchSize(max_message_count=3, absolute_max_bytes=1000, preferred_max_bytes=100)


def _cut(sizes: list[int], limits: BatchSize) -> tuple[list[list[int]], list[int]]:
    """The batches of messages of these sizes, by their places, and what is left."""
    cutter, batches = Cutter(), list[Batch]()
    for place, size in enumerate(sizes):
        cut = cutter.ordered(place.to_bytes(2, "big"), size, limits)
        assert cut.pending == cutter.is_pending
        batches += cut.batches
    return [_places(batch) for batch in batches], _places(cutter.cut())


def _places(batch: Batch) -> list[int]:
    return [int.from_bytes(message, "big") for message in batch]


def test_count_is_reached_cuts_with_the_last_message() -> None:
    assert _cut([1, 1, 1, 1], _LIMITS) == ([[0, 1, 2]], [3])


def test_message_overflows_preferred_size_goes_into_the_next_batch() -> None:
    assert _cut([60, 41], _LIMITS) == ([[0]], [1])


def test_preferred_size_is_met_exactly_waits_for_more() -> None:
    assert _cut([60, 40], _LIMITS) == ([], [0, 1])
    assert _cut([100], _LIMITS) == ([], [0])


def test_message_over_preferred_size_is_alone_behind_what_waited() -> None:
    assert _cut([1, 101, 1], _LIMITS) == ([[0], [1]], [2])
    assert _cut([101], _LIMITS) == ([[0]], [])


def test_count_of_one_cuts_every_message() -> None:
    assert _cut([1, 101, 1], BatchSize(1, 1000, 100)) == ([[0], [1], [2]], [])


def test_cut_without_messages_gives_nothing() -> None:
    assert Cutter().cut() == []


@given(
    st.lists(st.integers(0, 40), max_size=60),
    st.builds(BatchSize, st.integers(1, 6), st.just(100), st.integers(1, 30)),
)
def test_any_messages_are_cut_within_limits_and_in_order(sizes: list[int], limits: BatchSize) -> None:
    batches, left = _cut(sizes, limits)
    assert [place for batch in [*batches, left] for place in batch] == list(range(len(sizes)))
    for batch, following in zip([*batches, left], [*batches[1:], left, []], strict=False):
        total = sum(sizes[place] for place in batch)
        assert len(batch) <= limits.max_message_count
        assert total <= limits.preferred_max_bytes or len(batch) == 1
        if batch is left or not following:
            continue
        # No batch is cut before it must be.
        is_full = len(batch) == limits.max_message_count or total > limits.preferred_max_bytes
        first_after = sizes[following[0]]
        assert is_full or total + first_after > limits.preferred_max_bytes


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 6), st.integers(1, 30))
def test_one_message_completes_two_batches_at_most(sizes: list[int], count: int, preferred: int) -> None:
    limits, cutter = BatchSize(count, 100, preferred), Cutter()
    for size in sizes:
        cut = cutter.ordered(b"", size, limits)
        assert len(cut.batches) <= 2
        assert not (len(cut.batches) == 2 and cut.pending)
        assert cut.batches or cut.pending
