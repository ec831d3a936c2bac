"""What became of each batch in the tail that only a returned site has. Pure.

`salvage` reads the tail twice: the first time to know how each transaction ended, the second time to
take the records. A transaction's end is the first marker of its producer behind its records; one that
has none is open. A producer that moved to the other site sends there again what was not acknowledged,
in the same batches: producer, epoch and sequence say that a batch is the same, as they do to brokers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from twinlog.wire.batches import Batch, ControlType, Header, control_type


class Fate(StrEnum):
    """What a batch is part of, and how that ended."""

    PLAIN = "plain"  # of no transaction
    COMMITTED = "committed"
    OPEN = "open"
    ABORTED = "aborted"
    CONTROL = "control"


class Identity(NamedTuple):
    """By what a batch is known, wherever it is sent."""

    producer_id: int
    epoch: int
    sequence: int
    last_delta: int


def identity_of(header: Header) -> Identity | None:
    """What a batch is known by; None where nothing is: plain producers, markers, and transactions.

    A transactional producer gets another id at the other site and begins its transaction again.
    """
    if not header.is_idempotent or header.is_transactional or header.is_control:
        return None
    return Identity(header.producer_id, header.producer_epoch, header.base_sequence, header.last_offset_delta)


class Tail:
    """What is known of a tail after it was read once."""

    def __init__(self) -> None:
        self.identities: set[Identity] = set()
        self._markers: dict[int, list[tuple[int, bool]]] = defaultdict(list)  # offset, committed

    def note(self, batch: Batch) -> None:
        """Take a batch in; they come in the order of the log."""
        header = batch.header
        identity = identity_of(header)
        if identity is not None:
            self.identities.add(identity)
        kind = control_type(batch)
        if kind is not ControlType.OTHER:
            self._markers[header.producer_id].append((header.base_offset, kind is ControlType.COMMIT))

    def fate(self, header: Header) -> Fate:
        """What became of a batch."""
        if header.is_control:
            return Fate.CONTROL
        if not header.is_transactional:
            return Fate.PLAIN
        markers = self._markers.get(header.producer_id, [])
        behind = bisect_right(markers, (header.base_offset, True))
        if behind == len(markers):
            return Fate.OPEN
        return Fate.COMMITTED if markers[behind][1] else Fate.ABORTED


@dataclass
class Tally:
    """One partition's tail, counted in offsets: each is one of the five, so they add up."""

    topic: str
    partition: int
    point: int
    end: int
    salvaged: int = 0
    present: int = 0  # the active has them already
    aborted: int = 0
    control: int = 0
    empty: int = 0  # no record is left there: compacted away, or deleted with the log's beginning
    open: int = 0  # of the salvaged ones, those of transactions that never ended
    new: int = 0  # of the salvaged ones, those that this run wrote

    def count(self, fate: Fate, is_present: bool, salvaged: int, length: int) -> None:
        """Count a batch of that many offsets, so many of which are salvaged."""
        self.salvaged += salvaged
        left = length - salvaged
        if fate is Fate.CONTROL:
            self.control += left
        elif fate is Fate.ABORTED:
            self.aborted += left
        elif is_present:
            self.present += left
        else:
            self.empty += left

    @property
    def length(self) -> int:
        """How many offsets the tail has."""
        return max(0, self.end - self.point)

    @property
    def adds_up(self) -> bool:
        """True if every offset is accounted for."""
        return self.salvaged + self.present + self.aborted + self.control + self.empty == self.length

    def as_json(self) -> dict[str, Any]:
        """The tally for reports."""
        return {**asdict(self), "adds_up": self.adds_up}
