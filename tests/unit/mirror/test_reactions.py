"""What an answer means: the whole table."""

from __future__ import annotations

import pytest

from twinlog.mirror.reactions import Reaction, question, to_append, to_fill
from twinlog.wire import codes

CODES = {codes.name_of(number): number for number in range(-1, 130)}
STOPS = {
    "CORRUPT_MESSAGE",
    "INVALID_RECORD",
    "INVALID_REQUIRED_ACKS",
    "INVALID_TIMESTAMP",
    "INVALID_TOPIC_EXCEPTION",
    "MESSAGE_TOO_LARGE",
    "POLICY_VIOLATION",
    "RECORD_LIST_TOO_LARGE",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
}
DEPOSED = {"CLUSTER_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"}
CHAIN = {"DUPLICATE_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "OUT_OF_ORDER_SEQUENCE_NUMBER"}


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    ("base_offset", "of_kept", "of_link"),
    [
        (100, Reaction.GO, Reaction.GO),
        (99, Reaction.HOLE, Reaction.RENEW),
        (0, Reaction.HOLE, Reaction.RENEW),
        (101, Reaction.REDERIVE, Reaction.REDERIVE),
    ],
)
def test_appended_only_the_expected_offset_goes_on(
    kept: bool, base_offset: int, of_kept: Reaction, of_link: Reaction
) -> None:
    assert to_append(codes.NONE, base_offset, 100, kept=kept) is (of_kept if kept else of_link)


@pytest.mark.parametrize("name", sorted(CODES.keys() - {"NONE"}))
def test_refused_append_each_code_has_its_reaction(name: str) -> None:
    for kept, broken_chain in ((True, Reaction.HOLE), (False, Reaction.RENEW)):
        expected = Reaction.REDERIVE
        if name in STOPS:
            expected = Reaction.STOP
        elif name in DEPOSED:
            expected = Reaction.DEPOSED
        elif name in CHAIN:
            expected = broken_chain
        assert to_append(CODES[name], -1, 100, kept=kept) is expected
        assert to_append(CODES[name], 100, 100, kept=kept) is expected  # the offset of a refusal says nothing


def test_questions_are_asked_about_lasting_refusals_only() -> None:
    assert "max.message.bytes" in question(CODES["MESSAGE_TOO_LARGE"])
    assert {name for name, code in CODES.items() if question(code)} <= STOPS


def test_names_in_the_table_are_codes_of_kafka() -> None:
    assert CODES.keys() >= STOPS | DEPOSED | CHAIN


@pytest.mark.parametrize("log_end", [99, 101, -1])
def test_filled_to_another_log_end_the_standby_is_read_again(log_end: int) -> None:
    assert to_fill(codes.NONE, log_end, 100) is Reaction.REDERIVE


def test_filled_to_the_expected_log_end_goes_on() -> None:
    assert to_fill(codes.NONE, 100, 100) is Reaction.GO


def test_filled_by_a_single_marker_its_code_is_enough() -> None:
    assert to_fill(codes.NONE, None, 100) is Reaction.GO


@pytest.mark.parametrize("name", sorted(CODES.keys() - {"NONE"}))
def test_refused_markers_are_never_taken_for_done(name: str) -> None:
    expected = Reaction.DEPOSED if name in DEPOSED else Reaction.REDERIVE
    assert to_fill(CODES[name], 100, 100) is expected
    assert to_fill(CODES[name], None, 100) is expected
