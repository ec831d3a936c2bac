"""Records as rows and rows as records, in Spark's terms.

A record that is not what the file says gets a reason and is parted from the others; it goes to the
dead letters. Numbers are Java's: IntegerSerializer and LongSerializer write four and eight bytes,
the highest first.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from twinlog.spec.streams import Encoding, Format, Function, Output, Sink, Source
from twinlog.streams.columns import (
    DATE,
    OFFSET,
    PARTITION,
    PERIOD,
    PLACE,
    TIME,
    TOPIC,
    VALUE,
    fields_of,
    time_of,
    type_of,
)
from twinlog.streams.planning import IN_PYTHON, can_fail
from twinlog.streams.workers import Caller, Decoder, Encoder

REASON = "_reason"
LANE = "lane"
RECORD = ("key", "value", "headers")
_BROKEN = "_broken"
_PARSED = "_parsed"  # a value that Python has taken apart
_TASK = "_task"
_CALLED = "_called"  # what a function made of a row
_HEADERS = "array<struct<key:string,value:binary>>"
_INT_BYTES, _LONG_BYTES = 4, 8


def records(session: SparkSession, options: Mapping[str, str], topic: str) -> DataFrame:
    """The records of a topic as they come, without an end."""
    return session.readStream.format("kafka").options(**options).option("subscribe", topic).load()


def good(frame: DataFrame, source: Source) -> DataFrame:
    """The records of a source that were understood, with the columns that the SQL of a job sees."""
    if not can_fail(source):
        return frame.select(*_columns(source, whole=True))
    taken = _parsed(frame, source).select(
        *_columns(source, whole=True),
        _reason(source, needs_key=False).alias(REASON),
        F.spark_partition_id().alias(_TASK),
    )
    # Spark would move the condition in front of the decoding, and decode everything twice for it. It does
    # not move what depends on the task.
    kept = taken.where(F.col(REASON).isNull() & (F.col(_TASK) >= 0)).drop(REASON, _TASK)
    fields = fields_of(source.value)
    if not fields:
        return kept
    # In a second step: else a value would be taken apart anew for each of its fields.
    return kept.select("key", *(F.col(VALUE)[name].alias(name) for name in fields), *PLACE, TIME)


def _columns(source: Source, *, whole: bool) -> list[Column]:
    """The columns of a record that was understood; `whole` with an object's fields still together."""
    key, _ = _decoded(F.col("key"), source.key, "key")
    value, _ = _decoded(F.col("value"), source.value, "value")
    fields = [] if whole else [value[name].alias(name) for name in fields_of(source.value)]
    return [
        key.alias("key"),
        *(fields or [value.alias(VALUE)]),
        F.col("topic").alias(TOPIC),
        F.col("partition").alias(PARTITION),
        F.col("offset").alias(OFFSET),
        F.col("timestamp").alias(TIME),
    ]


def _parsed(frame: DataFrame, source: Source) -> DataFrame:
    """With values that Python has to take apart taken apart, once."""
    if source.value.format not in IN_PYTHON:
        return frame
    fields = fields_of(source.value)
    schema = source.value.record or source.value.message
    assert schema is not None
    decoder = Decoder(source.value.format, schema, len(fields))
    # Not deterministic, or Spark would take the liberty to call it again wherever its result is used.
    decode = F.udf(decoder, f"{_ddl(fields)}, `{_BROKEN}` string", useArrow=False).asNondeterministic()
    return frame.withColumn(_PARSED, decode(F.col("value")))


def _ddl(fields: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in fields.items())


def called(frame: DataFrame, source: Source, function: Function, paths: tuple[str, ...]) -> DataFrame:
    """Records with what a function makes of those that were understood; null for the others."""
    rows = f"rows array<struct<{', '.join(f'`{name}`: {kind}' for name, kind in function.gives.items())}>>"
    caller = Caller(function.call, tuple(function.gives.items()), paths)
    call = F.udf(caller, f"{rows}, failed string", useArrow=False).asNondeterministic()
    understood = F.when(_reason(source, needs_key=False).isNull(), F.struct(*_columns(source, whole=False)))
    return _parsed(frame, source).withColumn(_CALLED, call(understood))


