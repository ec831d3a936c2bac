"""Which faults a run draws."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.faults.kinds import WANTED, Kind
from tests.faults.plan import LONGEST_S, SHORTEST_S, plan

counts = st.dictionaries(st.sampled_from(list(Kind)), st.integers(0, 2 * WANTED))


@given(seed=st.integers(0, 2**32), counted=counts, size=st.integers(0, 40))
def test_same_seed_draws_the_same_slice(seed: int, counted: dict[Kind, int], size: int) -> None:
    first, second = (plan(Random(seed), counted, size, list(Kind)) for _ in range(2))
    assert first == second
    assert len(first) == size
    assert all(SHORTEST_S <= one.wait_s <= LONGEST_S for one in first)


@given(seed=st.integers(0, 2**32), missing=st.sampled_from(list(Kind)))
def test_kind_that_is_complete_is_not_drawn_while_others_are_wanted(seed: int, missing: Kind) -> None:
    counted = {kind: 0 if kind is missing else WANTED for kind in Kind}
    assert {one.kind for one in plan(Random(seed), counted, 10, list(Kind))} == {missing}


def test_slices_in_a_row_reach_every_number() -> None:
    random, counted, drawn = Random(1), Counter[Kind](), 0
    while any(counted[kind] < WANTED for kind in Kind):
        slice_ = plan(random, counted, 10, list(Kind))
        counted.update(one.kind for one in slice_)
        drawn += len(slice_)
    assert drawn <= WANTED * len(Kind) + 10


@given(seed=st.integers(0, 2**32))
def test_complete_run_goes_on_with_kinds_that_are_possible(seed: int) -> None:
    possible = [kind for kind in Kind if not kind.needs_executors]
    drawn = plan(Random(seed), dict.fromkeys(Kind, WANTED), 30, possible)
    assert len(drawn) == 30
    assert Kind.EXECUTOR not in {one.kind for one in drawn}
