"""How salvaged keys and values are shown: whatever they hold, a terminal only prints it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.cli.salvage import LONGEST_CELL, cell, text_of


@given(st.binary(max_size=200))
def test_no_byte_of_a_record_reaches_the_terminal_as_a_command(content: bytes) -> None:
    text, _ = text_of(content)
    shown = cell(text)
    assert shown.isprintable()
    assert len(shown) <= LONGEST_CELL


@given(st.one_of(st.text(max_size=50).map(str.encode), st.binary(max_size=50)))
def test_the_bytes_can_be_had_back_from_what_scripts_get(content: bytes) -> None:
    text, is_hexadecimal = text_of(content)
    assert text is not None
    assert (bytes.fromhex(text) if is_hexadecimal else text.encode()) == content


def test_null_is_not_taken_for_empty() -> None:
    assert (text_of(None), text_of(b"")) == ((None, False), ("", False))
    assert (cell(None), cell("")) == ("null", "")
