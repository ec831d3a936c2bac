"""How each job is run: its mode, what that promises and why, its steps, its state. Pure.

Shown by `twinlog plan` and `twinlog stream describe`, and followed by the runner: what is said here
and what is done come from the same place. A job that is planned was checked before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from twinlog.spec.model import Bus, Pipeline
from twinlog.spec.streams import Emit, Format, Guarantee, Job, Kind, Source
from twinlog.spec.units import format_duration
from twinlog.streams import statement
from twinlog.streams.columns import PERIOD, time_of
from twinlog.streams.statement import Statement

IN_PYTHON = (Format.AVRO, Format.PROTOBUF)
TWIN_STREAMS = 2  # sources of a join that both go on
_FETCH_BYTES_MOST = 4 << 20  # some 40,000 small records
_FETCH_SHARE = 32  # as records take several times the room, and one more fetch waits


class Mode(StrEnum):
    """How Spark runs a job."""

    REAL_TIME = "real-time"  # a record is passed on when it comes
    MICRO_BATCH = "micro-batch"


@dataclass(frozen=True)
class Plan:
    """How one job is run."""

    job: str
    kind: Kind
    mode: Mode
    guarantee: Guarantee
    why: str
    slots: int  # tasks that run at the same time
    sources: tuple[str, ...]
    steps: tuple[str, ...]
    state: tuple[str, ...]
    sinks: tuple[str, ...]


def plans(bus: Bus) -> list[Plan]:
    """The plans of all jobs, in the order of the file."""
    return [plan(bus, name) for name in bus.streams]


def plan(bus: Bus, name: str) -> Plan:
    """The plan of one job."""
    job = bus.streams[name]
    mode, why = mode_of(job)
    parsed = statement.parse(job.sql) if job.sql is not None else None
    assert not isinstance(parsed, statement.Flaw), "jobs are checked before they are planned"
    return Plan(
        job=name,
        kind=job.kind,
        mode=mode,
        guarantee=job.guarantee,
        why=why,
        slots=slots_of(bus, job),
        sources=tuple(_source(alias, source) for alias, source in job.read.items()),
        steps=tuple(_steps(job, parsed)),
        state=tuple(_state(name, job)),
        sinks=tuple(_sinks(name, job)),
    )


def mode_of(job: Job) -> tuple[Mode, str]:
    """The mode of a job, and why it is this one."""
    if job.kind is Kind.LAKE:
        return Mode.MICRO_BATCH, "exactly once: Delta takes each batch by its number, and once"
    if job.guarantee is Guarantee.EXACTLY_ONCE:
        return Mode.MICRO_BATCH, "exactly once: each batch is written in transactions that note which it was"
    if job.kind is Kind.STREAM and (python := _python(job)):
        return Mode.MICRO_BATCH, f"real-time mode runs no Python, and {python} does"
    if job.kind is Kind.STREAM:
        return Mode.REAL_TIME, "record by record, and at least once is enough: nothing waits for a batch"
    if job.kind is Kind.TABLE:
        return Mode.MICRO_BATCH, "a table takes a batch of changes at a time"
    if reads_table(job):
        return Mode.MICRO_BATCH, "the table is looked at once for each batch"
    return Mode.MICRO_BATCH, f"real-time mode keeps no state, and {_article(job.kind)} does"


def slots_of(bus: Bus, job: Job) -> int:
    """How many tasks a job runs at the same time: in real-time mode one for each partition, all the time."""
    partitions = sum(bus.topics[source.topic].partitions for source in job.read.values() if source.topic)
    if mode_of(job)[0] is Mode.REAL_TIME or not has_state(job):
        return partitions
    return max(partitions, job.tasks)


def endless_slots(bus: Bus) -> int:
    """How many tasks never end: those of jobs in real-time mode."""
    jobs = bus.streams.values()
    return sum(slots_of(bus, job) for job in jobs if mode_of(job)[0] is Mode.REAL_TIME)


def cores_of(pipeline: Pipeline, here: int) -> int | None:
    """How many tasks a local master runs at the same time; None for one that is elsewhere."""
    match = re.match(r"local(?:\[(\d+|\*))?", pipeline.master)
    if match is None:
        return None
    return int(match[1]) if match[1] and match[1] != "*" else here


def has_state(job: Job) -> bool:
    """True if Spark keeps something of records that have passed."""
    streams = [source for source in job.read.values() if source.topic is not None]
    return job.kind is Kind.AGGREGATE or (job.kind is Kind.JOIN and len(streams) == TWIN_STREAMS)


def reads_table(job: Job) -> bool:
    """True if the job joins a table that another job keeps."""
    return any(source.table is not None for source in job.read.values())


def emits(job: Job) -> Emit:
    """When an aggregate writes a row, if the file does not say it."""
    if job.emit is not None:
        return job.emit
    return Emit.FINAL if job.window is not None else Emit.CHANGES


def _python(job: Job) -> str:
    """What of a job runs in Spark's Python workers; empty if nothing does."""
    if job.function is not None:
        return "the function"
    formats = [source.value.format for source in job.read.values()]
    formats += [job.write.value.format] if job.write is not None else []
    return next((one.value for one in formats if one in IN_PYTHON), "")


