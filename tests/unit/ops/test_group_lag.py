"""What is known of a group's lag, and what is not: commits, assignments and ends written by hand."""

from __future__ import annotations

import pytest

from twinlog.ops.group_lag import PlaceLag, known_lags, summed
from twinlog.ops.group_status import Status
from twinlog.wire.groups import Group

GROUP = Group("stock", "Stable", "classic", "consumer")
FIRST, SECOND = ("orders", 0), ("orders", 1)


def place(index: int, lag: int | None, status: Status) -> PlaceLag:
    committed = None if lag is None else 10
    seconds = None if lag is None else float(lag)
    return PlaceLag("stock", "orders", index, committed, 20, lag, seconds, None, status)


def test_a_place_without_a_commit_has_no_lag_that_is_known() -> None:
    read = [("stock", FIRST), ("stock", SECOND)]
    lags = known_lags(read, {("stock", FIRST): 7}, {FIRST: 10, SECOND: 10}, {SECOND: 3})
    assert lags == {("stock", FIRST): 3}


def test_a_partition_without_records_has_nothing_to_be_behind_of() -> None:
    assert known_lags([("stock", FIRST)], {}, {FIRST: 10}, {FIRST: 10}) == {("stock", FIRST): 0}


@pytest.mark.parametrize("committed", [{}, {("stock", FIRST): 7}])
def test_a_partition_whose_end_nobody_knows_has_no_lag_that_is_known(
    committed: dict[tuple[str, tuple[str, int]], int],
) -> None:
    assert known_lags([("stock", FIRST)], committed, {}, {FIRST: 10}) == {}


def test_a_group_that_is_known_to_read_nothing_has_no_lag_that_is_known() -> None:
    found = summed(GROUP, ())
    assert (found.partitions, found.lag_records, found.lag_s) == (0, None, None)
    assert found.status is Status.UNKNOWN


@pytest.mark.parametrize("other", Status)
def test_one_unknown_place_leaves_the_sum_unknown_and_hides_nothing_worse(other: Status) -> None:
    found = summed(GROUP, (place(0, 5, other), place(1, None, Status.UNKNOWN)))
    assert (found.partitions, found.lag_records, found.lag_s) == (2, None, None)
    assert found.status is (Status.UNKNOWN if other is Status.OK else other)
