"""What a drill measured: records lost by acks level, and how long each client was without the bus.

The verdict holds it against limits and the report prints it. A disturbance is a fault, or a planned
move; an unplanned move belongs to the fault before it. Only what clients saw is counted: times between
acknowledgements, times until the first one at the other site. A client that never came back has no
time, and `returned` says so.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from twinlog.drills.finding import LOSSES, Finding, Kind
from twinlog.drills.history import Event, Happening, Outcome
from twinlog.drills.index import Index

WRITES, READS = "writes", "reads"
SETTLED_S = 1.0  # after a disturbance: what had to wait is written quicker than the load


@dataclass(frozen=True)
class Disturbance:
    """Something that clients may notice."""

    text: str
    began_s: float
    until_s: float  # when the next one began, or the drill ended
    detected_s: float | None = None
    opened_s: float | None = None  # None: no site had to open
    site: str = ""  # the one that opened
    planned: bool = False


class Success(NamedTuple):
    """An acknowledged write, or a record that was handed out."""

    time_s: float
    site: str | None


@dataclass(frozen=True)
class Passage:
    """How a client came through one disturbance."""

    disturbance: Disturbance
    outage_s: float | None  # between two successes; None: there was none after it
    first_s: float | None  # from the fault, or the fence, to the first success at the site that opened

    @property
    def returned(self) -> bool:
        """True if the client worked again."""
        return (self.outage_s if self.disturbance.opened_s is None else self.first_s) is not None

    @property
    def rto_s(self) -> float | None:
        """How long the client was without the bus."""
        return self.outage_s if self.disturbance.opened_s is None else self.first_s


@dataclass(frozen=True)
class ClientFigures:
    """What one writer, or one group of readers, saw."""

    name: str
    does: str  # WRITES or READS
    kind: str
    acks: str
    successes: int
    longest_pause_s: float
    passages: tuple[Passage, ...]
    last_s: float  # when it last worked
    first_s: float = 0.0  # and first

    @property
    def returned(self) -> bool:
        """True if it worked again after every disturbance."""
        return all(passage.returned for passage in self.passages)

    @property
    def rto_s(self) -> float | None:
        """The longest time without the bus; None if it did not come back, or nothing disturbed it."""
        times = [passage.rto_s for passage in self.passages if passage.rto_s is not None]
        return max(times, default=None) if self.returned else None


@dataclass(frozen=True)
class LevelFigures:
    """What became of the writes of one acks level."""

    acks: str
    written: int
    acknowledged: int
    unknown: int
    lost: int  # salvaged ones too
    salvaged: int
    duplicated: int
    repeated: int
    rpo_s: float | None  # age of the oldest lost write at the fault; None: nobody can say


@dataclass(frozen=True)
class Figures:
    """All that was measured."""

    levels: tuple[LevelFigures, ...]
    clients: tuple[ClientFigures, ...]
    disturbances: tuple[Disturbance, ...]
    counts: dict[Kind, int]
    load_per_s: float | None = None  # writes acknowledged outside disturbances; None: no second was calm

    @property
    def longest_pause_s(self) -> float:
        """The longest time that any writer was without an acknowledgement."""
        return max((one.longest_pause_s for one in self.clients if one.does == WRITES), default=0.0)


def measure(index: Index, findings: Iterable[Finding]) -> Figures:
    """Count and time everything."""
    found = list(findings)
    disturbances = tuple(_disturbances(index))
    clients = tuple(_clients(index, disturbances))
    return Figures(
        levels=tuple(_levels(index, found, disturbances)),
        clients=clients,
        disturbances=disturbances,
        counts=dict(Counter(finding.kind for finding in found)),
        load_per_s=_load_per_s(index, clients, disturbances),
    )


def lost_age_s(index: Index, finding: Finding, disturbances: Iterable[Disturbance]) -> float | None:
    """How old a lost write was when the fault began that lost it; 0 if it was acknowledged after that."""
    write = index.writes.get(finding.value)
    if write is None or write.end_s is None:
        return None
    if index.is_late(write):
        return 0.0
    row = list(disturbances)
    later = [one for one in row if one.opened_s is not None and one.opened_s >= write.end_s]
    if not later and len(row) == 1:
        later = row  # of several faults that moved nobody, none says that it was the one
    return max(0.0, later[0].began_s - write.end_s) if later else None


def _disturbances(index: Index) -> Iterator[Disturbance]:
    found: list[Disturbance] = []
    fences: list[Event] = []
    detections: list[Event] = []
    active = ""
    open_faults: list[
        tuple[int, str]
    ] = []  # places in `found` that no opening belongs to yet, with the site hit
    for event in index.history.events:
        match event.what:
            case Happening.FAULT:
                open_faults.append((len(found), str(event.data.get("site", ""))))
                found.append(Disturbance(event.text, event.time_s, index.ended_s))
            case Happening.FENCED:
                fences.append(event)
            case Happening.DETECTED:
                detections.append(event)
            case Happening.OPENED:
                site, planned = str(event.data["site"]), bool(event.data.get("planned", False))
                if active and (planned or not open_faults):
                    began_s = fences[0].time_s if fences else event.time_s
                    text = f"{'switchover' if planned else 'failover'} to {site}"
                    found.append(Disturbance(text, began_s, index.ended_s, None, event.time_s, site, planned))
                elif active:
                    at_active = [place for place, hit in open_faults if hit == active]
                    place = at_active[-1] if at_active else open_faults[-1][0]
                    began_s = found[place].began_s
                    seen = [one.time_s for one in detections if one.time_s >= began_s]
                    found[place] = replace(
                        found[place],
                        detected_s=min(seen, default=None),
                        opened_s=event.time_s,
                        site=site,
                    )
                active, fences, detections, open_faults = site, [], [], []
    found.sort(key=lambda one: one.began_s)
    for one, next_ in pairwise([*found, None]):
        if one is not None:
            yield replace(one, until_s=next_.began_s) if next_ is not None else one


def _load_per_s(
    index: Index, clients: tuple[ClientFigures, ...], disturbances: tuple[Disturbance, ...]
) -> float | None:
    """How many writes were acknowledged in a second in which every writer was there and nothing disturbed.

    The median of such seconds: what had to wait is made up for later, and would look like a larger load.
    """
    times = sorted(
        write.end_s
        for write in index.history.writes
        if write.outcome is Outcome.OK and write.end_s is not None
    )
    writers = [client for client in clients if client.does == WRITES]
    if not writers:
        return None
    began_s = max(client.first_s for client in writers)
    ended_s = min(client.last_s for client in writers)
    counts = [
        bisect_left(times, first_s + second + 1) - bisect_left(times, first_s + second)
        for first_s, last_s in _calm(_disturbed(index, writers, disturbances), began_s, ended_s)
        for second in range(int(last_s - first_s))
    ]
    return float(median(counts)) if counts else None


def _disturbed(
    index: Index, writers: Iterable[ClientFigures], disturbances: Iterable[Disturbance]
) -> Iterator[tuple[float, float]]:
    """From when to when something was broken, or moved, or a writer was not back from it."""
    for began_s, ended_s in index.broken():
        yield began_s, ended_s + SETTLED_S
    for disturbance in disturbances:
        back_s = [disturbance.opened_s or disturbance.began_s]
        for passage in (one for writer in writers for one in writer.passages):
            if passage.disturbance == disturbance:
                waited_s = max(passage.outage_s or 0.0, passage.first_s or 0.0)
                back_s.append(disturbance.began_s + waited_s if passage.returned else disturbance.until_s)
        yield disturbance.began_s, max(back_s) + SETTLED_S


def _calm(
    disturbed: Iterable[tuple[float, float]], began_s: float, ended_s: float
) -> Iterator[tuple[float, float]]:
    """What is left of a stretch of time without the disturbed ones."""
    for first_s, last_s in sorted(disturbed):
        if began_s < min(first_s, ended_s):
            yield began_s, min(first_s, ended_s)
        began_s = max(began_s, last_s)
    if began_s < ended_s:
        yield began_s, ended_s


def _levels(
    index: Index, findings: list[Finding], disturbances: tuple[Disturbance, ...]
) -> Iterator[LevelFigures]:
    writes: dict[str, Counter[str]] = defaultdict(Counter)
    for write in index.history.writes:
        counted = writes[write.acks]
        counted["written"] += 1
        counted["acknowledged"] += index.is_acknowledged(write)
        counted["unknown"] += write.outcome is Outcome.UNKNOWN
    kinds: dict[str, Counter[Kind]] = defaultdict(Counter)
    ages: dict[str, list[float | None]] = defaultdict(list)
    for finding in findings:
        kinds[finding.acks][finding.kind] += 1
        if finding.kind in LOSSES:
            ages[finding.acks].append(lost_age_s(index, finding, disturbances))
    for acks, counted in sorted(writes.items()):
        told = [age for age in ages[acks] if age is not None]
        of = kinds[acks]
        yield LevelFigures(
            acks=acks,
            written=counted["written"],
            acknowledged=counted["acknowledged"],
            unknown=counted["unknown"],
            lost=of[Kind.LOST] + of[Kind.SALVAGED],
            salvaged=of[Kind.SALVAGED],
            duplicated=of[Kind.DUPLICATED],
            repeated=of[Kind.REPEATED],
            rpo_s=(max(told) if len(told) == len(ages[acks]) else None) if ages[acks] else 0.0,
        )


class _Client(NamedTuple):
    """What is known of a writer or of a group before it is measured."""

    name: str
    does: str
    kind: str = ""
    acks: str = ""


def _clients(index: Index, disturbances: tuple[Disturbance, ...]) -> Iterator[ClientFigures]:
    rows: dict[_Client, list[Success]] = defaultdict(list)
    for write in index.history.writes:
        if write.outcome is Outcome.OK and write.end_s is not None:
            client = _Client(write.client, WRITES, write.kind, write.acks)
            rows[client].append(Success(write.end_s, index.site_of(write)))
    for read in index.history.reads:
        # A member of a group may end up without partitions; the group as a whole must go on.
        name = read.client if read.group is None else f"group {read.group}"
        rows[_Client(name, READS)].append(Success(read.time_s, index.site_of_read(read)))
    for row in rows.values():
        row.sort(key=lambda one: one.time_s)
    # The load of one kind ends together. Who fell silent before was not stopped but stuck.
    ends_s = {
        does: max(rows[one][-1].time_s for one in rows if one.does == does)
        for does in (WRITES, READS)
        if any(one.does == does for one in rows)
    }
    stopped_s = {str(one.data["client"]): one.time_s for one in index.events(Happening.STOPPED)}
    for client in sorted(rows, key=lambda one: (one.does != WRITES, one.name)):
        yield _client(client, rows[client], stopped_s.get(client.name, ends_s[client.does]), disturbances)


def _client(
    client: _Client, row: list[Success], end_s: float, disturbances: tuple[Disturbance, ...]
) -> ClientFigures:
    times = [one.time_s for one in row]
    stretch = [*times, end_s] if end_s > times[-1] else times
    passages = tuple(
        _passage(row, stretch, one)
        for one in disturbances
        if times[0] < one.began_s and end_s > (one.opened_s or one.began_s)
    )
    pause_s = max((after - before for before, after in pairwise(stretch)), default=0.0)
    return ClientFigures(
        client.name, client.does, client.kind, client.acks, len(row), pause_s, passages, times[-1], times[0]
    )


def _passage(row: list[Success], stretch: list[float], disturbance: Disturbance) -> Passage:
    """How a client came through, from its successes and their times; the last time may be its end."""
    first, last = bisect_left(stretch, disturbance.began_s), bisect_right(stretch, disturbance.until_s)
    outage_s = first_s = None
    if first < len(row):
        # From the success before it on; a pause in which the next disturbance begins is that one's.
        across = stretch[max(first - 1, 0) : max(last, first + 1)]
        outage_s = max((after - before for before, after in pairwise(across)), default=None)
    if disturbance.opened_s is not None:
        for success in row[bisect_left(stretch, disturbance.opened_s) :]:
            if success.site in (None, disturbance.site):
                first_s = success.time_s - disturbance.began_s
                break
    return Passage(disturbance, outage_s, first_s)
