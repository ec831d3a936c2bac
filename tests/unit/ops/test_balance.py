"""Spreading partitions over brokers: what must hold for every plan, and what is not worth moving."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import SiteError, UsageError
from twinlog.ops.assignment import Assignment, Peer, changes, loads
from twinlog.ops.balance import WORTH_A_SWAP, balanced
from twinlog.ops.reassign import Placement, plan
from twinlog.wire.offsets import TopicPartition

RACKS = (None, "r1", "r2", "r3")
Sizes = dict[TopicPartition, int]
Case = tuple[dict[TopicPartition, tuple[int, ...]], list[Peer], Sizes]


@st.composite
def cases(draw: st.DrawFn, *, racks: bool = True, sized: bool = True, going: int = 2) -> Case:
    """A site: brokers that stay, one or two that go, and partitions on all of them."""
    staying = draw(st.integers(1, 6))
    peers = [
        Peer(number, draw(st.sampled_from(RACKS)) if racks else None) for number in range(1, staying + 1)
    ]
    brokers = [peer.id for peer in peers] + list(range(101, 101 + draw(st.integers(0, going))))
    current, sizes = {}, {}
    for topic in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4)):
        copies = draw(st.integers(1, staying))
        for index in range(draw(st.integers(1, 8))):
            order = draw(st.permutations(brokers))
            current[topic, index] = tuple(order[:copies])
            sizes[topic, index] = draw(st.integers(0, 10_000)) if sized else 100
    return current, peers, sizes


def counts(assignment: Assignment, peers: Sequence[Peer]) -> Counter[int]:
    found = Counter({peer.id: 0 for peer in peers})
    found.update(broker for replicas in assignment.values() for broker in replicas)
    return found


def racks_of(replicas: Sequence[int], peers: Sequence[Peer]) -> int:
    racks = {peer.id: peer.rack or peer.id for peer in peers}
    return len({racks[broker] for broker in replicas if broker in racks})


@given(cases())
def test_any_site_keeps_its_copies_on_different_brokers_that_stay(case: Case) -> None:
    current, peers, sizes = case
    after = balanced(current, peers, sizes)
    assert after.keys() == current.keys()
    for place, replicas in after.items():
        assert len(replicas) == len(current[place]) == len(set(replicas))
        assert set(replicas) <= {peer.id for peer in peers}


@given(cases())
def test_any_partition_stands_in_as_many_racks_as_it_can(case: Case) -> None:
    current, peers, sizes = case
    there = racks_of([peer.id for peer in peers], peers)
    for replicas in balanced(current, peers, sizes).values():
        assert racks_of(replicas, peers) == min(len(replicas), there)


@given(cases())
def test_what_was_spread_once_is_left_as_it_is(case: Case) -> None:
    current, peers, sizes = case
    after = balanced(current, peers, sizes)
    assert balanced(after, peers, sizes) == after


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_what_is_given_changes_nothing(case: Case, random: Random) -> None:
    current, peers, sizes = case
    places, others = list(current), list(peers)
    random.shuffle(places)
    random.shuffle(others)
    assert balanced({place: current[place] for place in places}, others, sizes) == balanced(
        current, peers, sizes
    )


@given(cases(racks=False))
def test_without_racks_copies_differ_by_one_at_most(case: Case) -> None:
    current, peers, sizes = case
    found = counts(balanced(current, peers, sizes), peers)
    assert max(found.values()) - min(found.values()) <= 1


@given(cases(racks=False))
def test_leaders_differ_by_one_at_most_where_somebody_could_take_one(case: Case) -> None:
    current, peers, sizes = case
    after = balanced(current, peers, sizes)
    leads = {load.broker: load.leaders for load in loads(after, peers, sizes)}
    for replicas in after.values():
        assert all(leads[replicas[0]] - leads[other] <= 1 for other in replicas)


@given(cases(racks=False, sized=False, going=0))
def test_no_copy_is_moved_that_need_not_be(case: Case) -> None:
    current, peers, sizes = case
    before = sorted(counts(current, peers).values(), reverse=True)
    share, more = divmod(sum(before), len(before))
    needed = sum(max(0, count - share - (rank < more)) for rank, count in enumerate(before))
    moved = changes(current, balanced(current, peers, sizes), sizes)
    assert sum(len(change.adding) for change in moved) == needed


@given(cases(racks=False))
def test_bytes_are_no_more_unequal_than_the_largest_partition_and_what_is_not_worth_a_swap(
    case: Case,
) -> None:
    current, peers, sizes = case
    held = [load.size_bytes for load in loads(balanced(current, peers, sizes), peers, sizes)]
    mean = sum(held) / len(held)
    largest = max(sizes.values(), default=0)
    # One copy more on one of two brokers, and a swap that only turns the difference around.
    assert max(held) - min(held) <= 2 * largest + 2 * WORTH_A_SWAP * mean


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    current = {("t", index): (1 + index % 3, 1 + (index + 1) % 3) for index in range(12)}
    peers = [Peer(number) for number in (1, 2, 3, 4)]
    after = balanced(current, peers, dict.fromkeys(current, 100))
    moved = changes(current, after, {})
    assert sum(len(change.adding) for change in moved) == 6
    assert all(change.adding in ((), (4,)) for change in moved)
    assert [load.leaders for load in loads(after, peers, {})] == [3, 3, 3, 3]


def test_a_broker_that_goes_leaves_its_copies_to_the_others_evenly() -> None:
    current = {("t", index): (1 + index % 4, 1 + (index + 1) % 4) for index in range(8)}
    peers = [Peer(number) for number in (1, 2, 3)]
    after = balanced(current, peers, {})
    assert sorted(counts(after, peers).values()) == [5, 5, 6]
    assert sum(len(change.adding) for change in changes(current, after, {})) == 4


def test_a_large_partition_changes_places_with_small_ones() -> None:
    current = {("t", index): (1 if index < 3 else 2,) for index in range(6)}
    sizes = {("t", index): 1000 if index < 3 else 10 for index in range(6)}
    after = balanced(current, [Peer(1), Peer(2)], sizes)
    held = sorted(load.size_bytes for load in loads(after, [Peer(1), Peer(2)], sizes))
    assert held == [1020, 2010]


def test_partitions_of_a_crowded_topic_leave_first() -> None:
    current = {("hot", index): (1,) for index in range(3)} | {("cold", 0): (1,)}
    after = balanced(current, [Peer(1), Peer(2)], {})
    assert sum(1 for (topic, _), replicas in after.items() if topic == "hot" and replicas == (2,)) >= 1


def test_fewer_brokers_than_copies_is_refused_with_the_partition() -> None:
    with pytest.raises(UsageError, match=r"t-0 has 2 copies and there would be 1 broker$"):
        balanced({("t", 0): (1, 2)}, [Peer(1)], {})


def test_too_few_brokers_is_a_wrong_call_only_where_the_call_leaves_one_out() -> None:
    there = {("t", 0): (1, 2)}
    with pytest.raises(UsageError):
        plan(Placement(there, (Peer(1), Peer(2)), {}), without=[2])
    with pytest.raises(SiteError, match="t-0 has 2 copies") as raised:
        plan(Placement(there, (Peer(1),), {}))
    assert raised.value.hint
