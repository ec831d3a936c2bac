"""The history of a drill: what clients did, what they were told, what broke, what was there at the end.

Load generators, fault injectors and the last read write it down (`recording`); the checkers and the
figures see nothing else. Times are wall-clock seconds that never run backwards within one writer. A
write is never "probably lost": it ended ok, failed (certainly not written) or unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

Partition = tuple[str, int]


class Outcome(StrEnum):
    """How an operation ended, as far as its client can know."""

    OK = "ok"
    FAILED = "failed"  # certainly not done
    UNKNOWN = "unknown"


class Step(StrEnum):
    """A step of a transaction."""

    BEGIN = "begin"
    COMMIT = "commit"
    ABORT = "abort"


class Happening(StrEnum):
    """What an event tells; the comment says what its `data` holds."""

    FAULT = "fault"  # fault: its name, site: the one it hits, if any
    HEALED = "healed"  # fault: the name it began with
    DETECTED = "detected"  # the active was found to be lost
    FENCED = "fenced"  # site: the one that takes no writes any more
    PROMOTION = "promotion"  # site, planned, points: {topic: {"0": offset, …}}
    OPENED = "opened"  # site, planned; the first one names the site that was active from the start
    LAG = "lag"  # records, seconds
    STOPPED = "stopped"  # client: the one that was stopped on purpose
    ERROR = "error"  # client: the reader that was told of one
    STEP = "step"  # anything else that a move did
    LAST_READ = "last read"  # sites: those that are to be read
    UNREAD = "unread"  # site: the one whose last read failed
    UNEQUAL = "unequal"  # the logs of the sites did not end alike in time
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Write:
    """One record that a client sent. `value` names it: "CLIENT:NUMBER", numbers in the order of sends.

    A line with outcome unknown and no end says only that the write has begun; a later one completes it.
    """

    client: str
    kind: str  # of client: "java", "librdkafka", "twin"
    acks: str  # "0", "1", "all" or "twin"
    idempotent: bool
    topic: str
    value: str
    outcome: Outcome
    start_s: float | None = None  # None: the client tells of acknowledgements only
    end_s: float | None = None
    key: str | None = None
    transaction: str | None = None  # the name of one transaction, not of its producer
    site: str | None = None
    partition: int | None = None
    offset: int | None = None
    retried: bool | None = None  # inside the client; None: it does not say
    sends: int = 1  # how often the program handed it to its client

    @property
    def time_s(self) -> float:
        """When it was last heard of."""
        return self.end_s if self.end_s is not None else self.start_s or 0.0

    @property
    def has_only_begun(self) -> bool:
        """True if nothing was written down about its end."""
        return self.outcome is Outcome.UNKNOWN and self.end_s is None


@dataclass(frozen=True, slots=True)
class Read:
    """One record that was handed to a consumer."""

    client: str
    group: str | None
    topic: str
    partition: int
    offset: int
    value: str
    time_s: float
    site: str | None = None
    twin: bool = False  # by a consumer with read=twin


@dataclass(frozen=True, slots=True)
class Commit:
    """A consumer committed its position: the offset of the next record."""

    client: str
    group: str
    topic: str
    partition: int
    offset: int
    time_s: float
    outcome: Outcome
    error: str = ""  # what reached the program; empty: all is well, or it may simply commit again


@dataclass(frozen=True, slots=True)
class Transaction:
    """A step of one transaction, and how it ended."""

    client: str
    transaction: str
    step: Step
    outcome: Outcome
    time_s: float
    error: str = ""  # what reached the program; empty: all is well, or the library would have tried on


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the bus rather than to a record."""

    what: Happening
    time_s: float
    text: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extent:
    """From where to where the last read read a partition at a site, whether anything was there or not."""

    site: str
    topic: str
    partition: int
    first: int
    end: int
    time_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Final:
    """A record that the last read found at a site."""

    site: str
    topic: str
    partition: int
    offset: int
    value: str
    timestamp_ms: int
    time_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Salvaged:
    """A record in salvage: where it was at the site that lost it."""

    site: str
    topic: str
    partition: int
    offset: int
    value: str
    time_s: float = 0.0


Operation = Write | Read | Commit | Transaction | Event | Extent | Final | Salvaged
# By their names in files; the order is that of the fields of `History`.
KINDS: dict[str, type[Operation]] = {
    "write": Write,
    "read": Read,
    "commit": Commit,
    "transaction": Transaction,
    "event": Event,
    "extent": Extent,
    "final": Final,
    "salvaged": Salvaged,
}


@dataclass(frozen=True)
class History:
    """Everything that was written down about one drill, each kind in the order of time."""

    writes: tuple[Write, ...] = ()
    reads: tuple[Read, ...] = ()
    commits: tuple[Commit, ...] = ()
    transactions: tuple[Transaction, ...] = ()
    events: tuple[Event, ...] = ()
    extents: tuple[Extent, ...] = ()
    finals: tuple[Final, ...] = ()
    salvaged: tuple[Salvaged, ...] = ()

    @classmethod
    def of(cls, operations: Iterable[Operation]) -> History:
        """Sort operations by kind and time, and make one write of all that was said about it."""
        kinds: dict[type[Operation], list[Any]] = {kind: [] for kind in KINDS.values()}
        for one in operations:
            kinds[type(one)].append(one)
        written: dict[tuple[str, str], Write] = {}
        for write in kinds[Write]:
            name = (write.client, write.value)
            known = written.get(name)
            written[name] = write if known is None else _merged(known, write)
        kinds[Write] = list(written.values())
        for found in kinds.values():
            found.sort(key=_time_s)
        return cls(*(tuple(found) for found in kinds.values()))

    @property
    def span_s(self) -> tuple[float, float]:
        """When the first and the last thing happened that has a time."""
        rows = (self.writes, self.reads, self.commits, self.transactions, self.events)
        ends = [time_s for row in rows if row for time_s in (row[0].time_s, row[-1].time_s) if time_s]
        return (min(ends), max(ends)) if ends else (0.0, 0.0)


def _time_s(operation: Operation) -> float:
    return operation.time_s


def _merged(first: Write, second: Write) -> Write:
    """One write of two lines about it: one completes the other, or the program sent it again."""
    begun, ended = (second, first) if second.has_only_begun else (first, second)
    if begun.has_only_begun:
        return replace(ended, start_s=begun.start_s if ended.start_s is None else ended.start_s)
    order = (Outcome.OK, Outcome.UNKNOWN, Outcome.FAILED)
    best = min(first, second, key=lambda write: order.index(write.outcome))
    return replace(best, start_s=first.start_s, sends=first.sends + second.sends)
