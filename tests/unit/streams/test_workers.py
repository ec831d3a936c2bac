"""What single records become in Spark's workers: values or a reason, never an exception."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.spec.streams import Format
from twinlog.streams import protobuf, workers
from twinlog.streams.workers import Caller, Decoder, Encoder

MESSAGE = "message R { int64 id = 1; string place = 2; }"
GIVES = (("id", "long"), ("kw", "double"), ("place", "string"))
MODULE = """\
def clean(row):
    if row["kw"] is None:
        return None
    return {"id": row["id"], "kw": row["kw"] * 2, "place": row["place"].strip()}

def split(row):
    for place in row["place"].split():
        yield {"id": row["id"], "kw": 1, "place": place}

def wrong(row):
    return {"other": 1}

number = 7
"""


class Row(dict[str, Any]):
    """As Spark gives one."""

    def asDict(self) -> dict[str, Any]:
        return dict(self)


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    name = f"cleaning_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    yield name, str(tmp_path)
    sys.path.remove(str(tmp_path)) if str(tmp_path) in sys.path else None
    sys.modules.pop(name, None)


def call(beside: tuple[str, ...], function: str, **row: Any) -> tuple[list[tuple[Any, ...]], str | None]:
    caller = Caller(f"{beside[0]}:{function}", GIVES, beside[1:])
    return pickle.loads(pickle.dumps(caller))(Row(row))  # type: ignore[no-any-return]


def test_function_makes_a_row_of_a_row(beside: tuple[str, ...]) -> None:
    assert call(beside, "clean", id=1, kw=2, place=" hill ") == ([(1, 4.0, "hill")], None)


def test_function_that_gives_nothing_leaves_the_row_out(beside: tuple[str, ...]) -> None:
    assert call(beside, "clean", id=1, kw=None, place="") == ([], None)


def test_function_may_give_several_rows(beside: tuple[str, ...]) -> None:
    assert call(beside, "split", id=1, place="a b") == ([(1, 1.0, "a"), (1, 1.0, "b")], None)


def test_record_that_was_not_understood_is_not_given_to_a_function(beside: tuple[str, ...]) -> None:
    assert Caller(f"{beside[0]}:clean", GIVES, beside[1:])(None) == ([], None)


def test_function_that_fails_gives_a_reason(beside: tuple[str, ...]) -> None:
    rows, reason = call(beside, "clean", id=1, kw=2, place=None)
    assert rows == [] and reason is not None and "failed: AttributeError" in reason


def test_row_with_a_column_that_the_file_lacks_gives_a_reason(beside: tuple[str, ...]) -> None:
    rows, reason = call(beside, "wrong")
    assert rows == [] and reason is not None and "gave other" in reason


@pytest.mark.parametrize("function", ["missing", "number"])
def test_function_that_is_not_there_is_said_to_be_missing(beside: tuple[str, ...], function: str) -> None:
    with pytest.raises(UsageError, match=function):
        workers.find(f"{beside[0]}:{function}", beside[1:])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("double", 3, 3.0),
        ("int", 3.0, 3),
        ("decimal(5,2)", "1.25", Decimal("1.25")),
        ("string", None, None),
        ("binary", b"x", b"x"),
    ],
)
def test_value_becomes_one_of_the_declared_type(kind: str, value: Any, expected: Any) -> None:
    (found,) = workers.shaped({"a": value}, [("a", kind)])
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"), [("int", 1.5), ("string", 7), ("boolean", "yes"), ("binary", "x")]
)
def test_value_of_another_type_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"is no {kind}"):
        workers.shaped({"a": value}, [("a", kind)])


def test_value_that_is_null_stays_null() -> None:
    assert Decoder(Format.PROTOBUF, MESSAGE, 2)(None) is None


@given(st.binary(max_size=30))
def test_any_bytes_give_values_or_a_reason(raw: bytes) -> None:
    told = Decoder(Format.PROTOBUF, MESSAGE, 2)(bytearray(raw))
    assert told is not None and len(told) == 3
    if told[2] is not None:
        assert told[:2] == (None, None) and "no such Protobuf message" in told[2]


def test_row_is_encoded_by_the_columns_that_the_schema_names() -> None:
    raw = Encoder(Format.PROTOBUF, MESSAGE)(Row(id=7, place="hill"))
    assert protobuf.decode(MESSAGE, raw) == [7, "hill"]
