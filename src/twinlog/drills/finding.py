"""One thing that a checker found: of which kind, about which record, and where that was last seen.

Checkers make findings, the verdict counts them, the report lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from twinlog.drills.index import Position


class Kind(StrEnum):
    """What can be wrong; the words are what reports print."""

    LOST = "lost"
    SALVAGED = "lost, then salvaged"
    DUPLICATED = "duplicated"
    REPEATED = "repeated by a retry"
    REORDERED = "reordered"
    SHUFFLED = "reordered by a retry"
    PHANTOM = "phantom"
    UNREPORTED = "unreported"
    DIVERGED = "diverged"
    BEHIND = "behind"
    NOT_READ = "not read"
    MOVED = "at another offset"
    STALE = "stale"
    HELD = "handed out late"
    TORN = "torn transaction"
    ABORTED = "aborted, but visible"
    REWOUND = "commit gone backwards"
    REREAD = "read again after its commit"
    SKIPPED = "skipped by its group"
    VANISHED = "read, then gone"


LOSSES = frozenset({Kind.LOST, Kind.SALVAGED})
# What the last read shows, and nothing else does.
IN_LOGS = frozenset(Kind) - {Kind.STALE, Kind.HELD, Kind.REWOUND, Kind.REREAD}
_DOCUMENTED = frozenset({Kind.REPEATED, Kind.SHUFFLED, Kind.UNREPORTED, Kind.HELD})


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `value`, `client` and `acks` are empty where it is not about a write."""

    kind: Kind
    what: str
    value: str = ""
    client: str = ""
    acks: str = ""
    position: Position | None = None
    last_seen: str = ""

    @property
    def is_harmless(self) -> bool:
        """True if it breaks no promise by itself; a write with acks=0 never asked for one."""
        return self.kind in _DOCUMENTED or (self.kind in LOSSES and self.acks == "0")

    def as_json(self) -> dict[str, Any]:
        """The finding as JSON has it."""
        topic, partition, offset = self.position or (None, None, None)
        return {
            "kind": self.kind.value,
            "what": self.what,
            "value": self.value,
            "client": self.client,
            "acks": self.acks,
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "last_seen": self.last_seen,
        }
