"""Values as bytes, and topics with their types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.client.serializers import (
    BYTES,
    FLOAT64,
    INT32,
    INT64,
    JSON,
    STRING,
    Half,
    SerializationError,
    Serializer,
    Spot,
)
from twinlog.client.topics import Topic
from twinlog.errors import UsageError
from twinlog.wire.driver import Outgoing
from twinlog.wire.received import Received

SPOT = Spot("orders", Half.VALUE)
VALUES: dict[str, tuple[Serializer[Any], st.SearchStrategy[Any]]] = {
    "bytes": (BYTES, st.binary()),
    "string": (STRING, st.text()),
    "int32": (INT32, st.integers(-(2**31), 2**31 - 1)),
    "int64": (INT64, st.integers(-(2**63), 2**63 - 1)),
    "float64": (FLOAT64, st.floats(allow_nan=False)),
    "json": (JSON, st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)),
}


@pytest.mark.parametrize("name", VALUES)
@given(st.data())
def test_what_was_written_is_read(name: str, data: st.DataObject) -> None:
    serializer, values = VALUES[name]
    value = data.draw(values)
    assert serializer.decode(serializer.encode(value, SPOT), SPOT) == value


@pytest.mark.parametrize(
    ("serializer", "value"),
    [
        (STRING, 5),
        (STRING, "\ud800"),
        (INT32, 2**31),
        (INT64, "5"),
        (INT64, 1.5),
        (FLOAT64, "x"),
        (JSON, {1, 2}),
        (JSON, float("nan")),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(serializer: Serializer[Any], value: Any) -> None:
    with pytest.raises(SerializationError, match="value of topic 'orders'") as caught:
        serializer.encode(value, SPOT)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("serializer", "data"),
    [
        (STRING, b"\xff"),
        (INT32, b"12345678"),
        (INT64, b"1234"),
        (FLOAT64, b""),
        (JSON, b"{"),
        (JSON, b"\xff"),
    ],
)
def test_bytes_that_are_no_such_value_are_refused(serializer: Serializer[Any], data: bytes) -> None:
    with pytest.raises(SerializationError, match="are not"):
        serializer.decode(data, SPOT)


def test_a_topic_makes_records_and_takes_them_apart() -> None:
    orders = Topic("orders", key=INT64, value=JSON)
    made = orders.outgoing({"id": 1}, 7, headers=(("h", b"1"),), partition=2, timestamp_ms=5)
    assert made == Outgoing("orders", b'{"id":1}', b"\0" * 7 + b"\7", (("h", b"1"),), 2, 5)
    came = Received("orders", 2, 9, made.key, made.value, (), 5)
    read = orders.read(came)
    assert (read.key, read.value, read.record) == (7, {"id": 1}, came)


def test_what_a_record_lacks_stays_lacking() -> None:
    orders = Topic("orders", key=STRING, value=JSON)
    assert orders.outgoing(None, "k") == Outgoing("orders", None, b"k")
    read = orders.read(Received("orders", 0, 0, None, None, (), 0))
    assert (read.key, read.value) == (None, None)


def test_a_record_of_another_topic_is_refused() -> None:
    with pytest.raises(UsageError, match="payments"):
        Topic("orders", STRING, STRING).read(Received("payments", 0, 0, None, None, (), 0))
