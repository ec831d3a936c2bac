"""In a pipe tables are drawn without rich, and look as rich would draw them."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.cli.test_grids import printed
from twinlog.cli import grids, unlimited
from twinlog.cli.output import Column, Part, Record, Table, drawn, simply_drawn

TEXTS = st.text("ab 1-.,:/[]{}\\", max_size=20) | st.text(max_size=8)
WIDTH = 4000


@st.composite
def columns(draw: st.DrawFn, rows: int) -> list[unlimited.Strip]:
    """Columns with as many cells each."""
    cells = st.lists(TEXTS, min_size=rows, max_size=rows)
    count = draw(st.integers(1, 5))
    return [unlimited.Strip(draw(TEXTS), draw(cells), draw(st.booleans())) for _ in range(count)]


def for_rich(strips: list[unlimited.Strip]) -> list[grids.Strip]:
    return [grids.Strip(one.heading, [grids.Cell(text) for text in one.cells], one.right) for one in strips]


@given(st.integers(1, 4).flatmap(columns))
@example([unlimited.Strip("\\[", [""])])
def test_a_table_is_drawn_as_rich_draws_it_or_left_to_it(strips: list[unlimited.Strip]) -> None:
    lines = unlimited.table(strips, WIDTH)
    assert lines is None or lines == printed(grids.Rows(for_rich(strips)), WIDTH)


@given(columns(1))
def test_fields_are_drawn_as_rich_draws_them_or_left_to_it(strips: list[unlimited.Strip]) -> None:
    lines = unlimited.fields(strips, WIDTH)
    assert lines is None or lines == printed(grids.Fields(for_rich(strips)), WIDTH)


def test_a_line_longer_than_the_room_and_a_text_of_two_lines_are_left_to_rich() -> None:
    assert unlimited.table([unlimited.Strip("a", ["x" * 30])], 20) is None
    assert unlimited.fields([unlimited.Strip("a", ["x" * 30])], 20) is None
    assert unlimited.table([unlimited.Strip("a", ["x\ny"])], WIDTH) is None
    assert unlimited.fields([unlimited.Strip("a", ["日本"])], WIDTH) is None


def test_an_answer_of_several_parts_is_drawn_as_rich_draws_it() -> None:
    parts: list[Part] = [
        Table([Column("topic"), Column("partitions", right=True)], [{"topic": "a", "partitions": 12}], "one"),
        Table([Column("topic")], [], "none", empty="no topics"),
        Record([Column("name"), Column("is_up")], {"name": "b", "is_up": True}, "record"),
    ]
    wanted = [line for part in drawn(parts) for line in printed(part, WIDTH)]
    assert simply_drawn(parts) == "".join(f"{line}\n" for line in wanted)
