"""Which elections raise a partition's leader epoch, and what is left when they are over."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from twinlog.traffic.leadership import ballots, in_round
from twinlog.wire.topics import NO_LEADER, Partition


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    replicas = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5, unique=True))
    isr = draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    leader = draw(st.sampled_from(isr))
    return Partition(0, leader, draw(st.integers(0, 20)), tuple(replicas), tuple(isr))


def held(partition: Partition, orders: list[tuple[int, ...]]) -> tuple[int, int]:
    """The leader and its epoch after these elections, as Kafka counts: who leads already wins nothing."""
    leader, epoch = partition.leader, partition.leader_epoch
    for first, *_ in orders:
        assert first in partition.isr
        epoch += first != leader
        leader = first
    return leader, epoch


@given(partitions(), st.integers(0, 40))
def test_elections_reach_the_epoch_and_pass_it_by_one_at_most(partition: Partition, epoch: int) -> None:
    orders = ballots(partition, epoch)
    _, reached = held(partition, orders)
    if len(partition.isr) < 2 or partition.leader_epoch >= epoch:
        assert orders == []
    else:
        assert epoch <= reached <= epoch + 1


@given(partitions(), st.integers(0, 40))
def test_in_the_end_replicas_stand_as_they_stood_if_the_first_is_in_sync(
    partition: Partition, epoch: int
) -> None:
    orders = ballots(partition, epoch)
    assert all(sorted(order) == sorted(partition.replicas) for order in orders)
    if orders and partition.replicas[0] in partition.isr:
        assert orders[-1] == partition.replicas
        assert held(partition, orders)[0] == partition.replicas[0]


@given(partitions(), st.integers(2, 40))
def test_whoever_goes_on_after_a_crash_ends_at_the_same_epoch(partition: Partition, more: int) -> None:
    assume(len(partition.isr) > 1)
    epoch = partition.leader_epoch + more
    orders = ballots(partition, epoch)
    for taken in range(len(orders) + 1):
        leader, reached = held(partition, orders[:taken])
        stand = orders[taken - 1] if taken else partition.replicas
        found = Partition(0, leader, reached, stand, partition.isr)
        assert epoch <= held(found, ballots(found, epoch))[1] <= epoch + 1


def test_a_partition_without_a_leader_is_led_again() -> None:
    lost = Partition(0, NO_LEADER, 4, (1, 2), (1, 2))
    assert ballots(lost, 6) == [(2, 1), (1, 2)]


@given(st.lists(partitions(), min_size=1, max_size=5), st.integers(0, 40), st.integers(1, 40))
def test_where_time_is_short_all_stand_as_they_would_and_who_needs_little_has_it(
    found: list[Partition], epoch: int, rounds: int
) -> None:
    due = {("orders", number): ballots(one, epoch) for number, one in enumerate(found)}
    taken: dict[tuple[str, int], list[tuple[int, ...]]] = {place: [] for place in due}
    for number in range(rounds):
        for place, order in in_round(due, number, is_last=number == rounds - 1).items():
            taken[place].append(order)
    for place, orders in due.items():
        assert taken[place][-1:] == orders[-1:]
        assert len(orders) > rounds or taken[place] == orders
