"""Whether the SQL of every job can be run, and run without an end, before Spark is asked. Pure.

Called before a plan is shown and before jobs are started. A streaming query that Spark would refuse
after half a minute, or that would keep all records for ever, is refused here, with its place in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from twinlog.errors import FileProblems, UsageError
from twinlog.spec.document import Path
from twinlog.spec.file import Loaded
from twinlog.spec.finding import Finding, Findings
from twinlog.spec.model import Bus
from twinlog.spec.streams import COLUMN_NAME, Encoding, Format, Guarantee, Job, Kind, Output
from twinlog.streams import columns, joining, statement
from twinlog.streams.columns import PERIOD, Columns
from twinlog.streams.planning import cores_of, endless_slots
from twinlog.streams.statement import Flaw, Statement

_RESERVED = {columns.KEY, PERIOD}
_NEVER_THE_SAME = ("rand", "randn", "random", "uuid", "shuffle", "monotonically_increasing_id")
# What would have to see all records before it can answer.
_NEEDS_AN_END = ((exp.Order, "ORDER"), (exp.Limit, "LIMIT"), (exp.Offset, "OFFSET"), (exp.Window, "OVER"))


def check(loaded: Loaded) -> None:
    """Raise every problem of the jobs at once, or return if there is none."""
    problems = [loaded.locate(finding) for finding in findings(loaded.bus)]
    if problems:
        raise FileProblems(str(loaded.file), problems, hint="twinlog stream --help")


def findings(bus: Bus) -> list[Finding]:
    """Everything that is wrong with the jobs of a bus whose file is right otherwise."""
    return [*(finding for name in bus.streams for finding in _of_job(bus, name)), *_slots(bus)]


def _slots(bus: Bus) -> Findings:
    """Tasks that never end must leave room for others, or nothing else would ever run."""
    endless = endless_slots(bus)
    cores = cores_of(bus.pipeline, endless + 1)
    if cores is not None and cores <= endless:
        what = f"{endless} tasks in real-time mode never end, and Spark would have {cores} slots"
        yield Finding(
            ("pipeline", "master"), what, f"master: local[{endless + 2}], or guarantee: exactly-once"
        )


def _of_job(bus: Bus, name: str) -> Findings:
    job, path = bus.streams[name], ("streams", name)
    wrong = [*_schemas(job, path)]
    yield from wrong
    if wrong:
        return  # what columns there are is not known
    yield from _names(job, path)
    yield from _times(bus, job, path)
    if job.function is not None:
        yield from _sink(list(job.function.gives), job, path)
    if job.sql is None:
        return
    here = (*path, "sql")
    known = columns.of_job(job, bus.streams)
    parsed = statement.parse(job.sql)
    if isinstance(parsed, Flaw):
        yield _at(here, parsed)
        return
    flaws = [*statement.unknown_sources(parsed, known)]
    flaws = flaws or [*statement.unknown_columns(parsed, known)]
    flaws += _endless(parsed, job)
    if job.kind is Kind.AGGREGATE:
        flaws += _grouped(parsed, job)
    elif job.kind is Kind.STREAM:
        flaws += _record_by_record(parsed)
    yield from (_at(here, flaw) for flaw in flaws)
    for alias in statement.unused_sources(parsed, known):
        what = f"the SQL does not use {alias}"
        yield Finding((*path, "read", alias), what, "remove the source, or read from it", at_key=True)
    if flaws:
        return  # what comes out is not known
    if job.kind is Kind.JOIN:
        yield from (_at(here, flaw) for flaw in joining.flaws(parsed, job, known))
    yield from _made(parsed, job, known, path)


def _at(path: Path, flaw: Flaw) -> Finding:
    return Finding(path, flaw.what, flaw.hint, within=flaw.at)


def _schemas(job: Job, path: Path) -> Findings:
    """Schemas of Avro and Protobuf must be such, and of columns that SQL can name."""
    told: dict[Path, Encoding | Output] = {
        ("read", alias, "value"): source.value for alias, source in job.read.items()
    }
    if job.write is not None:
        told["write", "value"] = job.write.value
    for where, one in told.items():
        field = "record" if one.format is Format.AVRO else "message"
        try:
            found = columns.fields_of(one)
        except UsageError as error:
            yield Finding((*path, *where, field), error.what, error.hint)
            continue
        for name in found:
            if re.fullmatch(COLUMN_NAME, name) is None:
                what = f"{name} is no name of a column"
                yield Finding((*path, *where, field), what, "letters, digits and underscores, a letter first")


def _names(job: Job, path: Path) -> Findings:
    """Columns that Twinlog adds must not be among the fields."""
    for alias, source in job.read.items():
        for field in columns.fields_of(source.value):
            if field in _RESERVED:
                here = (*path, "read", alias, "value")
                where = (*here, "fields", field) if field in source.value.fields else here
                yield Finding(where, f"{field} is a column of every source", "rename the field", at_key=True)


def _times(bus: Bus, job: Job, path: Path) -> Findings:
    """Event times are timestamps, and what is kept until a time has a watermark."""
    streams = [alias for alias, source in job.read.items() if source.topic is not None]
    waits = job.window is not None or (job.kind is Kind.JOIN and len(streams) == 2)
    for alias in streams:
        source, here = job.read[alias], (*path, "read", alias)
        known = columns.of_source(source, bus.streams)
        if source.time is not None and known.get(source.time) != "timestamp":
            kind = known.get(source.time)
            what = f"{source.time} is a {kind}, not a timestamp" if kind else f"{alias} has no {source.time}"
            yield Finding((*here, "time"), what, "time: NAME of a field that is a timestamp")
        if waits and source.watermark is None:
            what = f"{alias} has no watermark: nobody could say when a window is over"
            if job.kind is Kind.JOIN:
                what = f"{alias} has no watermark: what waits to be joined would wait for ever"
            yield Finding(here, what, "add watermark: 10m, how late a record may be", at_key=True)


def _endless(parsed: Statement, job: Job) -> Iterator[Flaw]:
    tree = parsed.tree
    for node, keyword in _NEEDS_AN_END:
        if tree.find(node) is not None:
            what = f"{keyword} needs an end of the records, and a stream has none"
            hint = "use kind: aggregate with a window" if keyword == "OVER" else "leave it out"
            yield Flaw(what, hint, parsed.keyword(keyword))
    if tree.find(exp.Distinct) is not None:
        what = "DISTINCT would keep every value for ever"
        yield Flaw(what, "GROUP BY the columns, or approx_count_distinct(…)", parsed.keyword("DISTINCT"))
    for scope in parsed.scopes():
        if scope.is_subquery:
            what = "a SELECT inside an expression has no end to wait for"
            yield Flaw(what, "join a table instead", parsed.place(scope.expression))
    for operation in tree.find_all(exp.SetOperation):
        if not isinstance(operation, exp.Union) or operation.args.get("distinct"):
            what = "only UNION ALL can go on record by record"
            yield Flaw(what, "UNION ALL", parsed.keyword(operation.key.upper()))
    if job.kind is not Kind.JOIN and tree.find(exp.Join) is not None:
        yield Flaw(f"a job of kind {job.kind} does not join", "kind: join", parsed.keyword("JOIN"))
    if job.guarantee is Guarantee.EXACTLY_ONCE and job.kind is not Kind.STREAM:
        yield from _repeatable(parsed)


def _repeatable(parsed: Statement) -> Iterator[Flaw]:
    """State is made again from the same records after a failure, and must come out the same."""
    for function in parsed.tree.find_all(exp.Func):
        name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
        if name.lower() in _NEVER_THE_SAME:
            what = f"{name.lower()}() says something else after a failure, so nothing would be exactly once"
            yield Flaw(what, "leave it out, or guarantee: at-least-once", parsed.keyword(name.upper()))


def _record_by_record(parsed: Statement) -> Iterator[Flaw]:
    if any(select.args.get("group") for select in parsed.selects()):
        yield Flaw("a stream goes record by record", "kind: aggregate", parsed.keyword("GROUP"))
    elif (function := parsed.tree.find(exp.AggFunc)) is not None:
        name = function.sql_name()
        yield Flaw(f"{name.lower()}() counts over records", "kind: aggregate", parsed.keyword(name))


def _grouped(parsed: Statement, job: Job) -> Iterator[Flaw]:
    grouped = [select for select in parsed.selects() if select.args.get("group")]
    if not grouped:
        yield Flaw("an aggregate has groups", "add GROUP BY", 0)
        return
    if len(grouped) > 1:
        what = "one job groups once"
        yield Flaw(
            what, "write the inner one to a topic, and read it in a second job", parsed.keyword("GROUP")
        )
        return
    (select,) = grouped
    if job.window is None:
        return
    keys = [one for one in select.args["group"].expressions if isinstance(one, exp.Column)]
    if not any(one.name == PERIOD for one in keys):
        yield Flaw("the window is not among the groups", f"GROUP BY {PERIOD}, …", parsed.keyword("GROUP"))
    elif job.window.session is not None and not isinstance(select.args["from_"].this, exp.Table):
        what = "sessions are found where records are read"
        yield Flaw(what, "GROUP BY directly behind FROM the source", parsed.keyword("FROM"))


def _made(parsed: Statement, job: Job, known: dict[str, Columns], path: Path) -> Findings:
    """The columns that come out have names, each once, and the sink's are among them."""
    found = statement.outputs(parsed, known)
    chosen = parsed.tree.selects
    for number, name in enumerate(found):
        if not name and number < len(chosen):
            what = "a column that comes out needs a name"
            at = parsed.place(chosen[number])
            yield Finding((*path, "sql"), what, "give it one: … AS n", within=at)
    for name in {name for name in found if name and found.count(name) > 1}:
        yield Finding((*path, "sql"), f"two columns are called {name}", "give one another name: … AS n")
    yield from _sink(found, job, path)


def _sink(found: list[str], job: Job, path: Path) -> Findings:
    """What a sink is made of must come out."""
    if job.write is None:
        return
    shown = ", ".join(name for name in found if name and not name.startswith("_"))
    for name in columns.fields_of(job.write.value):
        if name not in found:
            what = f"the schema has {name}, and no such column comes out"
            yield Finding((*path, "write", "value"), what, f"there are {shown}", at_key=True)
    for field, output in (("key", job.write.key), ("value", job.write.value)):
        if output is not None and output.column is not None and output.column not in found:
            what = (
                f"no column {output.column} comes out of the {'SQL' if job.sql is not None else 'function'}"
            )
            yield Finding((*path, "write", field, "column"), what, f"there are {shown}")
