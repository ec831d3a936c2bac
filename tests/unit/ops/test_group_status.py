"""How a group is doing, from windows of commits that are written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.ops.group_status import Status, judge, worst
from twinlog.wire.commits import Commit

SECOND = 1000
NOW = 100 * SECOND


def window(*offsets: int, every_ms: int = SECOND, last_ms: int = NOW - SECOND) -> list[Commit]:
    """Commits of these offsets, the last one a second ago."""
    count = len(offsets)
    return [Commit(last_ms - (count - 1 - place) * every_ms, offset) for place, offset in enumerate(offsets)]


def status(commits: list[Commit], lag: int, lag_then: int | None = 5, *, members: bool = True) -> Status:
    return judge(commits, lag_records=lag, lag_then=lag_then, now_ms=NOW, has_members=members)


@pytest.mark.parametrize(
    ("commits", "lag", "lag_then", "members", "expected"),
    [
        (window(1, 2, 3), 0, 5, True, Status.OK),
        (window(), 0, None, False, Status.OK),
        (window(1, 5, 9), 3, 5, True, Status.OK),  # less than before
        (window(1, 5, 9), 9, 5, True, Status.BEHIND),
        (window(4, 4, 4), 9, 5, True, Status.STALLED),
        (window(1, 5, 9, last_ms=NOW - 3 * SECOND), 3, 5, True, Status.STOPPED),
        (window(1, 5, 9), 3, 5, False, Status.STOPPED),  # nobody is there to read the rest
        (window(5, 9, 1), 0, 5, True, Status.REWOUND),
        (window(9), 3, None, True, Status.UNKNOWN),
        (window(1, 9), 3, None, True, Status.UNKNOWN),
    ],
)
def test_a_window_gives_its_status(
    commits: list[Commit], lag: int, lag_then: int | None, members: bool, expected: Status
) -> None:
    assert status(commits, lag, lag_then, members=members) is expected


@given(
    st.lists(st.integers(0, 1000), min_size=2, max_size=10).map(sorted),
    st.integers(0, 1000),
    st.integers(1, 3600),
)
def test_the_pace_of_commits_changes_nothing(offsets: list[int], lag: int, slower: int) -> None:
    """A window that is stretched, with the time since the last commit, is judged the same."""
    quick = judge(window(*offsets), lag_records=lag, lag_then=5, now_ms=NOW, has_members=True)
    slow = [Commit(NOW - (NOW - one.time_ms) * slower, one.offset) for one in window(*offsets)]
    assert judge(slow, lag_records=lag, lag_then=5, now_ms=NOW, has_members=True) is quick


@given(st.lists(st.integers(0, 1000), max_size=10).map(sorted), st.booleans())
def test_whoever_has_read_all_and_never_went_back_is_ok(offsets: list[int], members: bool) -> None:
    assert status(window(*offsets), 0, members=members) is Status.OK


@given(st.lists(st.sampled_from(Status)))
def test_a_group_is_as_well_as_its_worst_place(statuses: list[Status]) -> None:
    found = worst(statuses)
    assert found in (statuses or [Status.UNKNOWN])
    assert found.wants_attention == any(one.wants_attention for one in statuses)
