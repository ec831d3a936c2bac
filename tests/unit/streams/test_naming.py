"""A question in SQL names topics, tables and lakes of the file, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.errors import UsageError
from twinlog.spec.load import parse
from twinlog.streams.naming import Named, asked, names

FILE = b"""\
bus: mill
sites: {a: {brokers: 1}}
topics: {turbines: {}, orders.new: {}, dead: {}}
streams:
  turbines:
    kind: table
    read: {t: {topic: turbines, key: int, value: {format: json, fields: {place: string}}}}
    dead_letters: dead
"""


@pytest.fixture(scope="module")
def known() -> dict[str, Named]:
    return names(parse(FILE, Path("twinlog.yaml"), {}).bus)


def test_table_goes_before_the_topic_of_its_name(known: dict[str, Named]) -> None:
    assert known["turbines"].kind == "table"
    assert known["topic_turbines"].kind == "topic"


def test_topic_is_understood_as_a_job_reads_it(known: dict[str, Named]) -> None:
    assert list(known["topic_turbines"].source.value.fields) == ["place"]
    assert known["orders_new"].name == "orders.new"


def test_question_reads_only_what_it_names(known: dict[str, Named]) -> None:
    sql = "WITH far AS (SELECT * FROM Turbines) SELECT count(*) AS n FROM far JOIN orders_new USING (key)"
    assert sorted(asked(sql, known)) == ["orders_new", "turbines"]


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT * FROM turbins", "nothing here is called turbins"),
        ("DROP TABLE turbines", "a question is one SELECT"),
        ("SELECT (", "this is not SQL"),
        ("SELECT 1; SELECT 2", "a question is one SELECT"),
    ],
)
def test_question_that_cannot_be_asked_is_refused(known: dict[str, Named], sql: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        asked(sql, known)
