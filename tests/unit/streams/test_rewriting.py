"""What comes of a record carries its place along, whatever the shape of the SQL."""

from __future__ import annotations

import pytest

from twinlog.spec.streams import Job, Kind, Source, Window
from twinlog.spec.typed import validated
from twinlog.spec.units import Duration
from twinlog.streams.rewriting import for_spark, has_union


def job(sql: str, **more: object) -> Job:
    return validated(Job, {"sql": sql, "read": {"o": {"topic": "orders"}}, **more})


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM o", "SELECT a, o._topic, o._partition, o._offset FROM o"),
        ("SELECT x.a FROM o AS x", "SELECT x.a, x._topic, x._partition, x._offset FROM o AS x"),
        ("SELECT *, 1 AS one FROM o", "SELECT *, 1 AS one FROM o"),
        ("SELECT a, _offset FROM o", "SELECT a, _offset, o._topic, o._partition FROM o"),
        (
            "SELECT w FROM (SELECT explode(a) AS w FROM o)",
            "SELECT w, _topic, _partition, _offset FROM "
            "(SELECT EXPLODE(a) AS w, o._topic, o._partition, o._offset FROM o)",
        ),
        (
            "WITH w AS (SELECT a FROM o) SELECT a FROM w",
            "WITH w AS (SELECT a, o._topic, o._partition, o._offset FROM o) "
            "SELECT a, w._topic, w._partition, w._offset FROM w",
        ),
        (
            "SELECT a FROM o UNION ALL SELECT b FROM o",
            "SELECT a, o._topic, o._partition, o._offset FROM o UNION ALL "
            "SELECT b, o._topic, o._partition, o._offset FROM o",
        ),
    ],
)
def test_sql_of_single_records_gives_their_places(sql: str, expected: str) -> None:
    assert for_spark(job(sql)) == expected


def test_table_in_a_join_has_no_place_to_give() -> None:
    declared = job("SELECT o.a, t.b FROM t RIGHT JOIN o ON o.a = t.key", kind="join")
    declared = declared.but(read={**declared.read, "t": Source(table="known")})
    assert for_spark(declared) == (
        "SELECT o.a, t.b, o._topic, o._partition, o._offset FROM t RIGHT JOIN o ON o.a = t.key"
    )


def test_sessions_are_found_by_sparks_function() -> None:
    sql = "SELECT period.start AS begin, id, count(*) AS n FROM o GROUP BY period, id"
    window = Window(session=Duration(300.0))
    assert for_spark(job(sql, kind=Kind.AGGREGATE, window=window)) == (
        "SELECT session_window.start AS begin, id, COUNT(*) AS n FROM o "
        "GROUP BY SESSION_WINDOW(_time, '300000 milliseconds'), id"
    )


def test_sql_with_state_stays_as_it_was_written() -> None:
    sql = "select a,  count(*) as n from o group by a"
    assert for_spark(job(sql, kind=Kind.AGGREGATE)) == sql


def test_union_is_seen_wherever_it_stands() -> None:
    assert has_union(job("SELECT a FROM (SELECT a FROM o UNION ALL SELECT b FROM o)"))
    assert not has_union(job("SELECT a FROM o"))
