"""What is noted of a site's leader epochs, and what is read again of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.traffic.epochs import OLD_S, Epochs, Noted, after_end, after_restart, decode, encode, problem
from twinlog.wire.topics import Partition

counts = st.dictionaries(st.text(min_size=1, max_size=9), st.lists(st.integers(0, 2**31 - 1), min_size=1))
NOTED = Noted("a", 3, 1000.0, {("orders", 0): 7})


def places(told: dict[str, list[int]]) -> Epochs:
    return {(topic, number): epoch for topic, found in told.items() for number, epoch in enumerate(found)}


@given(counts, st.integers(0, 2**31), st.floats(0, 2**40))
def test_what_was_noted_is_read_again(told: dict[str, list[int]], term: int, at_s: float) -> None:
    noted = Noted("a", term, at_s, places(told))
    assert decode(encode(noted)) == noted


@pytest.mark.parametrize("text", [None, b"", b"[]", b"{}", b'{"site": "a", "epochs": [1]}', b"\xff"])
def test_what_nobody_understands_says_nothing(text: bytes | None) -> None:
    assert decode(text) is None


@pytest.mark.parametrize(
    ("noted", "site", "term", "now_s", "says"),
    [
        (NOTED, "a", 3, 1000.0 + OLD_S, ""),
        (NOTED, "a", 3, 1001.0 + OLD_S, "s ago"),
        (NOTED, "a", 5, 1001.0, "in term 3"),
        (NOTED, "b", 3, 1001.0, "never noted"),
        (None, "a", 3, 1001.0, "never noted"),
    ],
)
def test_a_note_that_may_say_too_little_is_no_surprise(
    noted: Noted | None, site: str, term: int, now_s: float, says: str
) -> None:
    found = problem(noted, site, term, now_s)
    assert says in found and bool(found) == bool(says)


def test_the_same_epochs_are_noted_alike_in_whatever_order_they_come() -> None:
    one = {("orders", 1): 5, ("orders", 0): 4, ("calm", 0): 9}
    assert encode(Noted("a", 1, 0.0, one)) == encode(Noted("a", 1, 0.0, dict(sorted(one.items()))))


def test_the_old_site_may_elect_for_each_replica_that_ends_and_twice_when_they_start() -> None:
    old = Partition(0, 1, 7, (1, 2, 3), (1, 2, 3))
    assert (after_end(old), after_restart(old)) == (10, 12)
