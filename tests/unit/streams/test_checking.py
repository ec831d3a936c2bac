"""Jobs that cannot be run are refused with their place in the file, those that can are let through."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import FileProblems, Problem
from twinlog.spec.file import Loaded
from twinlog.spec.load import parse
from twinlog.streams import checking, statement

HEAD = """\
bus: mill
sites: {a: {brokers: 1}}
topics: {lines: {}, counts: {}, orders: {partitions: 3}, payments: {}, turbines: {}, bad: {}, out: {}}
streams:
  known:
    kind: table
    read: {turbines: {topic: turbines, key: int, value: {format: json, fields: {place: string, kw: double}}}}
    dead_letters: bad
"""
ORDERS = "{topic: orders, key: string, value: {format: json, fields: {id: long, turbine: int, at: timestamp}}"
PAYMENTS = "{topic: payments, key: string, value: {format: json, fields: {of: long, paid: timestamp}}"


def load(job: str) -> Loaded:
    return parse((HEAD + indent(dedent(job), "  ")).encode(), Path("twinlog.yaml"), {})


def problems(job: str) -> list[Problem]:
    """What is wrong with a file that has this job, be it found by the loader or in the SQL."""
    try:
        checking.check(load(job))
    except FileProblems as found:
        return list(found.problems)
    return []


def in_file(job: str, problem: Problem) -> str:
    """What stands in the file at the place of a problem."""
    lines = (HEAD + indent(dedent(job), "  ")).splitlines()
    return lines[problem.line - 1][problem.column - 1 :]


WORDS = """\
words:
  kind: aggregate
  read: {lines: {topic: lines, value: string}}
  sql: |
    SELECT word, count(*) AS n
    FROM (SELECT explode(split(value, ' ')) AS word FROM lines)
    GROUP BY word
  write: {topic: counts, key: {column: word, format: string}}
  dead_letters: bad
"""
TOTALS = """\
totals:
  kind: aggregate
  read: {orders: ORDERS, time: at, watermark: 10m}}
  window: WINDOW
  sql: |
    SELECT period.start AS begin, period.end AS over, turbine, count(*) AS n
    FROM orders GROUP BY period, turbine
  write: {topic: counts}
  dead_letters: bad
""".replace("ORDERS", ORDERS)
MINUTES = TOTALS.replace("WINDOW", "{size: 1m}")
PAID = """\
paid:
  kind: join
  read:
    o: ORDERS, time: at, watermark: 10m}
    p: PAYMENTS, time: paid, watermark: 10m}
  sql: |
    SELECT o.id, o.at, p.paid
    FROM o JOIN p ON o.id = p.of AND p.paid BETWEEN o.at - INTERVAL 1 HOUR AND o.at + INTERVAL 1 HOUR
  write: {topic: out}
  dead_letters: bad
""".replace("ORDERS", ORDERS).replace("PAYMENTS", PAYMENTS)
PLACED = """\
placed:
  kind: join
  read:
    o: ORDERS}
    t: {table: known, everywhere: true}
  sql: SELECT o.id, t.place FROM o LEFT JOIN t ON o.turbine = t.key
  write: {topic: out, key: {column: id, format: long}}
  dead_letters: bad
""".replace("ORDERS", ORDERS)
BIG = """\
big:
  read: {o: ORDERS}}
  sql: SELECT id, turbine FROM o WHERE turbine > 5
  write: {topic: out}
  dead_letters: bad
""".replace("ORDERS", ORDERS)

DAYS = """\
days:
  kind: lake
  read: {o: ORDERS, time: at}}
  path: /data/orders
  dead_letters: bad
""".replace("ORDERS", ORDERS)

MESSAGE = """'message R { int64 id = 1; string place = 2; }'"""
IN_AVRO = """\
filed:
  read:
    o:
      topic: orders
      value:
        format: avro
        record: {type: record, name: Order, fields: [{name: orderId, type: long}, {name: at, type: string}]}
  sql: SELECT orderid AS id, upper(at) AS place FROM o
  write: {topic: out, value: {format: protobuf, message: MESSAGE}}
  dead_letters: bad
""".replace("MESSAGE", MESSAGE)
CLEANED = """\
cleaned:
  read: {o: ORDERS}}
  function: {call: "park.clean:fix", gives: {id: long, place: string}}
  write: {topic: out, key: {column: id, format: long}}
  dead_letters: bad
