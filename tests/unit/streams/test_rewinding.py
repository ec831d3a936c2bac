"""A query goes back to the last batch of which a failover lost nothing, and never further."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from twinlog.streams import rewinding
from twinlog.streams.rewinding import History

OFFSETS = st.dictionaries(
    st.sampled_from(["orders", "payments"]),
    st.dictionaries(st.integers(0, 2), st.integers(0, 20), min_size=1, max_size=3),
    max_size=2,
)
ENTRY = (
    'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"orders":{"0":5,"1":7}}\n-\n{"orders":{"0":6},"other":{"0":1}}'
)


def growing(ends: list[int], done: int, written: list[int]) -> History:
    """Batches that end at these offsets; the first so many were committed."""
    return History(
        {batch: {"orders": {0: end}} for batch, end in enumerate(ends)},
        frozenset(range(done)),
        {batch: {"paid": {0: end}} for batch, end in enumerate(written)},
    )


def test_query_whose_batches_are_all_below_the_points_stays() -> None:
    history = growing([5, 9], 2, [])
    assert rewinding.last_kept(history, {"orders": {0: 9}}, writes=False) == 1


def test_batch_that_read_a_lost_record_is_done_again() -> None:
    history = growing([5, 9, 12], 3, [])
    assert rewinding.last_kept(history, {"orders": {0: 8}}, writes=False) == 0


def test_batch_whose_result_was_lost_is_done_again_though_its_records_are_there() -> None:
    history = growing([5, 9, 12], 3, [1, 2, 3])
    points = {"orders": {0: 12}, "paid": {0: 2}}
    assert rewinding.last_kept(history, points, writes=True) == 1
    assert rewinding.last_kept(history, points, writes=False) == 2


def test_batch_whose_end_is_not_known_does_not_count_as_written() -> None:
    history = growing([5, 9], 2, [1])
    assert rewinding.last_kept(history, {"paid": {0: 9}}, writes=True) == 0


def test_batch_that_was_not_committed_is_done_again() -> None:
    assert rewinding.last_kept(growing([5, 9], 1, []), {"orders": {0: 20}}, writes=False) == 0


def test_nothing_is_kept_if_all_batches_read_lost_records() -> None:
    assert rewinding.last_kept(growing([5, 9], 2, []), {"orders": {0: 4}}, writes=False) is None


@given(OFFSETS, OFFSETS)
def test_lowered_offsets_are_below_the_points_and_not_below_what_was_kept(
    offsets: dict[str, dict[int, int]], points: dict[str, dict[int, int]]
) -> None:
    lowered = rewinding.lowered(offsets, points)
    assert rewinding.within(lowered, points)
    assert rewinding.within(offsets, points) == (lowered == offsets)
    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            point = points.get(topic, {}).get(partition)
            assert lowered[topic][partition] in (offset, point)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.integers(0, 30), st.integers(0, 8))
def test_batch_that_is_kept_is_the_last_that_can_be(steps: list[int], point: int, done: int) -> None:
    ends = [sum(steps[: number + 1]) for number in range(len(steps))]
    done = min(done, len(ends))
    found = rewinding.last_kept(growing(ends, done, []), {"orders": {0: point}}, writes=False)
    below = [batch for batch in range(done) if ends[batch] <= point]
    assert found == (max(below) if below else None)


def test_entry_of_sparks_log_is_read_and_lowered_without_a_change_of_anything_else() -> None:
    assert rewinding.read_offsets(ENTRY) == {"orders": {0: 6, 1: 7}, "other": {0: 1}}
    lowered = rewinding.lower_entry(ENTRY, {"orders": {0: 5, 1: 2}})
    assert lowered.splitlines()[:2] == ENTRY.splitlines()[:2]
    assert lowered.splitlines()[3] == "-"
    assert json.loads(lowered.splitlines()[4]) == {"orders": {"0": 5}, "other": {"0": 1}}
    assert rewinding.read_offsets(lowered) == {"orders": {0: 5, 1: 2}, "other": {0: 1}}


def test_files_of_state_tell_their_version() -> None:
    told = {
        "checkpoint/state/0/1/7.zip": 7,
        "checkpoint/state/0/1/left-keyToNumValues/12.changelog": 12,
        "checkpoint/state/0/1/7_3f2c9a.zip": 7,
        "checkpoint/state/0/1/8.delta.crc": 8,
        "checkpoint/state/0/1/SSTs/000012-3f2c.sst": None,
        "checkpoint/state/0/_metadata/metadata": None,
    }
    assert {path: rewinding.state_version(path) for path in told} == told


@given(st.dictionaries(st.integers(0, 9), OFFSETS, max_size=4))
def test_ends_are_read_as_they_were_written(ends: dict[int, dict[str, dict[int, int]]]) -> None:
    assert rewinding.decode_ends(rewinding.encode_ends(ends)) == ends


def test_ends_that_cannot_be_read_are_none() -> None:
    assert rewinding.decode_ends(None) == rewinding.decode_ends("{half") == {}
