"""Whether a join can go on record by record. Pure.

Two streams can be joined if each record has to wait for its partner only so long: equal columns, and
the times of both bound by each other. A stream and a table can be joined if every row that comes out
has a record of the stream in it: the table's rows alone have nothing that would let them out.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from twinlog.spec.streams import Job
from twinlog.streams import columns
from twinlog.streams.columns import Columns
from twinlog.streams.statement import Flaw, Statement

_SIDES = ("", "LEFT", "RIGHT", "FULL")
_BOUND = "a.time BETWEEN b.time - INTERVAL 10 MINUTES AND b.time + INTERVAL 10 MINUTES"


def flaws(parsed: Statement, job: Job, known: dict[str, Columns]) -> Iterator[Flaw]:
    """Why the join of a job cannot be incremental."""
    joins = list(parsed.tree.find_all(exp.Join))
    at = parsed.keyword("JOIN")
    if len(joins) != 1:
        what = "a job joins twice" if joins else "the two sources are not joined"
        yield Flaw(what, "FROM a JOIN b ON …, once", at)
        return
    (join,) = joins
    select = join.find_ancestor(exp.Select)
    sources = _sources(select, join)
    if sources is None:
        yield Flaw("a join is between two sources", "FROM a JOIN b ON …, without a SELECT inside", at)
        return
    if join.side not in _SIDES or join.kind not in ("", "INNER", "OUTER"):
        said = " ".join(filter(None, (join.side, join.kind)))
        yield Flaw(f"a {said} JOIN of streams is not known", "use JOIN, LEFT JOIN or RIGHT JOIN", at)
        return
    conditions = _conditions(join)
    sides = _Sides(sources, known)
    if not join.args.get("using") and not any(_is_equality(one, sides) for one in conditions):
        yield Flaw("a join needs equal columns", "ON a.id = b.id AND …", at)
    tables = [name for name, alias in sources.items() if job.read[alias].table is not None]
    if tables:
        yield from _with_table(join, list(sources), tables[0], at)
    else:
        yield from _within_time(conditions, job, sources, sides, at)


def _sources(select: exp.Select | None, join: exp.Join) -> dict[str, str] | None:
    """The two sides, left first: the name each has in the SQL, and the source that it is."""
    if select is None:
        return None
    both = (select.args["from_"].this, join.this)
    if not all(isinstance(side, exp.Table) for side in both):
        return None
    return {side.alias_or_name: side.name for side in both}


def _conditions(join: exp.Join) -> list[exp.Expr]:
    on = join.args.get("on")
    if on is None:
        return []
    found: list[exp.Expr] = []
    for one in on.flatten() if isinstance(on, exp.And) else [on]:
        inner = one.unnest()
        if isinstance(inner, exp.Between):
            low, high = inner.args["low"], inner.args["high"]
            found += [exp.GTE(this=inner.this, expression=low), exp.LTE(this=inner.this, expression=high)]
        else:
            found.append(inner)
    return found


class _Sides:
    """Which side of a join a part of its condition is about."""

    def __init__(self, sources: dict[str, str], known: dict[str, Columns]) -> None:
        self._owners: dict[str, set[str]] = {}
        for name, alias in sources.items():
            for column in known[alias]:
                self._owners.setdefault(column, set()).add(name)

    def of(self, column: exp.Column) -> str:
        """The side that a column belongs to; empty if both have one of this name."""
        if column.table:
            return str(column.table)
        owners = self._owners.get(column.name.lower(), set())
        return next(iter(owners)) if len(owners) == 1 else ""

    def about(self, part: exp.Expr) -> set[str]:
        """All sides that a part is about."""
        return {self.of(column) for column in part.find_all(exp.Column)}


def _is_equality(one: exp.Expr, sides: _Sides) -> bool:
    if not isinstance(one, exp.EQ):
        return False
    left, right = sides.about(one.this), sides.about(one.expression)
    return len(left) == 1 and len(right) == 1 and left != right


def _with_table(join: exp.Join, order: list[str], table: str, at: int) -> Iterator[Flaw]:
    """The stream must be the side of which every row comes out."""
    kept = {"LEFT": [order[0]], "RIGHT": [order[1]], "FULL": order}.get(join.side, [])
    if table in kept:
        what = f"a {join.side} JOIN lets rows of the table {table} out that no record asks for"
        stream = next(name for name in order if name != table)
        yield Flaw(f"{what}: this cannot go on record by record", f"FROM {stream} LEFT JOIN {table} ON …", at)


def _within_time(
    conditions: list[exp.Expr], job: Job, sources: dict[str, str], sides: _Sides, at: int
) -> Iterator[Flaw]:
    """Each side's time is at most the other's and a while."""
    times = {name: columns.time_of(job.read[alias]) for name, alias in sources.items()}
    bounds = {bound for one in conditions if (bound := _bound(one, times, sides)) is not None}
    first, second = sources
    if not {(first, second), (second, first)} <= bounds:
        what = f"nothing says how long {first} and {second} wait for each other: this cannot go on for ever"
        hint = f"add AND {_BOUND.replace('a.time', f'{second}.{times[second]}')}"
        yield Flaw(what, hint.replace("b.time", f"{first}.{times[first]}"), at)


def _bound(one: exp.Expr, times: dict[str, str], sides: _Sides) -> tuple[str, str] | None:
    """(a, b) if a condition says that a's time is at most b's, give or take an interval."""
    if isinstance(one, exp.LT | exp.LTE):
        smaller, larger = one.this, one.expression
    elif isinstance(one, exp.GT | exp.GTE):
        smaller, larger = one.expression, one.this
    else:
        return None
    found = []
    for part in (smaller, larger):
        named = list(part.find_all(exp.Column))
        if len(named) != 1:
            return None
        side = sides.of(named[0])
        if times.get(side) != named[0].name.lower():
            return None
        found.append(side)
    return (found[0], found[1]) if found[0] != found[1] else None
