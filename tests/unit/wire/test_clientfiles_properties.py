"""Java's properties format and the JAAS line inside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.wire.access import Mechanism
from twinlog.wire.clientfiles import jaas
from twinlog.wire.clientfiles.properties import format_entry, parse

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def pairs(text: str, *raw_keys: str) -> list[tuple[str, str]]:
    return [(entry.key, entry.value) for entry in parse(text, raw_keys)[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", ("a", "b")),
        ("a = b", ("a", "b")),
        ("a:b", ("a", "b")),
        ("a b c", ("a", "b c")),
        ("\t a\t=\tb ", ("a", "b")),
        ("a==b", ("a", "=b")),
        ("a\\=b=c", ("a=b", "c")),
        ("a", ("a", "")),
        ("a=b\\\n   c", ("a", "bc")),
        ("a=b \\\r\n  c\\\r d", ("a", "b cd")),
        ("a=b\\\\\nc=d", ("a", "b\\")),
        ("a=b\\\n# c", ("a", "b# c")),
        ("a=b#c!d", ("a", "b#c!d")),
        ("a=\\u00e4\\ud83d\\ude00\\\\u00", ("a", "ä😀\\u00")),
        ("a=x\\ny\\tz\\q", ("a", "x\ny\tzq")),
        ("a=b\\", ("a", "b")),
    ],
)
def test_entry_is_read_as_java_reads_it(text: str, expected: tuple[str, str]) -> None:
    assert pairs(text)[0] == expected


def test_comments_and_empty_lines_are_left_out_and_places_are_kept() -> None:
    entries, problems = parse("# one\n\n  ! two\n  a=b\\\n  c\nd=e\n")
    assert [(entry.key, entry.line, entry.column) for entry in entries] == [("a", 4, 3), ("d", 6, 1)]
    assert problems == []


def test_raw_keys_keep_backslashes_and_end_with_their_line() -> None:
    assert pairs("p=a\\tb\\\nq=c\\tb", "p") == [("p", "a\\tb\\"), ("q", "c\tb")]


def test_broken_unicode_escape_is_a_problem_with_its_place() -> None:
    entries, problems = parse("a=b\n c=\\u12\n")
    assert [(problem.line, problem.column) for problem in problems] == [(2, 2)]
    assert [entry.key for entry in entries] == ["a"]


@given(TEXT)
def test_written_entry_reads_back_the_same_but_for_blanks_at_its_ends(value: str) -> None:
    text = format_entry("key", value)
    assert text.isascii()
    assert pairs(f"{text}\nnext=1") == [
        ("key", value.strip("".join(map(chr, range(0x21))))),
        ("next", "1"),
    ]


@given(TEXT, TEXT, st.sampled_from(Mechanism))
def test_login_reads_back_the_same(username: str, password: str, mechanism: Mechanism) -> None:
    login = jaas.parse(jaas.render(mechanism, username, password))
    assert login == jaas.Login(jaas.module_of(mechanism), {"username": username, "password": password})


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a.b.M required;", {}),
        ("M required username='u' password=\"p\" ;", {"username": "u", "password": "p"}),
        ('M required\n  username = "a\\"b\\\\c\\101"\n  x=true;', {"username": 'a"b\\cA', "x": "true"}),
        ('M required p=";\'";', {"p": ";'"}),
    ],
)
def test_login_is_read_as_kafka_reads_it(text: str, options: dict[str, str]) -> None:
    assert jaas.parse(text) == jaas.Login("M", options)


@pytest.mark.parametrize(
    "text", ["", "M required", "M;", 'M required username="x;', 'M required "x"="y";', "M required a=;"]
)
def test_text_that_kafka_would_not_take_is_refused(text: str) -> None:
    with pytest.raises(jaas.JaasError):
        jaas.parse(text)
