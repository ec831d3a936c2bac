"""What is read of a site beside what it says itself."""

from __future__ import annotations

from uuid import UUID

import pytest

from twinlog.ops.world import copies
from twinlog.wire.reassignments import UnderWay
from twinlog.wire.topics import Partition, TopicState

HERE = (1, 2, 3)


def topic(*replicas: tuple[int, ...]) -> TopicState:
    found = tuple(Partition(index, one[0], 0, one, one) for index, one in enumerate(replicas))
    return TopicState("pairs", UUID(int=1), False, found)


@pytest.mark.parametrize(
    ("found", "moving", "count"),
    [
        (topic((1, 2), (2, 3)), {}, 2),
        (topic((1, 2), HERE), {("pairs", 1): UnderWay(HERE, (1,), (3,))}, 2),
        (topic(HERE, HERE), {("pairs", index): UnderWay(HERE, (1,), (3,)) for index in (0, 1)}, 2),
        (topic(HERE), {("pairs", 0): UnderWay(HERE, (3,), ())}, 3),
        (topic(HERE), {("others", 0): UnderWay(HERE, (1,), (3,))}, 3),
    ],
    ids=["nothing moves", "one moves", "all move", "one more copy", "others move"],
)
def test_copies_of_what_is_being_moved_are_those_that_it_will_have(
    found: TopicState, moving: dict[tuple[str, int], UnderWay], count: int
) -> None:
    assert copies(found, moving) == count