def given(frame: DataFrame) -> DataFrame:
    """The rows that a function gave, with the places of their records."""
    place = [F.col(name.removeprefix("_")).alias(name) for name in PLACE]
    return frame.select(F.explode(F.col(_CALLED)["rows"]).alias("_row"), *place).select("_row.*", *PLACE)


def _reason(source: Source, *, needs_key: bool) -> Column:
    """Why a record cannot be understood; null if it can."""
    _, key = _decoded(F.col("key"), source.key, "key")
    _, value = _decoded(F.col("value"), source.value, "value")
    missing = [F.when(F.col("key").isNull(), "the record has no key")] if needs_key else []
    return F.coalesce(key, value, *missing)


def changes(frame: DataFrame, source: Source) -> DataFrame:
    """The latest that a batch of records says of each key: key, value as JSON (null deletes), place."""
    key, _ = _decoded(F.col("key"), source.key, "key")
    value, _ = _decoded(F.col("value"), source.value, "value")
    fields = [value[name].alias(name) for name in fields_of(source.value)] or [value.alias(VALUE)]
    text = F.hex(key) if source.key.format is Format.BYTES else key.cast("string")
    shown = F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})
    kept = (
        _parsed(frame, source)
        .where(_reason(source, needs_key=True).isNull())
        .select(
            text.alias("key"),
            F.when(F.col("value").isNotNull(), shown).alias("value"),
            F.col("partition"),
            F.col("offset"),
        )
    )
    latest = F.max_by(F.struct("value", "partition", "offset"), F.col("offset"))
    return kept.groupBy("key").agg(latest.alias("latest")).select("key", "latest.*")


def table(session: SparkSession, rows: list[tuple[str, str]], source: Source) -> DataFrame:
    """Rows of a table, with keys and values as it keeps them, as the columns that SQL sees."""
    fields = _ddl(fields_of(source.value) or {VALUE: type_of(source.value)})
    key = F.unhex("key") if source.key.format is Format.BYTES else F.col("key").cast(type_of(source.key))
    kept = session.createDataFrame(rows, "key string, value string")
    parsed = kept.select(key.alias("key"), F.from_json("value", fields).alias("parsed"))
    return parsed.select("key", "parsed.*")


def as_they_were(frame: DataFrame, source: Source) -> DataFrame:
    """The records of a table's topic that were understood, unchanged, to be written again."""
    kept = _parsed(frame, source).where(_reason(source, needs_key=True).isNull())
    return kept.select(
        "key",
        "value",
        F.lit(None).cast(_HEADERS).alias("headers"),
        F.col("topic").alias(TOPIC),
        F.col("partition").alias(PARTITION),
        F.col("offset").alias(OFFSET),
    )


def timed(frame: DataFrame, source: Source, window: tuple[str, str] | None) -> DataFrame:
    """With a watermark, and with the window that each row belongs to."""
    time = time_of(source)
    if source.watermark is not None:
        frame = frame.withWatermark(time, f"{round(source.watermark * 1000)} milliseconds")
    return frame if window is None else frame.withColumn(PERIOD, F.window(F.col(time), *window))


def dated(frame: DataFrame, source: Source) -> DataFrame:
    """With the day of the event, by which a lake is parted."""
    return frame.withColumn(DATE, F.coalesce(F.col(time_of(source)), F.col(TIME)).cast("date"))


def bad(frame: DataFrame, source: Source, job: str, *, needs_key: bool) -> DataFrame:
    """The records that were not understood, as they were, with their places and the reasons.

    With what a function made of them (`called`) also those for which it failed.
    """
    reason = _reason(source, needs_key=needs_key)
    if _CALLED in frame.columns:
        reason = F.coalesce(reason, F.col(_CALLED)["failed"])
    else:
        frame = _parsed(frame, source)
    wrong = frame.select(
        F.col("key"),
        F.col("value"),
        F.col("topic").alias(TOPIC),
        F.col("partition").alias(PARTITION),
        F.col("offset").alias(OFFSET),
        reason.alias(REASON),
    ).where(F.col(REASON).isNotNull())
    return with_headers(wrong, {"job": F.lit(job), "reason": F.col(REASON)})


