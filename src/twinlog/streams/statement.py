"""The SQL of a job, parsed: its sources, the columns that it uses and makes, and where each stands. Pure.

Called by the check and by what rewrites SQL for Spark. Parsing is sqlglot's; names are resolved here,
because every unknown one is to be found at once, with its place in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from twinlog.spec.wording import nearest
from twinlog.streams.columns import PERIOD, Columns

DIALECT = "spark"
_PERIOD_FIELDS = ("start", "end")


@dataclass(frozen=True)
class Flaw:
    """What is wrong with a statement, and at which of its characters."""

    what: str
    hint: str
    at: int


@dataclass(frozen=True)
class Statement:
    """One SELECT, and the text that it came from."""

    text: str
    tree: exp.Query

    def keyword(self, word: str) -> int:
        """Where a keyword stands first; the beginning of the statement if it does not."""
        tokens = sqlglot.tokenize(self.text, read=DIALECT)
        return next((token.start for token in tokens if token.text.upper().split(" ")[0] == word), 0)

    def place(self, node: exp.Expr) -> int:
        """Where a part of the statement stands, by the first name in it."""
        for inner in node.walk(bfs=False):
            start = inner.meta.get("start")
            if start is not None:
                return int(start)
        return 0

    def scopes(self) -> list[Scope]:
        """Its SELECTs, inner ones first."""
        return traverse_scope(self.tree)

    def selects(self) -> list[exp.Select]:
        """Its SELECTs, inner ones first, without the scopes of table functions."""
        return [scope.expression for scope in self.scopes() if isinstance(scope.expression, exp.Select)]


def parse(text: str) -> Statement | Flaw:
    """The statement of a text, or why it is none."""
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect=DIALECT) if tree is not None]
    except SqlglotError as error:
        return _syntax(text, error)
    if len(trees) != 1:
        return Flaw("a job has one statement", "write one SELECT", 0)
    if not isinstance(trees[0], exp.Query):
        return Flaw("a job has a SELECT", "what the job writes is said under write:", 0)
    return Statement(text, trees[0])


def _syntax(text: str, error: SqlglotError) -> Flaw:
    told = getattr(error, "errors", None) or [{}]
    line, column = told[0].get("line"), told[0].get("col")
    said = str(told[0].get("description") or "this is not SQL").rstrip(".")
    if line is None or column is None:
        return Flaw("this is not SQL", "is a quote or bracket left open?", 0)
    lines = text.splitlines(keepends=True)
    marked = len(told[0].get("highlight") or "")  # the column is that of its end
    at = sum(len(part) for part in lines[: line - 1]) + max(0, column - marked)
    plain = "" if "<class" in said else f": {said[:1].lower()}{said[1:]}"
    return Flaw(f"this is not SQL{plain}", "is a word, comma or bracket missing?", min(at, len(text)))


def unknown_sources(statement: Statement, columns: dict[str, Columns]) -> Iterator[Flaw]:
    """Names behind FROM and JOIN that the job does not read."""
    for scope in statement.scopes():
        for table in scope.tables:
            if table.name in columns or table.name in scope.cte_sources:
                continue
            near = nearest(table.name, columns)
            hint = f"did you mean {near}?" if near else f"its sources are {', '.join(columns)}"
            yield Flaw(f"the job reads no {table.name}", hint, statement.place(table))


def unused_sources(statement: Statement, columns: dict[str, Columns]) -> list[str]:
    """Sources that the SQL does not name."""
    used = {table.name for table in statement.tree.find_all(exp.Table)}
    return [alias for alias in columns if alias not in used]


def unknown_columns(statement: Statement, columns: dict[str, Columns]) -> Iterator[Flaw]:
    """Every name that no source has, with its place."""
    for scope in statement.scopes():
        if not isinstance(scope.expression, exp.Select):
            continue
        known = {alias: _of(source, columns) for alias, source in scope.sources.items()}
        for column in scope.columns:
            if not isinstance(column.this, exp.Star) and not _in_lambda(column):
                yield from _column(statement, column, known, _made_beside(scope.expression, column))


def _column(
    statement: Statement, column: exp.Column, known: dict[str, list[str]], made: set[str]
) -> Iterator[Flaw]:
    everything = {name for names in known.values() for name in names}
    at = statement.place(column)
    if not column.table:
        # What a SELECT makes can be used in its GROUP BY and HAVING.
        if column.name.lower() not in everything | made:
            yield Flaw(f"no source has a column {column.name}", _near(column.name, everything), at)
    elif column.table == PERIOD and PERIOD in everything:
        if column.name.lower() not in _PERIOD_FIELDS:
            yield Flaw(f"a period has no {column.name}", "period.start or period.end", at)
    elif column.table not in known:
        if column.table.lower() not in everything:  # else a field of an object
            yield Flaw(f"there is no {column.table} here", _near(column.table, known), at)
    elif column.name.lower() not in known[column.table]:
        near = _near(column.name, known[column.table])
        yield Flaw(f"{column.table} has no column {column.name}", near, at)


def _made_beside(select: exp.Select, column: exp.Column) -> set[str]:
    """The names that a SELECT gives, but for the one that is made of this very column."""
    own = column.find_ancestor(exp.Alias, exp.Select)
    return {one.alias.lower() for one in select.selects if isinstance(one, exp.Alias) and one is not own}


def outputs(statement: Statement, columns: dict[str, Columns]) -> list[str]:
    """The names of the columns that come out, `*` written out; an empty name where there is none."""
    scope = statement.scopes()[-1]
    return _made(scope, columns)


def _made(scope: Scope, columns: dict[str, Columns]) -> list[str]:
    if scope.set_operation_scopes:
        return _made(scope.set_operation_scopes[0], columns)
    names: list[str] = []
    assert isinstance(scope.expression, exp.Query)
    for one in scope.expression.selects:
        if not one.is_star:
            names.append(one.output_name.lower())
            continue
        chosen = one.table if isinstance(one, exp.Column) else ""
        for alias, source in scope.selected_sources.items():
            if chosen in ("", alias):
                names += _of(source[1], columns)
    return names


def _of(source: exp.Table | Scope, columns: dict[str, Columns]) -> list[str]:
    if isinstance(source, exp.Table):
        return list(columns.get(source.name, ()))
    if source.is_udtf:
        alias = source.expression.args.get("alias")
        return [name.name.lower() for name in alias.columns] if alias is not None else []
    return _made(source, columns)


def _in_lambda(column: exp.Column) -> bool:
    around = column.find_ancestor(exp.Lambda)
    return around is not None and column.name in {name.name for name in around.expressions}


def _near(name: str, known: Iterable[str]) -> str:
    names = [one for one in known if not one.startswith("_")]
    near = nearest(name, names)
    return f"did you mean {near}?" if near else f"there are {', '.join(sorted(names))}"
