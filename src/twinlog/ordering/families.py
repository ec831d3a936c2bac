"""Figures with a name, as Prometheus reads them. Pure.

`metrics` counts with these and shows them. Written by hand because the names are Fabric's, which the usual
library would change, and because Broadcast counts three times a message. Each family is written by one
thread, and may be read by another at any time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
Labels = tuple[str, ...]


class Counter:
    """How often something happened, or how large something is."""

    def __init__(self, name: str, help: str, labels: Sequence[str], kind: str = "counter") -> None:
        self.name, self.help, self.kind = name, help, kind
        self._labels = tuple(labels)
        self._values: dict[Labels, float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count."""
        self._values[labels] = self._values.get(labels, 0) + by

    def set(self, *labels: str, to: float) -> None:
        """Know how large it is now."""
        self._values[labels] = to

    def lines(self) -> Iterator[str]:
        """The family as text."""
        for labels, value in sorted(self._values.copy().items()):
            yield f"{self.name}{_shown(self._labels, labels)} {_number(value)}"


class Durations:
    """How long something took, in buckets."""

    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        self.name, self.help = name, help
        self._labels = tuple(labels)
        self._values: dict[Labels, list[float]] = {}  # a bucket each, what is beyond, and the sum

    def add(self, labels: Labels, seconds: float) -> None:
        """One more."""
        found = self._values.get(labels)
        if found is None:
            found = self._values[labels] = [0.0] * (len(BOUNDS_S) + 2)
        found[bisect_left(BOUNDS_S, seconds)] += 1
        found[-1] += seconds

    def lines(self) -> Iterator[str]:
        """The family as text."""
        for labels, buckets in sorted(self._values.copy().items()):
            count = 0.0
            for bound, value in zip((*map(_number, BOUNDS_S), "+Inf"), buckets, strict=False):
                count += value
                shown = _shown((*self._labels, "le"), (*labels, bound))
                yield f"{self.name}_bucket{shown} {_number(count)}"
            shown = _shown(self._labels, labels)
            yield f"{self.name}_sum{shown} {buckets[-1]!r}"
            yield f"{self.name}_count{shown} {_number(count)}"


def _shown(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
