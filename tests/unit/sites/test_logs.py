"""Logs of several nodes as one stream."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.sites.layout import Kind, Node
from twinlog.sites.logs import Entry, follow, history, in_order, parse


def node(directory: Path, number: int) -> Node:
    own = directory / f"broker-{number}"
    (own / "log").mkdir(parents=True)
    return Node("a", number, Kind.BROKER, own, (), (), "127.0.0.1", "127.0.0.1", {}, 1)


def write(node: Node, name: str, *lines: str) -> None:
    with (node.directory / "log" / name).open("a") as file:
        file.writelines(line + "\n" for line in lines)


def test_entries_of_two_nodes_are_merged_by_time(tmp_path: Path) -> None:
    first, second = node(tmp_path, 1), node(tmp_path, 2)
    write(
        first,
        "server.log",
        "2026-01-01T00:00:01.000Z INFO  one (x)",
        "2026-01-01T00:00:03.000Z INFO  three (x)",
    )
    write(second, "server.log", "2026-01-01T00:00:02.000Z WARN  two (x)")
    found = [(entry.node, entry.text) for entry in history([first, second])]
    assert found == [("a/broker-1", "one (x)"), ("a/broker-2", "two (x)"), ("a/broker-1", "three (x)")]


def test_a_stack_trace_stays_with_its_entry() -> None:
    lines = ["2026-01-01T00:00:01.000Z ERROR it broke (x)", "java.lang.Error: why", "\tat somewhere"]
    (entry,) = parse("a/broker-1", lines)
    assert entry.level == "ERROR"
    assert entry.text.splitlines() == ["it broke (x)", "java.lang.Error: why", "\tat somewhere"]


def test_a_handshake_line_of_the_jvm_is_an_entry() -> None:
    line = "javax.net.ssl|DEBUG|91|thread-1|2026-01-01 00:00:01.500 UTC|X.java:5|Produced ClientHello"
    (entry,) = parse("a/broker-1", [line])
    assert entry.level == "TLS"
    assert entry.time == datetime(2026, 1, 1, 0, 0, 1, 500000, tzinfo=UTC)


def test_a_handshake_in_the_hour_behind_midnight_is_of_the_day_that_begins() -> None:
    line = "javax.net.ssl|DEBUG|91|thread-1|2026-01-02 24:29:01.500 UTC|X.java:5|Produced ClientHello"
    (entry,) = parse("a/broker-1", [line])
    assert entry.time == datetime(2026, 1, 2, 0, 29, 1, 500000, tzinfo=UTC)


def test_rolled_files_are_read_before_the_current_one(tmp_path: Path) -> None:
    only = node(tmp_path, 1)
    write(only, "server.log.1", "2026-01-01T00:00:01.000Z INFO  oldest (x)")
    write(only, "server.log.2", "2026-01-01T00:00:02.000Z INFO  middle (x)")
    write(only, "server.log", "2026-01-01T00:00:03.000Z INFO  newest (x)")
    assert [entry.text[:6] for entry in history([only])] == ["oldest", "middle", "newest"]


def test_since_and_grep_leave_out_the_rest(tmp_path: Path) -> None:
    only = node(tmp_path, 1)
    for second in range(5):
        write(only, "server.log", f"2026-01-01T00:00:0{second}.000Z INFO  event {second % 2} (x)")
    since = datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC)
    found = list(history([only], since=since, wanted=re.compile("event 0")))
    assert [entry.time.second for entry in found] == [2, 4]


class Stop(Exception):
    """The test has seen enough."""


def test_follow_shows_what_is_added_and_survives_a_roll(tmp_path: Path) -> None:
    only = node(tmp_path, 1)
    write(only, "server.log", "2026-01-01T00:00:01.000Z INFO  old (x)")
    log = only.directory / "log" / "server.log"
    turns = iter(["new", "rolled", "stop"])

    def wait(_seconds: float) -> None:
        turn = next(turns)
        if turn == "stop":
            raise Stop
        if turn == "rolled":
            log.rename(log.with_name("server.log.1"))
        write(only, "server.log", f"2026-01-01T00:00:02.000Z INFO  {turn} (x)")

    seen = []
    with pytest.raises(Stop):
        for entry in follow([only], wanted=None, wait=wait):
            seen.append(entry.text)
    assert seen == ["new (x)", "rolled (x)"]


@given(st.lists(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=30), max_size=20))
def test_any_lines_are_read_without_an_error(lines: list[str]) -> None:
    list(parse("a/broker-1", lines))


@given(st.lists(st.integers(0, 10_000), max_size=200))
def test_entries_a_little_out_of_place_are_put_in_order(jitter: list[int]) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    entries = [
        Entry(start + timedelta(seconds=number * 10, milliseconds=late), "a/broker-1", "INFO", str(number))
        for number, late in enumerate(jitter)
    ]
    shuffled = [entry for pair in zip(entries[1::2], entries[::2], strict=False) for entry in pair]
    assert list(in_order(shuffled, window=4)) == sorted(shuffled)
