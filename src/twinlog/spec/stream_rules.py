"""Rules for jobs under `streams:` that need no look into their SQL. Pure.

Called by `check`. What the SQL means, and whether it can go on without an end, is looked at by the
package `streams` when a plan is made.
"""

from __future__ import annotations

from collections.abc import Iterable

from twinlog.spec.document import Path
from twinlog.spec.finding import Finding, Findings, warning
from twinlog.spec.implied import PROGRESS_TOPIC, STREAMS_USER
from twinlog.spec.model import Bus
from twinlog.spec.streams import Emit, Encoding, Format, Job, Kind, Output, Source, Window
from twinlog.spec.wording import nearest

_OBJECTS = (Format.JSON, Format.AVRO, Format.PROTOBUF)  # of several columns, so nothing for a key
_SCHEMAS = {Format.AVRO: "record", Format.PROTOBUF: "message"}
_SHOWN = {
    "record": "record: {type: record, name: Order, fields: [{name: id, type: long}]}",
    "message": "message: 'message Order { int64 id = 1; }'",
}


def of_streams(bus: Bus) -> Findings:
    """What the jobs need for themselves must be free."""
    if bus.streams and STREAMS_USER in bus.users:
        what = f"{STREAMS_USER} is the user that jobs run as, made by Twinlog"
        yield Finding(("users", STREAMS_USER), what, "give this user another name", at_key=True)
    if bus.streams and PROGRESS_TOPIC in bus.topics:
        what = f"{PROGRESS_TOPIC} is the topic in which jobs note their progress, made by Twinlog"
        yield Finding(("topics", PROGRESS_TOPIC), what, "remove it", at_key=True)
    where = bus.pipeline.checkpoints
    if where is not None and not where.startswith("/") and "://" not in where:
        what = f"{where} is no path: from where would it be counted?"
        yield Finding(("pipeline", "checkpoints"), what, "/data/streams, or hdfs://host/streams")


def of_job(bus: Bus, name: str) -> Findings:
    """What can be said of one job."""
    job, path = bus.streams[name], ("streams", name)
    if not job.read:
        yield Finding((*path, "read"), f"{name} reads nothing", "read: {orders: {topic: orders}}")
    for alias, source in job.read.items():
        yield from _source(bus, source, (*path, "read", alias))
    yield from (_kept(job, path) if job.kind in (Kind.TABLE, Kind.LAKE) else _query(job, path))
    yield from _window(job, path)
    yield from _written(bus, job, path)
    yield from _dead_letters(bus, job, path)


def _source(bus: Bus, source: Source, path: Path) -> Findings:
    if (source.topic is None) == (source.table is None):
        what = "a source is a topic or a table" if source.topic is None else "a topic or a table, not both"
        yield Finding(path, what, "write {topic: NAME}, or {table: JOB}", at_key=True)
        return
    if source.topic is not None:
        yield from _declared(bus, source.topic, (*path, "topic"))
        yield from _mirrored(bus, source.topic, (*path, "topic"))
        if source.everywhere:
            what = "only a table can be everywhere"
            yield Finding((*path, "everywhere"), what, "remove it, or read a table")
        yield from _encoding(source.key, (*path, "key"))
        yield from _encoding(source.value, (*path, "value"))
        if source.key.format in _OBJECTS:
            yield Finding((*path, "key"), "a key is one value", "use bytes, string, int or long")
        return
    tables = [name for name, job in bus.streams.items() if job.kind is Kind.TABLE]
    if source.table not in tables:
        near = nearest(str(source.table), tables)
        hint = f"did you mean {near}?" if near else "declare it under streams: with kind: table"
        yield Finding((*path, "table"), f"there is no table {source.table}", hint)
    for field in ("key", "value", "time", "watermark"):
        if field in source.given:
            what = f"a table has its {field} from the job that keeps it"
            yield Finding((*path, field), what, "remove it", at_key=True)


