"""What the drill `random` draws: the same from the same seed, all of it before any of it comes again."""

from __future__ import annotations

from itertools import islice
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from twinlog.drills import lots
from twinlog.drills.faults import How
from twinlog.drills.hazards import PLAYED
from twinlog.drills.lots import Deed, Turn
from twinlog.traffic.moves import Step

SEEDS = st.integers(min_value=0)


def drawn(seed: int, count: int, *, voters: bool = False) -> list[Turn]:
    return list(islice(lots.turns(Random(seed), voters=voters), count))


def ways(*, voters: bool) -> set[tuple[Deed, How | None]]:
    known = lots.WAYS.items()
    return {(deed, how) for deed, found in known if voters or deed not in lots.OF_VOTERS for how in found}


@given(SEEDS, st.booleans())
def test_same_seed_gives_the_same_turns(seed: int, voters: bool) -> None:
    assert drawn(seed, 60, voters=voters) == drawn(seed, 60, voters=voters)


def test_another_seed_gives_other_turns() -> None:
    assert len({tuple(drawn(seed, 10)) for seed in range(20)}) == 20


@given(SEEDS, st.booleans())
def test_every_way_of_breaking_something_comes_once_before_any_comes_again(seed: int, voters: bool) -> None:
    every = ways(voters=voters)
    turns = [(one.deed, one.how) for one in drawn(seed, 3 * len(every), voters=voters)]
    for first in range(0, len(turns), len(every)):
        assert set(turns[first : first + len(every)]) == every


@given(SEEDS, st.integers(min_value=1, max_value=9), st.floats(min_value=1.0, max_value=60.0))
def test_what_is_drawn_fits_whatever_is_there(seed: int, brokers: int, longest_s: float) -> None:
    for turn in drawn(seed, 30, voters=True):
        assert 0 <= turn.index(brokers) < brokers
        assert lots.SHORTEST_S <= turn.lasts_s(longest_s) <= longest_s
        assert turn.step not in (Step.FENCE, Step.DONE)


def test_without_voters_no_agent_and_no_witness_is_hit() -> None:
    assert not {deed for deed, _ in ways(voters=False)} & lots.OF_VOTERS
    assert {one.deed for one in drawn(1, 40, voters=True)} == set(Deed)


def test_everything_that_can_be_drawn_can_be_played() -> None:
    assert set(PLAYED) == set(lots.WAYS) == set(Deed)


def test_turn_says_what_is_hit_where_and_how() -> None:
    turn = Turn(Deed.BROKER, How.END, at_active=False, place=0.0, share=0.0, step=Step.DRAIN)
    assert str(turn) == "a broker of the standby: ended"
    mover = Turn(Deed.MOVER, How.KILL, at_active=True, place=0.0, share=0.0, step=Step.DRAIN)
    assert str(mover) == "whoever carries out a switchover: killed before 'let the standby catch up'"
    moved = Turn(Deed.SWITCHOVER, None, at_active=True, place=0.0, share=0.0, step=Step.DRAIN)
    assert str(moved) == "switchover"
