"""What is noted of a site's leader epochs, and what is read again of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.traffic.epochs import Epochs, after_end, after_restart, decode, encode
from twinlog.wire.topics import Partition

counts = st.dictionaries(st.text(min_size=1, max_size=9), st.lists(st.integers(0, 2**31 - 1), min_size=1))


def places(told: dict[str, list[int]]) -> Epochs:
    return {(topic, number): epoch for topic, found in told.items() for number, epoch in enumerate(found)}


@given(counts)
def test_what_was_noted_of_a_site_is_read_again(told: dict[str, list[int]]) -> None:
    assert decode(encode("a", places(told)), "a") == places(told)


def test_what_was_noted_of_another_site_says_nothing() -> None:
    assert decode(encode("a", {("orders", 0): 7}), "b") == {}


@pytest.mark.parametrize("text", [None, b"", b"[]", b"{}", b'{"site": "a", "epochs": [1]}', b"\xff"])
def test_what_nobody_understands_says_nothing(text: bytes | None) -> None:
    assert decode(text, "a") == {}


def test_the_same_epochs_are_noted_alike_in_whatever_order_they_come() -> None:
    one = {("orders", 1): 5, ("orders", 0): 4, ("calm", 0): 9}
    assert encode("a", one) == encode("a", dict(sorted(one.items())))


def test_the_old_site_may_elect_for_each_replica_that_ends_and_twice_when_they_start() -> None:
    old = Partition(0, 1, 7, (1, 2, 3), (1, 2, 3))
    assert (after_end(old), after_restart(old)) == (10, 12)