def _mirrored(bus: Bus, topic: str, path: Path) -> Findings:
    declared = bus.topics.get(topic)
    if declared is not None and not declared.mirror and len(bus.sites) > 1:
        what = f"{topic} is not mirrored: at the other site its offsets mean nothing to this job"
        yield warning(path, what, "mirror: true, or have the job begin anew when roles change")


def _encoding(encoding: Encoding, path: Path) -> Findings:
    if encoding.format is Format.JSON and not encoding.fields:
        hint = "write {format: json, fields: {id: int, name: string}}"
        yield Finding(path, "which fields do these objects have?", hint)
    if encoding.format is not Format.JSON and encoding.fields:
        yield Finding((*path, "fields"), f"{encoding.format} has no fields", "remove them, or use json")
    yield from _schema(encoding, path)


def _schema(told: Encoding | Output, path: Path) -> Findings:
    """Avro and Protobuf have a schema each, and nobody else has one."""
    wanted = _SCHEMAS.get(told.format)
    for field in _SCHEMAS.values():
        given = getattr(told, field) is not None
        if field == wanted and not given:
            what = f"which schema do these {told.format} values have?"
            yield Finding(path, what, f"add {_SHOWN[field]}")
        elif given and field != wanted:
            yield Finding((*path, field), f"{told.format} has no {field}", "remove it", at_key=True)


def _kept(job: Job, path: Path) -> Findings:
    if len(job.read) != 1 or any(source.topic is None for source in job.read.values()):
        what = f"a {job.kind} is kept from one topic"
        yield Finding((*path, "read"), what, "read one topic; an aggregate or join can write one")
    for alias, source in job.read.items():
        keyless = source.topic is not None and "key" not in source.given
        if job.kind is Kind.TABLE and keyless:
            what = "a table has keys: how are they written?"
            yield Finding((*path, "read", alias), what, "add key: string, int, long or bytes", at_key=True)
    for field, said in (("sql", "SQL"), ("function", "function")):
        if getattr(job, field) is not None:
            what = f"a {job.kind} holds records as they come, and has no {said}"
            yield Finding((*path, field), what, "use a stream in front of it", at_key=True)
    if job.kind is Kind.LAKE and job.write is not None:
        what = "a lake is no topic: it is written to a path"
        yield Finding((*path, "write"), what, "remove it, or say path: DIRECTORY", at_key=True)


def _query(job: Job, path: Path) -> Findings:
    if job.sql is None and job.function is None:
        yield Finding(path, "what comes of the records?", "add sql: SELECT … FROM …", at_key=True)
    yield from _function(job, path)
    if job.write is None:
        yield Finding(path, "where do the results go?", "add write: {topic: NAME}", at_key=True)
    streams = [alias for alias, source in job.read.items() if source.topic is not None]
    if job.read and not streams:
        yield Finding((*path, "read"), "a job follows a topic", "read one beside the table")
    if job.kind is Kind.JOIN:
        if len(job.read) != 2:
            yield Finding((*path, "read"), f"a join has two sources, not {len(job.read)}", "chain two joins")
    elif len(job.read) > 1:
        yield Finding((*path, "read"), f"{job.kind} reads one source", "use kind: join")


def _function(job: Job, path: Path) -> Findings:
    if job.function is None:
        return
    here = (*path, "function")
    if job.sql is not None:
        yield Finding(here, "SQL or a function, not both", "chain two jobs by a topic", at_key=True)
    if job.kind is not Kind.STREAM:
        yield Finding(here, f"a function is for streams, not for kind {job.kind}", "remove it", at_key=True)
    if not job.function.gives:
        yield Finding((*here, "gives"), "which columns does it give?", "gives: {id: long, name: string}")
    if job.dead_letters is None:
        what = "where do records go for which the function fails?"
        yield Finding(here, what, "add dead_letters: dead, and that topic", at_key=True)


