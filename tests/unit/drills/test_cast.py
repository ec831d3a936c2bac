"""Names of records, and what the program of a client is told."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from twinlog.drills.cast import EVERYBODY, JAVA_ALL, TRANSACTIONS, Names, Part, Program

NAMES = Names.of(EVERYBODY)


def test_everybody_has_a_name_and_a_history_of_its_own() -> None:
    assert len({client.name for client in EVERYBODY}) == len(EVERYBODY)
    assert all(client.writes != bool(client.group) for client in EVERYBODY)


def test_prefixes_of_java_are_turned_back_into_names() -> None:
    assert NAMES.value(f"{NAMES.prefix(JAVA_ALL)}.99".encode()) == "java-all:99"


@given(st.text())
def test_values_of_others_stay_as_they_are(text: str) -> None:
    if text.partition(".")[0] not in NAMES.prefixes:
        assert NAMES.value(text) == text


def test_value_that_is_no_text_or_nothing_still_has_a_name() -> None:
    assert NAMES.value(b"\xff") == "\\xff"
    assert NAMES.value(None) == ""


def test_part_survives_its_file() -> None:
    part = Part(TRANSACTIONS, NAMES, Path("/bus/twinlog.yaml"), Path("/history/one.jsonl"), 12.5)
    assert Part.decode(part.encode()) == part
    assert Part.decode(part.encode()).client.program is Program.LIBRDKAFKA
