"""What happens in a simulation, decided by bytes: Hypothesis makes them, and shrinks them.

When the bytes have run out every choice is the first one, which is always the harmless one; so the
shortest bytes that break something tell the story with nothing in it that does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Choices:
    """A supply of decisions."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def are_over(self) -> bool:
        """True when nothing surprising will happen any more."""
        return self._place >= len(self._data)

    def below(self, count: int) -> int:
        """A number from 0 on; 0 when the bytes have run out."""
        if self.are_over:
            return 0
        self._place += 1
        return self._data[self._place - 1] % count

    def of(self, items: Sequence[Item]) -> Item:
        """One of the items; the first one when the bytes have run out."""
        return items[self.below(len(items))]

    def one_in(self, count: int) -> bool:
        """True once in a while; never when the bytes have run out."""
        return self.below(count) == count - 1
