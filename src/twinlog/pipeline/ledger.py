"""Who holds which partition, and who may have it next. Pure.

A task is one attempt of one slot in one epoch. A partition has at most one holder. It becomes free
when its holder hands it over in order, or when its holder is lost and its rights were taken away;
the next one is told which of the two it was, because only after the first it may go on without a
look at what the standby has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

TopicPartition = tuple[str, int]


class Task(NamedTuple):
    """One attempt of one slot in one epoch."""

    epoch: int
    slot: int
    attempt: int

    def __str__(self) -> str:
        return f"task {self.epoch}.{self.slot}.{self.attempt}"


class Ledger:
    """The partitions of one generation."""

    def __init__(self) -> None:
        self._assigned: dict[tuple[int, int], frozenset[TopicPartition]] = {}
        self._holders: dict[TopicPartition, Task] = {}
        self._orderly: set[TopicPartition] = set()

    def assign(self, epoch: int, slots: Mapping[int, Iterable[TopicPartition]]) -> None:
        """What the slots of an epoch are to hold; older epochs than the last but one are forgotten."""
        for slot, partitions in slots.items():
            self._assigned[epoch, slot] = frozenset(partitions)
        for old in [key for key in self._assigned if key[0] < epoch - 1]:
            del self._assigned[old]

    def assigned(self, task: Task) -> frozenset[TopicPartition]:
        """What a task is to hold; nothing if its epoch is over."""
        return self._assigned.get((task.epoch, task.slot), frozenset())

    def in_the_way(self, task: Task) -> frozenset[Task]:
        """The tasks that hold something of what this one is to hold."""
        holders = (self._holders.get(partition) for partition in self.assigned(task))
        return frozenset(holder for holder in holders if holder is not None and holder != task)

    def take(self, task: Task) -> dict[TopicPartition, bool]:
        """Let a task hold what it was assigned: each partition, and whether it was handed over in order."""
        if self.in_the_way(task):
            raise AssertionError(f"{task} cannot take what others hold")
        taken = {}
        for partition in sorted(self.assigned(task)):
            taken[partition] = partition in self._orderly
            self._holders[partition] = task
        self._orderly -= taken.keys()
        return taken

    def give_up(self, task: Task, *, orderly: bool, doubtful: Collection[TopicPartition] = ()) -> None:
        """A task holds nothing any more: handed over in order, or lost with its rights taken away.

        Doubtful partitions were handed over too, and the next one must have a look at them.
        """
        for partition in self.held(task):
            del self._holders[partition]
            if orderly and partition not in doubtful:
                self._orderly.add(partition)

    def held(self, task: Task) -> list[TopicPartition]:
        """What a task holds."""
        return [partition for partition, holder in self._holders.items() if holder == task]

    @property
    def holders(self) -> frozenset[Task]:
        """All tasks that hold something."""
        return frozenset(self._holders.values())
