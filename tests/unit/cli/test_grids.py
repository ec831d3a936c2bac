"""Tables in any width: no word is broken, nothing is cut, and what is left out is named."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from twinlog.cli.grids import Cell, Fields, Rows, Strip, fit, laid_out, wrapped

WORDS = st.text("abcdefgh-.:/", min_size=1, max_size=24)
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)


@st.composite
def tables(draw: st.DrawFn) -> list[Strip]:
    """Columns with as many cells each."""
    rows = draw(st.integers(1, 4))
    return [
        Strip(f"h{number} {draw(WORDS)}", draw(cells_of(rows)), draw(st.booleans()), draw(st.booleans()))
        for number in range(draw(st.integers(1, 6)))
    ]


def cells_of(rows: int) -> st.SearchStrategy[list[Cell]]:
    return st.lists(TEXTS.map(Cell), min_size=rows, max_size=rows)


def printed(what: RenderableType, width: int) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(what, crop=False)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1), st.integers(0, 200))
def test_widths_fit_or_cannot(sizes: list[tuple[int, int]], available: int) -> None:
    least = [min(pair) for pair in sizes]
    natural = [max(pair) for pair in sizes]
    widths = fit(natural, least, available)
    if widths is None:
        assert sum(least) > available
        return
    assert all(low <= width <= high for low, width, high in zip(least, widths, natural, strict=True))
    assert sum(widths) <= available
    assert sum(widths) == min(available, sum(natural))


@given(tables(), st.integers(30, 160))
def test_every_word_of_a_table_is_there_whole(strips: list[Strip], width: int) -> None:
    lines = printed(Rows(strips), width)
    layout = laid_out(strips, width)
    left_out = layout.left_out if layout is not None else []
    words = [word for line in lines for word in line.split()]
    for strip in strips:
        if strip.heading not in left_out:
            wanted = [word for cell in strip.cells for word in cell.text.split()]
            assert all(words.count(word) >= wanted.count(word) for word in wanted)
    text = " ".join(words)
    assert all(heading in text for heading in left_out)


@given(tables(), st.integers(30, 160))
def test_line_is_longer_than_the_terminal_only_for_a_word_that_is(strips: list[Strip], width: int) -> None:
    for line in printed(Rows(strips), width):
        assert len(line) <= width or len(line.split()[-1]) + 2 > width


@given(tables())
def test_table_in_a_pipe_has_a_line_for_each_row(strips: list[Strip]) -> None:
    assert len(printed(Rows(strips), 4000)) == 1 + len(strips[0].cells)


def test_spare_columns_are_left_out_from_the_right_and_named() -> None:
    strips = [
        Strip("site", [Cell("a")]),
        Strip("size", [Cell("1.23 MB")], right=True, spare=True),
        Strip("memory", [Cell("512 MB")], right=True, spare=True),
        Strip("note", [Cell("its disk is full")]),
    ]
    assert printed(Rows(strips), 26) == [
        "SITE     SIZE  NOTE",
        "a     1.23 MB  its disk is",
        "               full",
        "… too narrow for: memory",
        "(-o json has them)",
    ]


def test_row_that_no_table_has_room_for_is_a_paragraph_of_its_fields() -> None:
    strips = [
        Strip("address", [Cell("broker-1.example:9092"), Cell("broker-2.example:9092")]),
        Strip("state", [Cell("unknown"), Cell("up")]),
        Strip("note", [Cell("not reached from here"), Cell("")]),
    ]
    assert printed(Rows(strips), 30) == [
        "address  broker-1.example:9092",
        "state    unknown",
        "note     not reached from here",
        "",
        "address  broker-2.example:9092",
        "state    up",
    ]


@pytest.mark.parametrize("width", [10, 20, 40])
def test_path_longer_than_a_line_is_left_whole_on_a_line_of_its_own(width: int) -> None:
    path = "/a/very/long/path/that/no/terminal/of/this/width/shows"
    assert printed(Fields([Strip("log", [Cell(path)])]), width) == ["log", f"  {path}"]


def test_text_of_several_lines_keeps_them() -> None:
    assert wrapped("one two three\n  four", 7) == ["one two", "three", "  four"]
