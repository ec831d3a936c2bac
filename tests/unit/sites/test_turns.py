"""Whose turn it is in a rolling restart: orders, and every reason to wait."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from twinlog.sites.layout import Kind
from twinlog.sites.turns import Copies, Member, Seen, Turn, needed, next_turn, unwell

BROKERS = tuple(Member(number, Kind.BROKER) for number in (1, 2, 3))
CONTROLLERS = tuple(Member(number, Kind.CONTROLLER) for number in (901, 902, 903))
WELL = Seen(
    leader=901,
    voters=frozenset((901, 902, 903)),
    behind=frozenset(),
    partitions=(Copies("t-0", (1, 2, 3), (3, 2, 1), 2),),
)


def test_a_whole_site_is_restarted_brokers_first_and_the_leading_controller_last() -> None:
    left = [*CONTROLLERS, *BROKERS]
    taken = []
    while left:
        turn = next_turn(left, WELL)
        assert turn.node is not None
        taken.append(turn.node)
        left = [node for node in left if node.id != turn.node]
    assert taken == [1, 2, 3, 902, 903, 901]


def test_a_controller_that_begins_to_lead_goes_last_from_then_on() -> None:
    assert next_turn(CONTROLLERS, replace(WELL, leader=902)).node == 901


def test_a_partition_that_lacks_a_copy_is_waited_for() -> None:
    lacking = replace(WELL, partitions=(Copies("t-0", (1, 2, 3), (1, 2), 1),))
    assert next_turn(BROKERS, lacking) == Turn(None, "t-0 waits for broker 3")


def test_a_partition_that_needs_all_its_copies_holds_up_their_brokers() -> None:
    strict = replace(WELL, partitions=(Copies("t-0", (1, 2), (1, 2), 2),))
    assert next_turn(BROKERS, strict) == Turn(None, "t-0 has 2 copies in sync and needs 2")
    assert next_turn(BROKERS[2:], strict).node == 3


def test_a_partition_of_one_copy_holds_up_nobody() -> None:
    assert next_turn(BROKERS, replace(WELL, partitions=(Copies("t-0", (1,), (1,), 1),))).node == 1


def test_a_quorum_without_a_leader_or_with_one_that_is_away_is_waited_for() -> None:
    assert next_turn(BROKERS, replace(WELL, leader=-1)).why == "the quorum has no leader"
    away = replace(WELL, behind=frozenset((903,)))
    assert next_turn(CONTROLLERS, away).why == "controller 903 does not follow the quorum's leader"


def test_the_only_controller_may_be_restarted_and_one_of_two_may_not() -> None:
    alone = replace(WELL, voters=frozenset((901,)))
    assert next_turn(CONTROLLERS[:1], alone).node == 901
    pair = replace(WELL, voters=frozenset((901, 902)))
    assert "no majority" in next_turn(CONTROLLERS[:1], pair).why


def test_when_nobody_is_left_the_reason_is_what_is_unwell() -> None:
    assert next_turn([], WELL) == Turn(None, "")


brokers = st.integers(1, 5)


@st.composite
def sites(draw: st.DrawFn) -> Seen:
    partitions = []
    for index in range(draw(st.integers(0, 5))):
        replicas = tuple(draw(st.lists(brokers, min_size=1, max_size=4, unique=True)))
        in_sync = tuple(replica for replica in replicas if draw(st.integers(0, 9)))
        partitions.append(Copies(f"t-{index}", replicas, in_sync, draw(st.integers(1, len(replicas)))))
    return replace(WELL, partitions=tuple(partitions))


@given(sites())
def test_no_turn_takes_a_partition_of_several_copies_below_its_minimum(seen: Seen) -> None:
    turn = next_turn([Member(number, Kind.BROKER) for number in range(1, 6)], seen)
    if turn.node is None:
        assert turn.why
        return
    assert not unwell(seen) and not needed(turn.node, seen)
    for partition in seen.partitions:
        left = set(partition.in_sync) - {turn.node}
        assert (
            turn.node not in partition.replicas
            or len(partition.replicas) == 1
            or len(left) >= partition.minimum
        )
