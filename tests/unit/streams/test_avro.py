"""Avro records become rows and rows become records, as fastavro understands them."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.streams import avro

SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "placeName", "type": ["null", "string"], "default": None},
        {"name": "kw", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["ON", "OFF"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
TEXT = json.dumps(SCHEMA)
COLUMNS = {
    "id": "long",
    "placename": "string",
    "kw": "double",
    "at": "timestamp",
    "day": "date",
    "price": "decimal(9,2)",
    "state": "string",
    "tags": "string",
}
ROWS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "placeName": st.none() | st.text(max_size=5),
        "kw": st.floats(allow_nan=False),
        "at": st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(
            lambda one: one.replace(microsecond=one.microsecond // 1000 * 1000, tzinfo=UTC)
        ),
        "day": st.dates(date(1990, 1, 1), date(2100, 1, 1)),
        "price": st.decimals(-9999, 9999, places=2),
        "state": st.sampled_from(["ON", "OFF"]),
        "tags": st.lists(st.text(max_size=3), max_size=3),
    }
)


def test_schema_gives_its_columns() -> None:
    assert avro.columns(TEXT) == COLUMNS


@given(ROWS)
def test_record_is_read_as_fastavro_wrote_it(row: dict[str, Any]) -> None:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(SCHEMA), row)
    found = dict(zip(COLUMNS, avro.decode(TEXT, stream.getvalue()), strict=True))
    assert json.loads(found.pop("tags")) == row["tags"]
    expected = {name.lower(): value for name, value in row.items() if name != "tags"}
    assert found == expected


@given(ROWS)
def test_row_is_written_as_fastavro_reads_it(row: dict[str, Any]) -> None:
    given_row = {name.lower(): value for name, value in row.items()}
    raw = avro.encode(TEXT, given_row)
    assert fastavro.schemaless_reader(io.BytesIO(raw), fastavro.parse_schema(SCHEMA), None) == row


@given(st.binary(max_size=40))
def test_bytes_that_are_no_record_are_an_error_and_never_half_a_row(raw: bytes) -> None:
    simple = json.dumps({"type": "record", "name": "R", "fields": [{"name": "on", "type": "boolean"}]})
    if raw in (b"\0", b"\1"):
        assert avro.decode(simple, raw) == [raw == b"\1"]
    elif len(raw) != 1:
        with pytest.raises(Exception, match=r"."):
            avro.decode(simple, raw)


def test_bytes_behind_a_record_are_an_error() -> None:
    simple = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})
    with pytest.raises(ValueError, match="stand behind it"):
        avro.decode(simple, avro.encode(simple, {"id": 7}) + b"\0")


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ("{half", "no JSON"),
        ('"long"', "no Avro record"),
        ('{"type": "record", "name": "R", "fields": []}', "no Avro record"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a"}]}', "a name and a type"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "lng"}]}', "not known: lng"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}', "several"),
        (
            '{"type": "record", "name": "R",'
            ' "fields": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}]}',
            "two fields",
        ),
    ],
)
def test_schema_that_gives_no_columns_is_refused(schema: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        avro.columns(schema)


def test_decimal_for_a_double_is_a_double() -> None:
    simple = json.dumps({"type": "record", "name": "R", "fields": [{"name": "kw", "type": "double"}]})
    assert avro.decode(simple, avro.encode(simple, {"kw": Decimal("1.5")})) == [1.5]
