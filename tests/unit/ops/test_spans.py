"""Words, offsets, times and durations, and the offsets that they come to."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.ops.spans import Bounds, Kind, Where, parse, settle

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("beginning", Where(Kind.BEGINNING)),
        ("END", Where(Kind.END)),
        ("0", Where(Kind.OFFSET, 0)),
        ("1200", Where(Kind.OFFSET, 1200)),
        ("-5", Where(Kind.BEFORE_END, 5)),
        ("10m", Where(Kind.TIME, NOW_MS - 600_000)),
        ("500ms", Where(Kind.TIME, NOW_MS - 500)),
        ("@1700000000123", Where(Kind.TIME, 1_700_000_000_123)),
        ("2023-11-14T22:13:20Z", Where(Kind.TIME, NOW_MS)),
        ("2023-11-14T23:13:20+01:00", Where(Kind.TIME, NOW_MS)),
    ],
)
def test_a_place_is_read_in_every_form(text: str, where: Where) -> None:
    assert parse(text, now_ms=NOW_MS) == where


def test_a_time_without_a_zone_is_that_of_this_machine() -> None:
    assert parse("2026-01-31T12:00").number == int(datetime(2026, 1, 31, 12).timestamp() * 1000)


@pytest.mark.parametrize("text", ["", "start", "10", "1.5", "10 parsecs", "--5", "2026-13-01", "@x"])
def test_what_is_no_place_is_refused_with_a_hint_or_read_as_an_offset(text: str) -> None:
    if text.isdigit():
        assert parse(text).kind is Kind.OFFSET
        return
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.hint


@given(
    st.sampled_from(Kind),
    st.integers(0, 100),
    st.integers(0, 50),
    st.integers(0, 50),
    st.none() | st.integers(0, 200),
)
def test_every_place_comes_to_an_offset_that_the_partition_holds_or_to_its_end(
    kind: Kind, number: int, start: int, more: int, at_time: int | None
) -> None:
    held = Bounds(start, start + more)
    assert held.start <= settle(Where(kind, number), held, at_time) <= held.end


def test_a_time_after_the_last_record_comes_to_the_end() -> None:
    assert settle(Where(Kind.TIME, 5), Bounds(3, 9), None) == 9
    assert settle(Where(Kind.TIME, 5), Bounds(3, 9), 4) == 4
