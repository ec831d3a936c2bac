"""What a job on the bus's records is, as the user declared it under `streams:`.

A part of the file like the others in `model`, which includes it. A job reads topics (or tables that
other jobs keep), says in SQL what comes of their records, and writes that to a topic. Whether the SQL
can run without an end is the business of the package `streams`; here are names, types and defaults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from twinlog.spec.parts import STRICT, First, Part, TopicName, Whole, limited
from twinlog.spec.units import Duration

JOB_NAME = r"^[a-z][a-z0-9-]{0,39}$"
COLUMN_NAME = r"^[a-z][a-z0-9_]{0,63}$"
FIELD_TYPE = r"^(string|boolean|int|long|float|double|date|timestamp|binary|decimal\(\d{1,2},\d{1,2}\))$"
FUNCTION_NAME = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$"  # module:name

JobName = Annotated[str, limited(pattern=JOB_NAME)]
ColumnName = Annotated[str, limited(pattern=COLUMN_NAME)]
FieldType = Annotated[str, limited(pattern=FIELD_TYPE)]


def _format_alone(value: Any) -> Any:
    """`value: string` is short for `value: {format: string}`."""
    return {"format": value} if isinstance(value, str) else value


def _as_text(value: Any) -> Any:
    """A schema that is written as YAML is JSON too."""
    return json.dumps(value) if isinstance(value, dict) else value


class Kind(StrEnum):
    """What a job does with records."""

    STREAM = "stream"  # each record by itself: filter, map, route, re-key, mask
    TABLE = "table"  # the latest value of each key; null deletes
    AGGREGATE = "aggregate"  # one row for each group
    JOIN = "join"  # two streams within a time, or a stream with a table
    LAKE = "lake"  # every record as a row of a Delta table


class Guarantee(StrEnum):
    """How often what comes of a record is in the output when something failed in between."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


class Emit(StrEnum):
    """When an aggregate writes a row."""

    CHANGES = "changes"  # each time it changes
    FINAL = "final"  # once, when the watermark has passed its window


class Format(StrEnum):
    """How a key or value stands in a record."""

    BYTES = "bytes"
    STRING = "string"  # UTF-8
    INT = "int"  # four bytes, as Java's IntegerSerializer writes them
    LONG = "long"  # eight bytes
    JSON = "json"  # an object with the declared fields
    AVRO = "avro"  # a record of the declared schema, without anything around it
    PROTOBUF = "protobuf"  # a message of the declared schema


Schema = Annotated[str, First(_as_text)]


class Encoding(Part):
    """How the keys or values of a topic that is read are to be understood."""

    format: Format = Format.BYTES
    fields: Mapping[ColumnName, FieldType] = {}  # of an object
    record: Schema | None = None  # Avro's schema, as JSON
    message: str | None = None  # Protobuf's, as in a .proto file


class Output(Part):
    """How the keys or values of a topic that is written are made: of one column, or of all of them."""

    format: Format = Format.JSON
    column: str | None = None
    record: Schema | None = None  # as in Encoding
    message: str | None = None


Read = Annotated[Encoding, First(_format_alone)]
Written = Annotated[Output, First(_format_alone)]


class Source(Part):
    """One input of a job: a topic, or a table that another job keeps."""

    topic: TopicName | None = None
    table: str | None = None
    everywhere: Annotated[bool, STRICT] = False  # a global table: every task has all of it
    key: Read = Encoding()
    value: Read = Encoding()
    time: str | None = None  # the column with the time of the event; else the record's own time
    watermark: Duration | None = None  # so late a record may be


class Sink(Part):
    """The topic that a job writes."""

    topic: TopicName
    key: Written | None = None
    value: Written = Output()


class Window(Part):
    """The time that rows are grouped by: `size` alone is tumbling, with `every` sliding, or a session."""

    size: Duration | None = None
    every: Duration | None = None
    session: Duration | None = None  # it ends when nothing came for so long


class Function(Part):
    """A function in Python that makes rows of a row, where SQL is not enough."""

    call: Annotated[str, limited(pattern=FUNCTION_NAME)]
    gives: Mapping[ColumnName, FieldType]


class Job(Part):
    """One job: what it reads, what it makes of it, what it writes."""

    kind: Kind = Kind.STREAM
    read: Mapping[ColumnName, Source]
    sql: str | None = None
    function: Function | None = None  # in place of SQL, for a stream
    window: Window | None = None
    emit: Emit | None = None
    write: Sink | None = None
    path: str | None = None  # of a lake; else it is in the bus's directory
    dead_letters: TopicName | None = None  # for records that cannot be understood
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    every: Duration = Duration(1.0)  # how often a batch begins, where there are batches
    most_records: Annotated[Whole, limited(ge=1)] = 500_000  # of one batch
    tasks: Annotated[Whole, limited(ge=1, le=1000)] = 2  # that share the state; fixed with the first run