def with_headers(frame: DataFrame, more: Mapping[str, Column]) -> DataFrame:
    """Key, value, place, and headers that name the place and what else there is to say."""
    said = {"topic": F.col(TOPIC), "partition": F.col(PARTITION), "offset": F.col(OFFSET), **more}
    headers = F.array(
        *(
            F.struct(
                F.lit(f"twinlog.{name}").alias("key"), column.cast("string").cast("binary").alias("value")
            )
            for name, column in said.items()
        )
    )
    return frame.select("key", "value", headers.alias("headers"), *PLACE)


def _as_bytes(column: Column) -> Column:
    return column.cast("string").cast("binary")


def written(frame: DataFrame, sink: Sink) -> DataFrame:
    """Rows as records: key, value, no headers, and their places if they have them."""
    shown = [name for name in frame.columns if not name.startswith("_")]
    key = F.lit(None).cast("binary") if sink.key is None else _encoded(sink.key, shown)
    places = [name for name in PLACE if name in frame.columns]
    none = F.lit(None).cast(_HEADERS)
    return frame.select(
        key.alias("key"), _encoded(sink.value, shown).alias("value"), none.alias("headers"), *places
    )


def by_partition(frame: DataFrame, tasks: int | None = None) -> DataFrame:
    """With the partition that a row comes from as its lane; with `tasks`, all of a lane in one task."""
    frame = frame.withColumn(LANE, F.concat_ws("-", F.col(TOPIC), F.col(PARTITION)))
    if tasks is not None:
        frame = frame.repartition(tasks, F.col(LANE)).sortWithinPartitions(LANE, OFFSET)
    return frame.select(*RECORD, LANE)


def by_task(frame: DataFrame) -> DataFrame:
    """With the number of the task as lane: rows with state are where their groups are, each time."""
    return frame.withColumn(LANE, F.spark_partition_id().cast("string")).select(*RECORD, LANE)


def _decoded(raw: Column, encoding: Encoding, what: str) -> tuple[Column, Column]:
    """A key or value, and why it could not be understood."""
    none = F.lit(None).cast("string")
    if encoding.format is Format.BYTES:
        return raw, none
    if encoding.format is Format.STRING:
        text = raw.cast("string")
        return text, F.when(~F.is_valid_utf8(text), f"the {what} is not UTF-8")
    if encoding.format is Format.JSON:
        return _json(raw, encoding, what)
    if encoding.format in IN_PYTHON:
        return F.col(_PARSED), F.col(_PARSED)[_BROKEN]
    size = _INT_BYTES if encoding.format is Format.INT else _LONG_BYTES
    said = F.concat(F.lit(f"the {what} has "), F.octet_length(raw), F.lit(f" bytes, not {size}"))
    reason = F.when(F.octet_length(raw) != size, said)
    # As a signed number of 64 bits; shorter ones are moved up and down again to get their sign.
    whole = F.conv(F.rpad(F.hex(raw), 16, "0"), 16, -10).cast("long")
    number = whole if size == _LONG_BYTES else F.shiftright(whole, 32).cast("int")
    return F.when(F.octet_length(raw) == size, number), reason


def _json(raw: Column, encoding: Encoding, what: str) -> tuple[Column, Column]:
    parsed = F.from_json(
        raw.cast("string"),
        f"{_ddl(encoding.fields)}, `{_BROKEN}` string",
        {"columnNameOfCorruptRecord": _BROKEN, "mode": "PERMISSIVE"},
    )
    wrong = raw.isNotNull() & (parsed.isNull() | parsed[_BROKEN].isNotNull())
    return parsed, F.when(wrong, f"the {what} is no JSON object with the declared fields")


def _encoded(output: Output, shown: list[str]) -> Column:
    if output.format is Format.JSON:
        names = shown if output.column is None else [output.column]
        return F.to_json(F.struct(*names), {"ignoreNullFields": "false"}).cast("binary")
    if output.format in IN_PYTHON:
        schema = output.record or output.message
        assert schema is not None
        encode = F.udf(Encoder(output.format, schema), "binary", useArrow=False)
        return encode(F.struct(*fields_of(output)))
    column = F.col(str(output.column))
    if output.format is Format.BYTES:
        return column.cast("binary")
    if output.format is Format.STRING:
        return _as_bytes(column)
    digits = 2 * (_INT_BYTES if output.format is Format.INT else _LONG_BYTES)
    number = column.cast("int" if output.format is Format.INT else "long").cast("long")
    return F.unhex(F.right(F.lpad(F.hex(number), 16, "0"), F.lit(digits)))