""".replace("ORDERS", ORDERS)


@pytest.mark.parametrize(
    "job",
    [
        WORDS,
        IN_AVRO,
        CLEANED,
        CLEANED.replace(
            "key: {column: id, format: long}", f"value: {{format: protobuf, message: {MESSAGE}}}"
        ),
        DAYS,
        TOTALS.replace("WINDOW", "{size: 1m}"),
        TOTALS.replace("WINDOW", "{size: 10m, every: 1m}"),
        TOTALS.replace("WINDOW", "{session: 5m}"),
        PAID,
        PAID.replace("JOIN p", "LEFT OUTER JOIN p"),
        PAID.replace("p.paid BETWEEN o.at - INTERVAL 1 HOUR AND", "paid >= at AND paid <="),
        PLACED,
        BIG,
        BIG.replace("SELECT id, turbine", "SELECT *, upper(key) AS loud"),
        BIG.replace("WHERE turbine > 5", "WHERE turbine > 5 UNION ALL SELECT id, turbine FROM o"),
        BIG.replace("SELECT id, turbine FROM o", "WITH w AS (SELECT * FROM o) SELECT id, turbine FROM w"),
    ],
)
def test_job_that_can_go_on_is_let_through(job: str) -> None:
    assert problems(job) == []


@pytest.mark.parametrize(
    ("job", "what", "place"),
    [
        (WORDS.replace("split(value,", "split(valu,"), "no source has a column valu", "valu, ' '"),
        (IN_AVRO.replace("orderid AS", "order_id AS"), "no source has a column order_id", "order_id AS"),
        (IN_AVRO.replace("type: long", "type: lng"), "a type that is not known: lng", "{type: record"),
        (IN_AVRO.replace("AS place", "AS spot"), "the schema has place", "value: {format: protobuf"),
        (IN_AVRO.replace("int64 id = 1", "int64 id"), "this is no field", "'message R"),
        (IN_AVRO.replace("name: orderId", "name: _id"), "_id is no name of a column", "{type: record"),
        (IN_AVRO.replace("format: protobuf", "format: json"), "json has no message", "message: 'message"),
        (
            IN_AVRO.replace(f", message: {MESSAGE}", ""),
            "which schema do these protobuf",
            "{format: protobuf}",
        ),
        (IN_AVRO.replace("format: avro", "format: string"), "string has no record", "record: {type"),
        (CLEANED.replace("column: id", "column: of"), "no column of comes out of the function", "of, format"),
        (CLEANED.replace("park.clean:fix", "park.clean"), "not the name of a function", '"park.clean"'),
        (CLEANED.replace("gives: {id: long, place: string}", "gives: {}"), "which columns does it", "{}}"),
        (CLEANED.replace("  dead_letters: bad\n", ""), "for which the function fails", "function: {call"),
        (CLEANED.replace("  function", "  sql: SELECT 1 AS id\n  function"), "not both", "function: {call"),
        (
            CLEANED.replace("  read", "  kind: aggregate\n  read"),
            "a function is for streams",
            "function: {call",
        ),
        (WORDS.replace("FROM lines", "FROM line"), "the job reads no line", "line)"),
        (WORDS.replace("GROUP BY word", "GROUP BY word ORDER BY n"), "ORDER needs an end", "ORDER BY n"),
        (WORDS.replace("    GROUP BY word\n", ""), "an aggregate has groups", "SELECT word"),
        (WORDS.replace("AS n\n", "\n"), "a column that comes out needs a name", "count(*)"),
        (WORDS.replace("count(*)", "count(DISTINCT word)"), "DISTINCT would keep every value", "DISTINCT"),
        (WORDS.replace("column: word", "column: wort"), "no column wort comes out", "wort"),
        (WORDS.replace("count(*)", "sum(rand())"), "rand() says something else", "rand()"),
        (MINUTES.replace("GROUP BY period, ", "GROUP BY "), "not among", "GROUP"),
        (MINUTES.replace(", watermark: 10m", ""), "has no watermark", "orders:"),
        (MINUTES.replace("period.end", "period.stop"), "a period has no", "stop"),
        (MINUTES.replace("time: at", "time: id"), "id is a long", "id, water"),
        (PAID.replace("paid, watermark: 10m", "paid"), "p has no watermark", "p: {topic"),
        (PAID.replace("o.id = p.of AND ", ""), "a join needs equal columns", "JOIN p"),
        (PAID.replace("o.at - INTERVAL 1 HOUR AND", "p.paid AND"), "nothing says how long o and p", "JOIN p"),
        (PAID.replace("JOIN p", "LEFT SEMI JOIN p"), "a LEFT SEMI JOIN of streams", "JOIN p"),
        (PLACED.replace("LEFT JOIN", "RIGHT JOIN"), "rows of the table t out", "JOIN t"),
        (PLACED.replace("LEFT JOIN t ON o.turbine = t.key", "CROSS JOIN t"), "CROSS JOIN", "JOIN t"),
        (PLACED.replace("t.place", "t.plase"), "t has no column plase", "plase FROM"),
        (PLACED.replace("table: known", "table: knwon"), "there is no table knwon", "knwon"),
        (BIG.replace("SELECT id, turbine", "SELECT count(*) AS n"), "count() counts over", "count(*)"),
        (BIG.replace("> 5", "> (SELECT max(id) FROM o)"), "a SELECT inside an expression", "max(id) FROM"),
        (BIG.replace("WHERE", "WERE"), "this is not SQL", "turbine > 5"),
        (BIG.replace("turbine > 5", "turbine > 5 LIMIT 3"), "LIMIT needs an end", "LIMIT 3"),
        (BIG.replace("SELECT id,", "SELECT turbine AS id, id,"), "two columns are called id", "SELECT tur"),
        (BIG.replace("topic: out", "topic: orders"), "read and written without an end", "orders"),
        (BIG.replace("  dead_letters: bad\n", ""), "where do records go whose key is no string", "string"),
        (BIG.replace("sql:", "path: /data/big\n  sql:"), "path is for lakes", "path: /data"),
        (DAYS.replace("path: /data/orders", "write: {topic: out}"), "a lake is no topic", "write"),
        (DAYS.replace("path:", "sql: SELECT 1 AS one FROM o\n  path:"), "has no SQL", "sql: SELECT"),
        (WORDS.replace("sql: |", "sql: >").replace("(value,", "(valu,"), "no source has a column valu", ">"),
        (BIG.replace("sql:", "window: {size: 1m}\n  sql:"), "window is for aggregates", "window"),
    ],
)
def test_job_that_cannot_go_on_is_refused_at_its_place(job: str, what: str, place: str) -> None:
    found = problems(job)
    matching = [problem for problem in found if what in problem.what]
    assert matching, [problem.what for problem in found]
    assert in_file(job, matching[0]).startswith(place)
    assert matching[0].hint


def test_all_problems_of_all_jobs_are_told_at_once() -> None:
    wrong = WORDS.replace("split(value,", "split(valu,") + BIG.replace("SELECT id,", "SELECT idd,")
    assert [problem.what for problem in problems(wrong)] == [
        "no source has a column valu",
        "no source has a column idd",
    ]


def test_tasks_that_never_end_must_leave_slots_for_others() -> None:
    real_time = BIG + "  guarantee: at-least-once\n"
    text = HEAD.replace("streams:", "pipeline: {master: 'local[3]'}\nstreams:") + indent(real_time, "  ")
    assert problems(real_time) == []
    with pytest.raises(FileProblems, match="3 tasks in real-time mode never end"):
        checking.check(parse(text.encode(), Path("twinlog.yaml"), {}))


def test_bus_with_jobs_has_their_user_and_topic() -> None:
    bus = load(WORDS).bus
    assert bus.users["streams"].consume == ("lines", "turbines", "twinlog-streams")
    assert bus.users["streams"].produce == ("bad", "counts", "twinlog-streams")
    assert bus.topics["twinlog-streams"].cleanup == "compact"


def test_bus_without_jobs_has_no_user_of_theirs() -> None:
    loaded = parse(b"bus: mill\nsites: {a: {brokers: 1}}\n", Path("twinlog.yaml"), {})
    assert loaded.bus.users == {}


@given(st.text(alphabet="SELCTFROMabc ,.*()'\"=1;\n", max_size=60))
def test_any_text_is_a_statement_or_has_a_flaw_within_it(text: str) -> None:
    found = statement.parse(text)
    if isinstance(found, statement.Flaw):
        assert 0 <= found.at <= len(text)
        assert found.what and found.hint


@pytest.mark.parametrize(
    ("sites", "warned"), [("{a: {brokers: 1}}", False), ("{a: {brokers: 1}, b: {}}", True)]
)
def test_job_on_a_topic_that_is_not_mirrored_is_warned_of(sites: str, warned: bool) -> None:
    text = (HEAD + indent(BIG, "  ")).replace("{a: {brokers: 1}}", sites, 1)
    loaded = parse(text.replace("partitions: 3", "mirror: false").encode(), Path("twinlog.yaml"), {})
    found = [one.what for one in loaded.warnings if "is not mirrored" in one.what]
    assert bool(found) == warned
