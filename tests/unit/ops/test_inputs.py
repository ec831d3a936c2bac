"""Records from lines, files and JSON lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.ops import inputs
from twinlog.ops.inputs import Form


def test_a_line_is_a_value_without_its_end() -> None:
    made = list(inputs.from_lines([b"one\n", b"two\r\n", b"three"], Form("orders")))
    assert [record.value for record in made] == [b"one", b"two", b"three"]
    assert all(record.key is None for record in made)


def test_a_separator_splits_key_and_value_once() -> None:
    (made,) = inputs.from_lines([b"k:v:w\n"], Form("orders", separator=b":"))
    assert (made.key, made.value) == (b"k", b"v:w")


def test_a_line_without_the_separator_is_named_by_its_number() -> None:
    lines = inputs.from_lines([b"k:v\n", b"alone\n"], Form("orders", separator=b":"))
    assert next(lines).key == b"k"
    with pytest.raises(UsageError, match="line 2 has no separator"):
        next(lines)


def test_empty_is_null_makes_tombstones() -> None:
    (made,) = inputs.from_lines([b"k:\n"], Form("orders", separator=b":", empty_is_null=True))
    assert (made.key, made.value) == (b"k", None)


def test_an_object_in_place_of_a_text_is_written_as_json() -> None:
    (made,) = inputs.from_lines(
        [b'{"key": 7, "value": {"a": 1}, "headers": {"h": "x"}}'], Form("t", is_json=True)
    )
    assert (made.key, made.value, tuple(made.headers)) == (b"7", b'{"a": 1}', (("h", b"x"),))


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'"text"',
        b'{"valeu": "x"}',
        b'{"value_base64": "!"}',
        b'{"partition": -1}',
        b'{"timestamp_ms": "now"}',
        b'{"headers": 7}',
        b'{"headers": [{}]}',
        b"\xff",
    ],
)
def test_a_line_that_is_no_record_is_refused_with_its_number(line: bytes) -> None:
    with pytest.raises(UsageError, match="line 1 is no record"):
        list(inputs.from_lines([line], Form("t", is_json=True)))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_a_usage_error(line: bytes) -> None:
    form = Form("t", is_json=True)
    try:
        assert len(list(inputs.from_lines([line], form))) == 1
    except UsageError as error:
        assert error.hint


def test_a_whole_file_is_one_record(tmp_path: Path) -> None:
    path = tmp_path / "whole"
    path.write_bytes(b"a\nb\n")
    (made,) = inputs.from_files([path], Form("t", key=b"k"))
    assert (made.key, made.value) == (b"k", b"a\nb\n")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        list(inputs.from_files([tmp_path / "none"], Form("t")))


def test_a_header_has_a_name_and_may_have_a_value() -> None:
    assert inputs.header("a=b=c") == ("a", b"b=c")
    assert inputs.header("a") == ("a", None)
    with pytest.raises(UsageError):
        inputs.header("=b")
