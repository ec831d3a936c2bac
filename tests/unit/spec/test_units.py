"""Sizes, rates and durations: what is read, what is refused, and that writing and reading agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.spec.units import (
    MAX_COUNT,
    Bytes,
    Duration,
    UnitError,
    format_bytes,
    format_duration,
    format_rate,
    parse_bytes,
    parse_duration,
    parse_rate,
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("15MB", 15_000_000),
        ("15MiB", 15_728_640),
        ("1.5 GB", 1_500_000_000),
        ("512kb", 512_000),
        ("64KiB", 65_536),
        ("15728640", 15_728_640),
        ("0", 0),
        ("7B", 7),
    ],
)
def test_size_with_unit_is_bytes(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7d", 604_800), ("12h", 43_200), ("30m", 1800), ("10s", 10), ("500ms", 0.5), ("0", 0)],
)
def test_duration_with_unit_is_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("15M", "15MB"),
        ("15 Gi", "15 GiB"),
        ("15bytes", "15B"),
        ("15MB/s", "15MB"),
        ("1.0001kB", "a number and a unit"),
        ("-1MB", "a number and a unit"),
        ("many", "a number and a unit"),
        ("99999999999TB", "a number and a unit"),
    ],
)
def test_wrong_size_names_the_nearest_right_one(text: str, hint: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_bytes(text)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [("10", "10s"), ("10 minutes", "10m"), ("2 hr", "2h"), ("1.5", "1.5s"), ("-1s", "7d"), ("soon", "7d")],
)
def test_wrong_duration_names_the_nearest_right_one(text: str, hint: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_duration(text)
    assert hint in caught.value.hint


@pytest.mark.parametrize(("text", "hint"), [("5MB", "5MB/s"), ("5MB/min", "5MB/s"), ("5MX/s", "5MB/s")])
def test_wrong_rate_names_the_nearest_right_one(text: str, hint: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_rate(text)
    assert hint in caught.value.hint


@pytest.mark.parametrize("value", [True, None, [], {}, 1.5, -1, 10**100])
def test_size_of_another_kind_is_refused(value: object) -> None:
    with pytest.raises(UnitError):
        Bytes.parse(value)


@pytest.mark.parametrize(
    ("count", "text"),
    [(15_000_000, "15MB"), (15_728_640, "15MiB"), (1001, "1001B"), (0, "0B"), (1024, "1KiB")],
)
def test_size_is_written_in_its_shortest_exact_form(count: int, text: str) -> None:
    assert format_bytes(count) == text


@given(st.integers(0, MAX_COUNT))
def test_size_survives_writing_and_reading(count: int) -> None:
    assert parse_bytes(format_bytes(count)) == count
    assert parse_rate(format_rate(count)) == count


@given(st.integers(0, 10**12).map(lambda milliseconds: milliseconds / 1000))
def test_duration_survives_writing_and_reading(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.floats(1e-6, 1e9))
def test_fraction_of_a_millisecond_survives_writing_and_reading(seconds: float) -> None:
    assert Duration.parse(format_duration(seconds)) == seconds


@given(st.text())
def test_arbitrary_text_is_read_or_refused_with_a_hint(text: str) -> None:
    for parse in (parse_bytes, parse_rate, parse_duration):
        try:
            assert parse(text) >= 0
        except UnitError as error:
            assert error.what and error.hint
