"""What a comparison of both logs found, partition by partition.

`verify` makes it; the command line shows it, and exits with 3 unless all is equal.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.mirror.comparison import Found


@dataclass(frozen=True)
class PartitionReport:
    """How one partition compares. `skipped`: why it was not compared, or not to its end; else empty."""

    topic: str
    partition: int
    first: int = 0
    end: int = 0
    offsets: int = 0
    records: int = 0
    bytes: int = 0
    differences: tuple[Found, ...] = ()
    skipped: str = ""


@dataclass(frozen=True)
class Report:
    """How all of them compare."""

    partitions: tuple[PartitionReport, ...]
    seconds: float

    @property
    def is_equal(self) -> bool:
        """True if every partition was compared to its end and no difference was found."""
        return not any(one.differences or one.skipped for one in self.partitions)

    @property
    def bytes(self) -> int:
        """What was compared, counted at the active."""
        return sum(one.bytes for one in self.partitions)
