"""The SQL that Spark gets: the user's, with what Twinlog needs added. Pure.

What comes of single records carries the place of its record along, unseen, because the sink writes
the results of each partition by itself. Sessions are found by a function of Spark's that the file
writes as a column. All other SQL stays as it was written.
"""

from __future__ import annotations

from sqlglot import exp

from twinlog.spec.streams import Job
from twinlog.streams.columns import PERIOD, PLACE, time_of
from twinlog.streams.planning import has_state
from twinlog.streams.statement import DIALECT, Flaw, Statement, parse

_SESSION = "session_window"


def for_spark(job: Job) -> str:
    """The statement of a job that was checked."""
    assert job.sql is not None
    parsed = parse(job.sql)
    assert not isinstance(parsed, Flaw), "jobs are checked before they are run"
    if not has_state(job):
        return _with_places(parsed, job)
    if job.window is not None and job.window.session is not None:
        return _with_sessions(parsed, job)
    return job.sql


def has_union(job: Job) -> bool:
    """True if results of one partition come out in several places."""
    parsed = parse(job.sql) if job.sql is not None else None
    return isinstance(parsed, Statement) and parsed.tree.find(exp.SetOperation) is not None


def _with_places(parsed: Statement, job: Job) -> str:
    tree = parsed.tree.copy()
    _carry(tree, {alias for alias, source in job.read.items() if source.topic is not None})
    return tree.sql(dialect=DIALECT)


def _carry(query: exp.Expr, carrying: set[str]) -> bool:
    """Have a query give the place of each record; False if it reads no stream."""
    if isinstance(query, exp.Query):
        for cte in query.ctes:
            if _carry(cte.this, carrying):
                carrying.add(cte.alias)
    if isinstance(query, exp.Subquery):
        return _carry(query.this, carrying)
    if isinstance(query, exp.SetOperation):
        return all([_carry(query.this, carrying), _carry(query.expression, carrying)])
    if not isinstance(query, exp.Select):
        return False
    owner = _owner(query, carrying)
    if owner is None:
        return False
    named = {one.output_name for one in query.selects}
    for name in PLACE:
        if not _has_star(query, owner) and name not in named:
            query.select(exp.column(name, table=owner or None), copy=False)
    return True


def _owner(select: exp.Select, carrying: set[str]) -> str | None:
    """The name of the stream behind FROM and JOIN; empty if it has none, None if there is no stream."""
    joins: list[exp.Join] = select.args.get("joins") or []
    begin = select.args.get("from_")
    for side in [begin.this if begin is not None else None, *(join.this for join in joins)]:
        if isinstance(side, exp.Table) and side.name in carrying:
            return side.alias_or_name
        if isinstance(side, exp.Subquery) and _carry(side.this, carrying):
            return side.alias
    return None


def _has_star(select: exp.Select, owner: str) -> bool:
    return any(
        one.is_star and (not isinstance(one, exp.Column) or one.table == owner) for one in select.selects
    )


def _with_sessions(parsed: Statement, job: Job) -> str:
    assert job.window is not None and job.window.session is not None
    (source,) = job.read.values()
    gap = exp.Literal.string(f"{round(job.window.session * 1000)} milliseconds")
    tree = parsed.tree.copy()
    for column in list(tree.find_all(exp.Column)):
        if column.name == PERIOD and column.find_ancestor(exp.Group, exp.Select).__class__ is exp.Group:
            column.replace(exp.Anonymous(this=_SESSION, expressions=[exp.column(time_of(source)), gap]))
        elif column.name == PERIOD:
            column.replace(exp.column(_SESSION))
        elif column.table == PERIOD:
            column.replace(exp.column(column.name, table=_SESSION))
    return tree.sql(dialect=DIALECT)
