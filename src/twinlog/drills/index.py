"""A history looked up: by value, by position, by time. Built once and shared by all checkers.

The verdict makes it; checkers, figures and reports read it. What is looked up is made when first asked for,
in one pass over the operations, so that a million of them take seconds. The active is the site that
opened last; a log is what the last read of a site found there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum
from functools import cached_property

from twinlog.drills.history import (
    Event,
    Happening,
    History,
    Outcome,
    Partition,
    Read,
    Salvaged,
    Step,
    Write,
)

Position = tuple[str, int, int]
Log = dict[Partition, dict[int, str]]
# An acknowledgement that was on its way when another site opened has arrived after this time.
ACK_ON_ITS_WAY_S = 1.0


class Fate(Enum):
    """How a transaction ended for those who read committed records."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Index:
    """One history, looked up in all ways that the checkers need."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.began_s, self.ended_s = history.span_s

    @cached_property
    def writes(self) -> dict[str, Write]:
        """Writes by value."""
        return {write.value: write for write in self.history.writes}

    @cached_property
    def openings(self) -> tuple[Event, ...]:
        """The openings of sites to writers, in order; the first one is how the drill began."""
        return self.events(Happening.OPENED)

    @cached_property
    def active(self) -> str:
        """The site that was active at the end."""
        if self.openings:
            return str(self.openings[-1].data["site"])
        return self.history.finals[0].site if self.history.finals else ""

    @cached_property
    def logs(self) -> dict[str, Log]:
        """What the last read found at each site that was read."""
        logs: dict[str, Log] = {}
        for one in self.history.finals:
            log = logs.setdefault(one.site, {})
            log.setdefault((one.topic, one.partition), {})[one.offset] = one.value
        return logs

    @cached_property
    def extents(self) -> dict[str, dict[Partition, tuple[int, int]]]:
        """Where each partition began and ended at each site that was read."""
        extents: dict[str, dict[Partition, tuple[int, int]]] = {}
        for one in self.history.extents:
            extents.setdefault(one.site, {})[one.topic, one.partition] = (one.first, one.end)
        return extents

    @cached_property
    def to_be_read(self) -> frozenset[str]:
        """The sites that the last read was to read; empty if nobody wrote that there was one."""
        return frozenset(site for event in self.events(Happening.LAST_READ) for site in event.data["sites"])

    @cached_property
    def unread(self) -> frozenset[str]:
        """The sites that were not read whole in the end; what they hold nobody knows."""
        failed = {str(event.data["site"]) for event in self.events(Happening.UNREAD)}
        places = {place for extent in self.extents.values() for place in extent}
        lacking = {
            site for site in self.to_be_read if not places or not places <= self.extents.get(site, {}).keys()
        }
        return frozenset(failed | lacking)

    @property
    def log(self) -> Log:
        """The log of the active."""
        return self.logs.get(self.active, {})

    @cached_property
    def places(self) -> dict[str, list[Position]]:
        """Where each value stands in the log of the active."""
        return _places(self.log)

    @cached_property
    def places_elsewhere(self) -> dict[str, dict[str, list[Position]]]:
        """Where each value stands in the logs of other sites; made only when something was found."""
        return {site: _places(log) for site, log in self.logs.items() if site != self.active}

    @cached_property
    def salvaged(self) -> dict[str, Salvaged]:
        """What is in salvage, by value."""
        return {one.value: one for one in self.history.salvaged}

    @cached_property
    def promotions(self) -> tuple[Event, ...]:
        """The promotions that nobody had planned."""
        return tuple(one for one in self.events(Happening.PROMOTION) if not one.data.get("planned", False))

    @cached_property
    def fates(self) -> dict[str, Fate]:
        """How each transaction ended."""
        fates: dict[str, Fate] = {}
        for one in self.history.transactions:
            before = fates.setdefault(one.transaction, Fate.ABORTED)  # nobody has asked for more yet
            if one.step is Step.COMMIT and one.outcome is Outcome.OK:
                fates[one.transaction] = Fate.COMMITTED
            elif one.step is Step.COMMIT and one.outcome is Outcome.UNKNOWN and before is Fate.ABORTED:
                fates[one.transaction] = Fate.UNKNOWN
        return fates

    @cached_property
    def last_reads(self) -> dict[str, Read]:
        """The last time that each value was handed to a consumer."""
        return {read.value: read for read in self.history.reads}

    @cached_property
    def _opened_s(self) -> list[float]:
        return [event.time_s for event in self.openings]

    def events(self, what: Happening) -> tuple[Event, ...]:
        """All events of one kind."""
        return tuple(event for event in self.history.events if event.what is what)

    def broken(self) -> Iterator[tuple[float, float]]:
        """From when to when each fault lasted, and what is written down as one: restarts in turn, say."""
        open_: dict[str, float] = {}
        for event in self.history.events:
            name = str(event.data.get("fault", ""))
            if event.what is Happening.FAULT:
                open_.setdefault(name, event.time_s)
            elif event.what is Happening.HEALED and name in open_:
                yield open_.pop(name), event.time_s
        yield from ((began_s, self.ended_s) for began_s in open_.values())

    def opening_before(self, time_s: float) -> Event | None:
        """The opening that was the last one at a time."""
        place = bisect_right(self._opened_s, time_s)
        return self.openings[place - 1] if place else None

    def fate(self, write: Write) -> Fate:
        """How the transaction of a write ended; a write without one stands for itself."""
        if write.transaction is None:
            return Fate.COMMITTED
        return self.fates.get(write.transaction, Fate.UNKNOWN)

    def is_acknowledged(self, write: Write) -> bool:
        """True if the client was told that the write counts."""
        return write.outcome is Outcome.OK and self.fate(write) is Fate.COMMITTED

    def site_of(self, write: Write) -> str | None:
        """The site that acknowledged a write, as far as anybody knows."""
        kept = self.salvaged.get(write.value)
        if write.site is not None or kept is None:
            return write.site
        # One that was answered elsewhere was sent again after the lost site had kept it without an answer.
        # It may even stand at the same offset there: the first record behind the promotion point often does.
        told = self.position_of(write)
        is_elsewhere = told in self.places.get(write.value, ())
        if told != (kept.topic, kept.partition, kept.offset) or is_elsewhere:
            return None
        return kept.site or None

    def site_of_read(self, read: Read) -> str | None:
        """The site that a record was read at: as its reader says, or the only one that ever had it there."""
        if read.site is not None or not self.is_elsewhere(read):
            return read.site
        place = (read.topic, read.partition, read.offset)
        kept = self.salvaged.get(read.value)
        if kept is not None and place == (kept.topic, kept.partition, kept.offset):
            return kept.site or None
        having = [
            site for site, places in self.places_elsewhere.items() if place in places.get(read.value, ())
        ]
        return having[0] if len(having) == 1 and not self.unread else None

    def is_elsewhere(self, read: Read) -> bool:
        """True if the active does not have a record where it was read."""
        return (read.topic, read.partition, read.offset) not in self.places.get(read.value, ())

    def position_of(self, write: Write) -> Position | None:
        """Where a write was acknowledged, or where salvage found it."""
        if write.partition is not None and write.offset is not None and write.offset >= 0:
            return (write.topic, write.partition, write.offset)
        kept = self.salvaged.get(write.value)
        return (kept.topic, kept.partition, kept.offset) if kept else None

    def is_late(self, write: Write) -> bool:
        """True if a site acknowledged a write when another one was the active."""
        site = self.site_of(write)
        if site is None or write.outcome is not Outcome.OK or write.end_s is None:
            return False
        opening = self.opening_before(write.end_s)
        return opening is not None and opening.data["site"] != site

    def point_for(self, write: Write) -> int | None:
        """The promotion point of the failover that may have lost a write, in the write's partition."""
        place = self.position_of(write)
        if place is None or write.end_s is None:
            return None
        if self.is_late(write):
            moves = [one for one in self.promotions if one.time_s <= write.end_s][-1:]
        else:
            moves = [one for one in self.promotions if one.time_s > write.end_s][:1]
        return point(moves[0], place[:2]) if moves else None

    def at(self, time_s: float) -> str:
        """A time as seconds since the drill began."""
        return f"{time_s - self.began_s:.3f} s"

    def last_seen(self, value: str) -> str:
        """Where a value was seen, in words: its acknowledgement, a reader, logs, salvage."""
        seen = []
        write = self.writes.get(value)
        if write is not None:
            told = "acknowledged" if write.outcome is Outcome.OK else write.outcome.value
            by = f" by {site}" if (site := self.site_of(write)) else ""
            at = f" at {where(place)}" if (place := self.position_of(write)) else ""
            seen.append(f"{told}{by}{at} after {self.at(write.time_s)}")
        if (read := self.last_reads.get(value)) is not None:
            place = (read.topic, read.partition, read.offset)
            seen.append(f"handed to {read.client} at {where(place)} after {self.at(read.time_s)}")
        for site, places in ({self.active: self.places} | self.places_elsewhere).items():
            seen += [f"in the log of {site} at {where(place)}" for place in places.get(value, [])[:2]]
        if (kept := self.salvaged.get(value)) is not None:
            seen.append(f"in salvage of {kept.site} at {where((kept.topic, kept.partition, kept.offset))}")
        return "; ".join(seen) or "nowhere"


def _places(log: Log) -> dict[str, list[Position]]:
    places: dict[str, list[Position]] = {}
    for (topic, partition), values in log.items():
        for offset, value in values.items():
            places.setdefault(value, []).append((topic, partition, offset))
    return places


def point(promotion: Event, partition: Partition) -> int | None:
    """Where the promoted site's own records begin in a partition."""
    topic, number = partition
    found = promotion.data.get("points", {}).get(topic, {}).get(str(number))
    return None if found is None else int(found)


def where(position: Position) -> str:
    """A position as people write it."""
    topic, partition, offset = position
    return f"{topic}-{partition}@{offset}"
