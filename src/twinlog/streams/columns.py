"""Which columns the SQL of a job sees in each of its sources, and of which type. Pure.

Read by the check of the SQL and by what makes Spark's frames, so that both mean the same. The columns
whose names begin with an underscore say where a record stood; they go along to the sink, unseen.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.spec.streams import Encoding, Format, Job, Output, Source
from twinlog.streams import avro, protobuf

KEY = "key"
VALUE = "value"
TOPIC, PARTITION, OFFSET, TIME = "_topic", "_partition", "_offset", "_time"
PLACE = (TOPIC, PARTITION, OFFSET)
DATE = "_date"  # of a row in a lake: the day of the event, in UTC
PERIOD = "period"  # the window that a row belongs to
PERIOD_TYPE = "struct<start: timestamp, end: timestamp>"

Columns = Mapping[str, str]

_RECORD = {TOPIC: "string", PARTITION: "int", OFFSET: "long", TIME: "timestamp"}
_TYPES = {Format.BYTES: "binary", Format.STRING: "string", Format.INT: "int", Format.LONG: "long"}


def of_source(source: Source, jobs: Mapping[str, Job]) -> Columns:
    """The columns of one source."""
    if source.table is not None:
        (kept_from,) = jobs[source.table].read.values()
        return _content(kept_from)
    return {**_content(source), **_RECORD}


def of_job(job: Job, jobs: Mapping[str, Job]) -> dict[str, Columns]:
    """The columns of all sources of a job, by the names that its SQL calls them."""
    found = {alias: of_source(source, jobs) for alias, source in job.read.items()}
    if job.window is None:
        return found
    return {alias: {**columns, PERIOD: PERIOD_TYPE} for alias, columns in found.items()}


def time_of(source: Source) -> str:
    """The column with the time of an event."""
    return source.time if source.time is not None else TIME


def type_of(encoding: Encoding) -> str:
    """The type of a key, or of a value that is no object."""
    return _TYPES[encoding.format]


def fields_of(told: Encoding | Output) -> Columns:
    """The columns that an object has; none for a single value."""
    if told.format is Format.AVRO and told.record is not None:
        return avro.columns(told.record)
    if told.format is Format.PROTOBUF and told.message is not None:
        return protobuf.columns(told.message)
    return told.fields if isinstance(told, Encoding) else {}


def _content(source: Source) -> Columns:
    return {KEY: type_of(source.key), **(fields_of(source.value) or {VALUE: type_of(source.value)})}
