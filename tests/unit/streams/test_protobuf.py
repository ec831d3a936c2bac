"""Protobuf messages become rows and rows become messages, as Google's compiler and library have it."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from grpc_tools import protoc  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import UsageError
from twinlog.streams import protobuf

TEXT = """\
syntax = "proto3";
package park;  // ours
import "google/protobuf/timestamp.proto";
message Reading {
  reserved 7, 8;
  int64 id = 1;
  optional string place = 2;  /* may be
  missing */
  double kw = 3;
  google.protobuf.Timestamp at = 4;
  uint64 big = 5 [deprecated = true];
  bool on = 6;
  sint32 turn = 9;
  bytes raw = 10;
  fixed32 code = 11;
}
"""
COLUMNS = {
    "id": "long",
    "place": "string",
    "kw": "double",
    "at": "timestamp",
    "big": "decimal(20,0)",
    "on": "boolean",
    "turn": "int",
    "raw": "binary",
    "code": "long",
}
ROWS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "place": st.none() | st.text(max_size=5),
        "kw": st.floats(allow_nan=False),
        "at": st.none() | st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
        "big": st.integers(0, 2**64 - 1).map(Decimal),
        "on": st.booleans(),
        "turn": st.integers(-(2**31), 2**31 - 1),
        "raw": st.binary(max_size=5),
        "code": st.integers(0, 2**32 - 1),
    }
)


@cache
def compiled() -> Any:
    """The class of the same message, by way of Google's compiler."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "reading.proto"
        file.write_text(TEXT)
        known = str(resources.files("grpc_tools") / "_proto")
        out = Path(directory) / "set"
        command = ["protoc", f"-I{directory}", f"-I{known}", f"--descriptor_set_out={out}", str(file)]
        assert protoc.main(command) == 0
        found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    times = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(times)
    pool.Add(times)
    for one in found.file:
        pool.Add(one)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("park.Reading"))


def test_message_gives_its_columns() -> None:
    assert protobuf.columns(TEXT) == COLUMNS


@given(ROWS)
def test_message_is_written_as_googles_library_reads_it(row: dict[str, Any]) -> None:
    read = compiled().FromString(protobuf.encode(TEXT, row))
    for name in ("id", "kw", "big", "on", "turn", "raw", "code"):
        assert getattr(read, name) == row[name]
    assert (read.place if read.HasField("place") else None) == row["place"]
    assert (read.at.ToDatetime(tzinfo=UTC) if read.HasField("at") else None) == row["at"]


@given(ROWS)
def test_row_is_read_again_as_it_was_written(row: dict[str, Any]) -> None:
    raw = compiled().FromString(protobuf.encode(TEXT, row)).SerializeToString()
    assert dict(zip(COLUMNS, protobuf.decode(TEXT, raw), strict=True)) == row


def test_fields_that_were_not_set_have_their_defaults_or_are_null() -> None:
    told = dict(zip(COLUMNS, protobuf.decode(TEXT, b""), strict=True))
    assert told["id"] == 0 and told["on"] is False and told["raw"] == b""
    assert told["place"] is None and told["at"] is None


def test_fields_that_the_schema_does_not_name_are_skipped() -> None:
    small = "message Reading { int64 id = 1; }"
    raw = protobuf.encode(TEXT, {"id": 7, "kw": 2.5, "place": "hill"})
    assert protobuf.decode(small, raw) == [7]


@pytest.mark.parametrize("raw", [b"\xff", b"\x12\x05ab", b"\x12\x01\xff"])
def test_bytes_that_are_no_message_are_an_error(raw: bytes) -> None:
    with pytest.raises(Exception, match=r"(?i)pars|utf|wire|trunc|decod"):
        protobuf.decode(TEXT, raw)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("int64 id = 1;", "not one Protobuf message"),
        ("message A { int64 id = 1; } message B { int64 id = 1; }", "not one Protobuf message"),
        ("message A { }", "no fields"),
        ("message A { int64 id; }", "no field: int64 id"),
        ("message A { repeated int64 id = 1; }", "id is repeated"),
        ("message A { Order order = 1; }", "order is a Order"),
        ("message A { int64 id = 1; int64 ID = 2; }", "the name id"),
        ("message A { int64 id = 1; int64 of = 1; }", "the number 1"),
        ("message A { int64 id = 19500; }", "no number of a field"),
        ("message A { int64 id = 0; }", "no number of a field"),
    ],
)
def test_text_that_is_no_message_of_single_values_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        protobuf.parse(text)