def can_fail(source: Source) -> bool:
    """True if records of a source may turn out not to be what the file says."""
    return any(one.format is not Format.BYTES for one in (source.key, source.value))


def fetch_bytes(memory: int, partitions: int, least: int) -> int:
    """How much of a partition is fetched at once in batches, for Spark with so much memory.

    Behind each poll Spark asks the broker twice for the bounds of the partition, and polls give at most what
    one fetch has brought. What a biggest batch needs is fetched in any case.
    """
    return max(least, min(_FETCH_BYTES_MOST, memory // _FETCH_SHARE // partitions))


def _article(kind: Kind) -> str:
    return f"an {kind}" if kind is Kind.AGGREGATE else f"a {kind}"


def _source(alias: str, source: Source) -> str:
    if source.table is not None:
        return f"table {source.table} as {alias}" + (", whole at every task" if source.everywhere else "")
    late = f", at most {format_duration(source.watermark)} late" if source.watermark is not None else ""
    timed = f", by {time_of(source)}" if late else ""
    return (
        f"topic {source.topic} as {alias}: key {source.key.format}, value {source.value.format}{timed}{late}"
    )


def _steps(job: Job, parsed: Statement | None) -> list[str]:
    steps = ["understand keys and values"] if any(can_fail(one) for one in job.read.values()) else []
    if job.kind is Kind.LAKE:
        return [*steps, "add the place of the record, and the day"]
    if job.function is not None:
        given = ", ".join(job.function.gives)
        call = f"call {job.function.call} for each row: gives {given}"
        return [*steps, call, *([f"write {job.write.value.format}"] if job.write is not None else [])]
    if parsed is None:
        return [*steps, "keep the latest value of each key; null deletes it"]
    if job.window is not None:
        steps.append(_window(job))
    for select in parsed.selects():
        steps += _select(select)
    return [*steps, f"write {job.write.value.format}"] if job.write is not None else steps


def _select(select: exp.Select) -> list[str]:
    """What one SELECT does, in the order in which it is done."""
    joins: list[exp.Join] = select.args.get("joins") or []
    done = [f"join {join.this.alias_or_name}: {_text(join.args.get('on'))}" for join in joins]
    where, group, having = (select.args.get(part) for part in ("where", "group", "having"))
    if where is not None:
        done.append(f"keep where {_text(where.this)}")
    if group is not None:
        done.append(f"group by {', '.join(_text(one) for one in group.expressions)}")
    if having is not None:
        done.append(f"keep groups where {_text(having.this)}")
    return [*done, f"select {', '.join(_text(one) for one in select.selects)}"]


def _text(node: exp.Expr | None) -> str:
    return "" if node is None else node.sql(dialect=statement.DIALECT)


def _window(job: Job) -> str:
    assert job.window is not None
    if job.window.session is not None:
        return f"{PERIOD}: sessions that end after {format_duration(job.window.session)} without a record"
    assert job.window.size is not None
    size = format_duration(job.window.size)
    if job.window.every is None or job.window.every == job.window.size:
        return f"{PERIOD}: windows of {size}"
    return f"{PERIOD}: windows of {size}, one every {format_duration(job.window.every)}"


def _state(name: str, job: Job) -> list[str]:
    if job.kind is Kind.TABLE:
        return [f"table {name}: the latest value of each key, asked by twinlog table get {name}"]
    if not has_state(job):
        return []
    if job.kind is Kind.JOIN:
        waits = " and ".join(job.read)
        return [f"RocksDB, {job.tasks} parts: records of {waits} until their watermarks have passed"]
    until = " until the watermark has passed its window" if job.window is not None else ", for ever"
    return [f"RocksDB, {job.tasks} parts: one row for each group{until}"]


def _sinks(name: str, job: Job) -> list[str]:
    sinks = []
    if job.write is not None:
        when = ", rows when they are final" if emits(job) is Emit.FINAL else ""
        sinks.append(f"topic {job.write.topic}" + (when if job.kind is Kind.AGGREGATE else ""))
    if job.kind is Kind.LAKE:
        where = job.path if job.path is not None else "in the bus's directory"
        sinks.append(f"Delta table {where}, a part for each day")
    if job.dead_letters is not None:
        sinks.append(f"topic {job.dead_letters}: records that are not understood")
    return sinks
