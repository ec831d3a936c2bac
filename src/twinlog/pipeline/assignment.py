"""Which slot copies which partition. Pure.

Partitions are spread by what they carry (bytes, with a little for being there at all), the largest
first, each to the slot that has least; of equal slots the one that had it before, and that has
fewest partitions of the same leader. With even loads nothing moves from epoch to epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

TopicPartition = tuple[str, int]
PRESENCE = 1024.0  # what a partition without records weighs, in bytes per second


def spread(
    partitions: Sequence[TopicPartition],
    slots: int,
    *,
    rates: Mapping[TopicPartition, float] | None = None,
    leaders: Mapping[TopicPartition, int] | None = None,
    before: Mapping[TopicPartition, int] | None = None,
) -> dict[int, list[TopicPartition]]:
    """The partitions of each slot; slots that get none are left out."""
    rates, leaders, before = rates or {}, leaders or {}, before or {}
    load = [0.0] * slots
    led: list[Counter[int]] = [Counter() for _ in range(slots)]
    given: dict[int, list[TopicPartition]] = {}
    # Equal weights are taken in order, so that the result depends on nothing else.
    for partition in sorted(partitions, key=lambda one: (-_weight(rates.get(one, 0.0)), one)):
        leader = leaders.get(partition, -1)
        stays = before.get(partition, -1)
        slot = min(range(slots), key=lambda one: (load[one], one != stays, led[one][leader], one))
        given.setdefault(slot, []).append(partition)
        load[slot] += _weight(rates.get(partition, 0.0))
        led[slot][leader] += 1
    return given


def _weight(rate: float) -> float:
    # In steps of a factor of two: small changes of rate move nothing.
    step = 1.0
    while step * 2 <= rate / PRESENCE:
        step *= 2
    return PRESENCE * step