def _window(job: Job, path: Path) -> Findings:
    if job.kind is not Kind.LAKE and job.path is not None:
        yield Finding((*path, "path"), "path is for lakes", "remove it", at_key=True)
    if job.kind is not Kind.AGGREGATE:
        for field, value in (("window", job.window), ("emit", job.emit)):
            if value is not None:
                yield Finding((*path, field), f"{field} is for aggregates", "remove it", at_key=True)
        return
    if job.window is not None:
        yield from _sizes(job.window, (*path, "window"))
    if job.emit is Emit.FINAL and job.window is None:
        what = "without a window a row is never final"
        yield Finding((*path, "emit"), what, "add window: {size: 1m}, or emit: changes")
    if job.emit is Emit.CHANGES and job.window is not None and job.window.session is not None:
        yield Finding((*path, "emit"), "sessions are written when they are over", "emit: final")


def _sizes(window: Window, path: Path) -> Findings:
    if (window.size is None) == (window.session is None):
        yield Finding(path, "a window has a size or is a session", "window: {size: 1m}, or {session: 5m}")
    if window.every is not None and (window.size is None or window.every > window.size):
        what = "windows slide by at most their size"
        yield Finding((*path, "every"), what, "window: {size: 10m, every: 1m}")
    for field in ("size", "every", "session"):
        if getattr(window, field) == 0:
            yield Finding((*path, field), f"{field} must be more than 0", "as in 1m")


def _written(bus: Bus, job: Job, path: Path) -> Findings:
    if job.write is None:
        return
    here = (*path, "write")
    yield from _declared(bus, job.write.topic, (*here, "topic"))
    if job.write.topic in {source.topic for source in job.read.values()}:
        what = f"{job.write.topic} would be read and written without an end"
        yield Finding((*here, "topic"), what, "write another topic")
    if job.kind is Kind.TABLE:
        for field in ("key", "value"):
            if field in job.write.given:
                what = f"a table's changes have its {field} as it was read"
                yield Finding((*here, field), what, "remove it", at_key=True)
        return
    if job.write.key is not None:
        if job.write.key.column is None:
            what = "of which column are the keys made?"
            yield Finding((*here, "key"), what, "key: {column: id, format: string}")
        if job.write.key.format in _OBJECTS:
            hint = "key: {column: id, format: string}"
            yield Finding((*here, "key"), "a key is bytes, string, int or long", hint)
    yield from _of_one_column(job.write.value, (*here, "value"))


def _of_one_column(output: Output, path: Path) -> Findings:
    yield from _schema(output, path)
    if output.format in _SCHEMAS and output.column is not None:
        what = f"a value in {output.format} is made of all columns that its schema names"
        yield Finding((*path, "column"), what, "remove it", at_key=True)
    if output.format not in _OBJECTS and output.column is None:
        what = f"of which column is a {output.format} made?"
        yield Finding(path, what, f"{{format: {output.format}, column: NAME}}")


def _dead_letters(bus: Bus, job: Job, path: Path) -> Findings:
    if job.dead_letters is not None:
        yield from _declared(bus, job.dead_letters, (*path, "dead_letters"))
        return
    for alias, source in job.read.items():
        for field in ("key", "value"):
            encoding: Encoding = getattr(source, field)
            if source.topic is not None and encoding.format is not Format.BYTES:
                what = f"where do records go whose {field} is no {encoding.format}?"
                hint = f"add dead_letters: {source.topic}.dead, and that topic"
                yield Finding((*path, "read", alias, field), what, hint)
                return


def _declared(bus: Bus, topic: str, path: Path) -> Findings:
    if topic in bus.topics:
        return
    yield Finding(path, f"there is no topic {topic}", _meant(topic, bus.topics))


def _meant(topic: str, known: Iterable[str]) -> str:
    near = nearest(topic, known)
    return f"did you mean {near}?" if near else f"declare {topic} under topics:"
