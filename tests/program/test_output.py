"""Tables, JSON and progress: the pure halves directly, the terminal through the real program."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.program.conftest import SAMPLE_PROGRAM, Sample
from twinlog.cli.failure import wants_json
from twinlog.cli.output import Column, Part, Record, Table, document, plain, to_json
from twinlog.cli.progress import Lines

ESCAPE = "\x1b["


class State(StrEnum):
    UP = "up"


@dataclass(frozen=True)
class Row:
    name: str
    state: State
    directory: Path

    @property
    def length(self) -> int:
        return len(self.name)


ROW = Row("a/1", State.UP, Path("/data"))


def test_table_as_json_has_all_fields_and_shown_properties() -> None:
    shown = Table([Column("name"), Column("length")], [ROW])
    assert document([shown]) == [{"name": "a/1", "state": "up", "directory": "/data", "length": 3}]


def test_several_parts_as_json_are_an_object_by_name() -> None:
    parts: list[Part] = [Record([Column("bus")], {"bus": "orders"}, name="bus"), Table([], [], name="sites")]
    assert document(parts) == {"bus": {"bus": "orders"}, "sites": []}


def test_cell_of_none_says_unknown() -> None:
    assert [plain(value) for value in (None, True, State.UP, ("x", 1), "")] == [
        "unknown",
        "yes",
        "up",
        "x, 1",
        "",
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_json_of_json_is_the_same(value: object) -> None:
    assert to_json(value) == value


@given(st.lists(st.sampled_from(["-o", "--output", "json", "table", "-q", "status", "--output=json"])))
def test_json_wish_is_never_taken_from_behind_two_dashes(args: list[str]) -> None:
    assert not wants_json(["exec", "--", *args])


def test_rows_in_a_pipe_have_no_colour_no_padding_and_no_wrapping(sample: Sample) -> None:
    end = sample("rows", "-q")
    assert end.stdout.splitlines() == [
        "BROKER  STATE  ADDRESS",
        "     0  up     127.0.0.1:9000",
        "     1  up     127.0.0.1:9001",
        "     2  up     127.0.0.1:9002",
    ]
    assert end.stderr == ""


def test_rows_with_json_and_no_terminal_show_no_progress(sample: Sample) -> None:
    end = sample("rows", "-o", "json")
    assert [row["broker"] for row in json.loads(end.stdout)] == [0, 1, 2]
    assert end.stderr == ""


def test_progress_in_a_pipe_is_plain_lines_on_stderr(sample: Sample) -> None:
    lines = sample("rows").stderr.splitlines()
    assert [line.split("] ")[1] for line in lines] == [
        "counting",
        "counting: 1 of 3",
        "counting: 2 of 3",
        "counting: 3 of 3",
        "counting: 3 found",
    ]


def _on_terminal(environment: dict[str, str], *args: str) -> str:
    """What a terminal of 80 columns receives from a sample command."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*SAMPLE_PROGRAM, "sample", *args],
        env=environment | {"TERM": "xterm", "COLUMNS": "80"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        received = b"".join(_until_closed(ours))
    os.close(ours)
    return received.decode()


def _until_closed(handle: int) -> Iterator[bytes]:
    try:
        while piece := os.read(handle, 4096):
            yield piece
    except OSError:  # Linux says EIO when the other end of a terminal is gone
        return


def test_rows_on_a_terminal_are_coloured_and_progress_is_live(environment: dict[str, str]) -> None:
    text = _on_terminal(environment, "rows")
    assert "counting: 3 found" in text
    assert "\x1b[32mup" in text
    assert "BROKER" in text


def test_rows_on_a_terminal_with_no_color_have_no_escape(environment: dict[str, str]) -> None:
    assert ESCAPE not in _on_terminal(environment | {"NO_COLOR": "1"}, "rows", "-q")


def test_error_on_a_terminal_follows_the_ended_display(environment: dict[str, str]) -> None:
    text = _on_terminal(environment | {"NO_COLOR": "1"}, "site").replace("\r\n", "\n")
    assert text.endswith("error: broker a/1 ended\n  where: site a\n  hint: twinlog logs a\n")


def test_long_task_gets_a_line_at_its_end_and_a_short_one_does_not() -> None:
    now = [100.0]
    stream = io.StringIO()
    lines = Lines(stream, clock=lambda: now[0])
    lines.begin("starting broker a/1")
    lines.begin("starting broker a/2")
    now[0] = 100.5
    lines.end("starting broker a/1")
    now[0] = 103.2
    lines.end("starting broker a/2")
    lines.note("both are up")
    assert stream.getvalue().splitlines() == [
        "[  0.0s] starting broker a/1",
        "[  0.0s] starting broker a/2",
        "[  3.2s] starting broker a/2: done",
        "[  3.2s] both are up",
    ]
