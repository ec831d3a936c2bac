"""From file to bus: finding it, all problems at once, warnings, and text of any kind."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from twinlog.errors import FileProblems, UsageError
from twinlog.spec.file import Loaded, find
from twinlog.spec.load import load, parse
from twinlog.spec.template import starter

SMALLEST = "bus: orders\nsites:\n  a:\n  b:\n"
FILE = Path("twinlog.yaml")


def loaded(text: str) -> Loaded:
    return parse(text.encode(), FILE, {})


def problems_of(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(FileProblems) as caught:
        loaded(text)
    return [(problem.line, problem.column, problem.what) for problem in caught.value.problems]


def test_smallest_file_has_all_defaults() -> None:
    bus = loaded(SMALLEST).bus
    assert bus.active_site == "a"
    assert [len(site.broker_specs) for site in bus.sites.values()] == [3, 3]


def test_file_is_found_upward_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "twinlog.yaml").write_text(SMALLEST)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert find(deep, {}) == tmp_path / "twinlog.yaml"


def test_file_named_by_the_environment_is_taken(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(SMALLEST)
    assert find(tmp_path, {"TWINLOG_FILE": "other.yaml"}) == tmp_path / "other.yaml"
    with pytest.raises(UsageError, match=r"no file none\.yaml"):
        find(tmp_path, {"TWINLOG_FILE": "none.yaml"})


def test_no_file_anywhere_hints_at_init(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find(tmp_path, {})
    assert caught.value.hint == "twinlog init"


def test_directory_instead_of_a_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, {})
    assert not isinstance(caught.value, FileProblems)


def test_all_problems_come_at_once_and_in_order() -> None:
    text = """\
bus: Orders
sites:
  a: {brokers: three, controler: 3}
  b: {controllers: 2, kafka: {node.id: 3}}
  c: {}
active: d
topics:
  orders: {partitions: 0, retention: 7}
  internal: {min_insync: 4, replication: 3}
users:
  shop: {produce: [order], password: hunter2}
gate: {adress: x}
certificates: {renew_before: 400d}
"""
    assert problems_of(text) == [
        (1, 6, "'Orders' is not a bus name"),
        (3, 16, "expected a whole number or a list, found 'three'"),
        (3, 23, "unknown key controler"),
        (4, 20, "2 controllers survive no more losses than 1"),
        (4, 31, "node.id is set by Twinlog itself"),
        (5, 3, "a bus has at most two sites, found 3"),
        (6, 9, "there is no site 'd'"),
        (8, 24, "partitions must be at least 1, found 0"),
        (8, 38, "'7' has no unit of time"),
        (11, 20, "there is no topic order"),
        (11, 38, "expected a mapping, found something else"),
        (12, 8, "unknown key adress"),
        (13, 30, "certificates of 365d would be renewed 400d before their end: always"),
    ]


def test_rule_about_a_part_of_the_wrong_type_does_not_judge_its_default() -> None:
    text = "bus: orders\nsites: {a: {brokers: five}, b: {brokers: 5}}\ntopics: {orders: {replication: 4}}\n"
    assert problems_of(text) == [(2, 22, "expected a whole number or a list, found 'five'")]


def test_topic_left_out_for_its_name_is_not_missed_by_users() -> None:
    text = SMALLEST + "topics: {my orders: {}}\nusers: {shop: {produce: [orders]}}\n"
    assert [what for _, _, what in problems_of(text)] == ["'my orders' is not a topic name"]


def test_merge_takes_what_is_not_said_again() -> None:
    text = SMALLEST + (
        "topics:\n  orders: &base {partitions: 6, min_insync: 2}\n"
        "  accounts:\n    <<: *base\n    partitions: 3\n  both: {<<: [{partitions: 9}, *base]}\n"
    )
    topics = loaded(text).bus.topics
    assert (topics["accounts"].partitions, topics["accounts"].min_insync) == (3, 2)
    assert (topics["both"].partitions, topics["both"].min_insync) == (9, 2)


def test_merged_value_has_the_place_where_it_was_written() -> None:
    text = SMALLEST + "topics:\n  orders: &base {replication: 4}\n  accounts: {<<: *base}\n"
    assert {(line, column) for line, column, _ in problems_of(text)} == {(6, 31)}


def test_numbers_are_what_yaml_1_2_says() -> None:
    text = SMALLEST + "topics:\n  1: {partitions: 0x10}\n  on: {partitions: 1_000}\n  null: {}\n"
    topics = loaded(text).bus.topics
    assert {name: topic.partitions for name, topic in topics.items()} == {"1": 16, "on": 1000, "null": 1}


def test_bytes_that_are_no_text_have_a_place() -> None:
    with pytest.raises(FileProblems) as caught:
        parse(b"bus: orders\nsites: \xff\n", FILE, {})
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (2, 8)


def test_byte_order_mark_is_no_problem() -> None:
    assert parse(b"\xef\xbb\xbf" + SMALLEST.encode(), FILE, {}).bus.bus == "orders"


def test_starter_loads_with_nothing_but_the_doubt_about_controllers() -> None:
    result = loaded(starter("my-bus"))
    assert result.bus.bus == "my-bus"
    assert {warning.what for warning in result.warnings} == {"one controller: losing it stops the site"}
    assert {warning.severity for warning in result.warnings} == {"warning"}


MARKS = "&*!|>%@`'\"#,[]{}?:-<~\t\n\r \0\x85\u2028\ufeff"
PIECES = (
    "<<",
    "---",
    "...",
    "bus",
    "sites",
    "*a",
    "&a ",
    ": ",
    "\n  ",
    "1e999",
    "0x",
    "!!int",
    "%YAML 1.1\n",
)
WORDS = st.sampled_from([*MARKS, *PIECES])


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(), st.lists(WORDS, max_size=30).map("".join)))
@example("{" * 600)
@example("- " * 2000)
@example("a: &a [*a, *a]\n")
@example("? &a a\n: *a\n")
@example("a: !!int x\nb: !!float y\nc: !!bool z\n")
@example("bus: 1" + "0" * 5000)
def test_arbitrary_text_raises_nothing_but_problems(text: str) -> None:
    try:
        parse(text.encode("utf-8", "surrogatepass"), FILE, {})
    except FileProblems as error:
        assert error.problems
        assert all(problem.line >= 1 and problem.column >= 1 and problem.what for problem in error.problems)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-5, 70000), st.floats(), st.text(max_size=8))
PARTS = ("bus", "sites", "a", "b", "topics", "orders", "users", "shop", "gate", "kafka", "config", "password")
FIELDS = ("brokers", "controllers", "data", "port", "listen", "bootstrap", "client", "message.max.bytes")
KEYS = st.sampled_from([*PARTS, *FIELDS, "retention", "quota"])
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(KEYS, TREES, max_size=6))
def test_arbitrary_content_raises_nothing_but_problems(data: dict[str, object]) -> None:
    stream = io.StringIO()
    YAML(typ="safe", pure=True).dump(data, stream)
    try:
        parse(stream.getvalue().encode("utf-8", "surrogatepass"), FILE, {})
    except FileProblems as error:
        assert error.problems
