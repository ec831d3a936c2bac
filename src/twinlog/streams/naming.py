"""What a question in SQL may be asked of: topics, tables and lakes, by the names that they have there. Pure.

Names in SQL have no dots and dashes; those become underscores. A table or lake goes before a topic of
the same name, which can always be called `topic_NAME`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from twinlog.errors import UsageError
from twinlog.spec.model import Bus
from twinlog.spec.streams import Kind, Source
from twinlog.spec.wording import nearest
from twinlog.streams.statement import DIALECT

TOPIC = "topic"


@dataclass(frozen=True)
class Named:
    """One thing that can be asked."""

    kind: str  # topic, table or lake
    name: str  # of the topic or job
    source: Source  # how its records are understood


def names(bus: Bus) -> dict[str, Named]:
    """Everything that can be asked, by its name in SQL."""
    known: dict[str, Named] = {}
    understood = {
        source.topic: source
        for job in reversed(tuple(bus.streams.values()))
        for source in job.read.values()
        if source.topic is not None
    }
    for topic in bus.topics:
        named = Named(TOPIC, topic, understood.get(topic, Source(topic=topic)))
        known[plain(topic)] = known[f"{TOPIC}_{plain(topic)}"] = named
    for name, job in bus.streams.items():
        if job.kind in (Kind.TABLE, Kind.LAKE):
            known[plain(name)] = Named(job.kind.value, name, next(iter(job.read.values())))
    return known


def plain(name: str) -> str:
    """A name as SQL takes it."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name).lower()


def asked(sql: str, known: dict[str, Named]) -> dict[str, Named]:
    """What a question names, of what is known."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=DIALECT) if tree is not None]
    except SqlglotError as error:
        raise UsageError("this is not SQL", hint=str(error).splitlines()[0]) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise UsageError("a question is one SELECT", hint="twinlog sql 'SELECT count(*) AS n FROM orders'")
    made = {cte.alias for cte in trees[0].find_all(exp.CTE)}
    found: dict[str, Named] = {}
    for table in trees[0].find_all(exp.Table):
        name = table.name.lower()
        if name in known:
            found[name] = known[name]
        elif name not in made:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
            raise UsageError(f"nothing here is called {table.name}", hint=hint)
    return found
