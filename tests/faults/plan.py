"""Which faults a slice takes, and when: drawn from a seed and from what is still wanted. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import NamedTuple

from tests.faults.kinds import WANTED, Kind

SHORTEST_S, LONGEST_S = 1.0, 10.0


class Planned(NamedTuple):
    """One fault to come: how long the load runs before it, and a number for whatever is left to chance."""

    kind: Kind
    wait_s: float
    chance: int


def plan(random: Random, counted: Mapping[Kind, int], size: int, kinds: Collection[Kind]) -> list[Planned]:
    """A slice of faults: those that are wanted most come most often, and of two in a row none is the same."""
    left = {kind: max(0, WANTED - counted.get(kind, 0)) for kind in kinds}
    slice_: list[Planned] = []
    for _ in range(size):
        if not any(left.values()):
            left = dict.fromkeys(left, 1)  # all have their number: whatever comes
        # The square prefers the kinds that lag behind without making the order of a slice predictable.
        before = slice_[-1].kind if slice_ else None
        weights = {kind: count**2 for kind, count in left.items() if count and kind is not before}
        if not weights:
            weights = {kind: 1 for kind, count in left.items() if count}
        (kind,) = random.choices(list(weights), list(weights.values()))
        left[kind] -= 1
        slice_.append(Planned(kind, random.uniform(SHORTEST_S, LONGEST_S), random.getrandbits(30)))
    return slice_
