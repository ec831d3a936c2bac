"""Every partition has one slot; loads are even; nothing moves without a reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.pipeline.assignment import spread

PARTITIONS = [(topic, number) for topic in ("orders", "stock") for number in range(6)]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), unique=True),
    st.integers(1, 7),
    st.integers(0, 2**32),
)
def test_every_partition_is_given_once(partitions: list[tuple[str, int]], slots: int, seed: int) -> None:
    rates = {one: float((seed * (number + 1)) % 10_000_000) for number, one in enumerate(partitions)}
    given_out = spread(partitions, slots, rates=rates)
    assert sorted(one for many in given_out.values() for one in many) == sorted(partitions)
    assert set(given_out) <= set(range(slots))
    assert all(given_out.values())


def test_equal_partitions_are_spread_evenly() -> None:
    assert sorted(len(many) for many in spread(PARTITIONS, 3).values()) == [4, 4, 4]


def test_a_busy_partition_gets_a_slot_of_its_own() -> None:
    given_out = spread(PARTITIONS, 2, rates={("orders", 3): 50e6})
    (alone,) = [many for many in given_out.values() if ("orders", 3) in many]
    assert alone == [("orders", 3)]


def test_partitions_of_one_leader_are_spread_over_slots() -> None:
    leaders = {one: one[1] % 2 for one in PARTITIONS}
    for many in spread(PARTITIONS, 2, leaders=leaders).values():
        assert sorted(leaders[one] for one in many) == [0, 0, 0, 1, 1, 1]


def test_with_even_loads_nothing_moves() -> None:
    first = spread(PARTITIONS, 3)
    before = {one: slot for slot, many in first.items() for one in many}
    again = spread(PARTITIONS, 3, before=before, rates={one: 900.0 for one in PARTITIONS[:3]})
    assert {slot: set(many) for slot, many in again.items()} == {
        slot: set(many) for slot, many in first.items()
    }
