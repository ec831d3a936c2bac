"""What is sent in a measurement."""

from __future__ import annotations

from itertools import islice

import pytest

from twinlog.errors import UsageError
from twinlog.perf import payloads


@pytest.mark.parametrize("record_bytes", [1, 100, 1000, 1_000_000])
def test_random_records_have_their_size_and_do_not_repeat_within_many_pieces(record_bytes: int) -> None:
    values = payloads.random_values(record_bytes)
    assert {len(value) for value in values} == {record_bytes}
    assert record_bytes < 8 or len(set(values)) == len(values)
    assert len(values) >= payloads.LEAST_PIECES * payloads.piece_records(record_bytes)
    assert set(b"".join(values[:100])) <= set(range(ord("A"), ord("Z") + 1))


def test_pieces_go_on_for_ever_with_all_values_in_their_order() -> None:
    values = [b"%d" % number for number in range(1200)]
    taken = [record["value"] for piece in islice(payloads.pieces(values), 6) for record in piece]
    assert taken == values + values


def test_values_of_a_file_are_drawn_from_it_and_the_end_of_the_last_line_is_none() -> None:
    assert set(payloads.chosen_values("one\ntwo\n\nthree\n", "\n")) == {b"one", b"two", b"", b"three"}
    assert set(payloads.chosen_values("a;b", ";")) == {b"a", b"b"}
    with pytest.raises(UsageError):
        payloads.chosen_values("", "\n")


def test_counting_goes_on_over_pieces() -> None:
    taken = [record["value"] for piece in islice(payloads.counting_pieces(), 3) for record in piece]
    assert taken == [b"%d" % number for number in range(3 * payloads.PIECE_RECORDS)]
