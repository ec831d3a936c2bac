"""A bus that does what it should, told as a history; tests then plant what should not happen.

`Story` writes, reads and moves in a world of two logs; nothing is drawn at random here. Its history is
what the recorders of a real drill would have written down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from twinlog.drills.check import check
from twinlog.drills.finding import Finding, Kind
from twinlog.drills.history import (
    Commit,
    Event,
    Extent,
    Final,
    Happening,
    History,
    Operation,
    Outcome,
    Read,
    Salvaged,
    Step,
    Transaction,
    Write,
)
from twinlog.drills.index import Index

TOPIC = "orders"
GROUP = "stock"
PARTITIONS = 2
STEP_S = 0.01


def found(history: History) -> list[Finding]:
    """What the checkers find in a history."""
    return check(Index(history))


@dataclass
class Story:
    """Two sites, some clients, and what was written down about them."""

    active: str = "a"
    now_s: float = 1000.0
    told: list[Operation] = field(default_factory=list)
    log: dict[int, list[str]] = field(default_factory=lambda: {one: [] for one in range(PARTITIONS)})
    mirrored: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PARTITIONS), 0))
    salvage: list[Salvaged] = field(default_factory=list)
    handed: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    numbers: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        self.event(Happening.OPENED, f"{self.active} is active", site=self.active, planned=True)

    @property
    def other(self) -> str:
        return "b" if self.active == "a" else "a"

    def tick(self, seconds: float = STEP_S) -> float:
        self.now_s += seconds
        return self.now_s

    def event(self, what: Happening, text: str = "", **data: object) -> None:
        self.told.append(Event(what, self.tick(), text or what.value, data))

    def write(
        self,
        client: str = "java-1",
        *,
        key: int = 0,
        acks: str = "all",
        idempotent: bool = True,
        outcome: Outcome = Outcome.OK,
        appended: bool = True,
        mirrored: bool = True,
        transaction: str | None = None,
    ) -> str:
        """One write; `appended` and `mirrored` say what became of it."""
        value = f"{client}:{self.numbers[client]}"
        self.numbers[client] += 1
        partition = key % PARTITIONS
        start_s, end_s = self.tick(), self.tick()
        offset = len(self.log[partition])
        write = Write(
            client=client,
            kind="java",
            acks=acks,
            idempotent=idempotent,
            topic=TOPIC,
            value=value,
            outcome=outcome,
            start_s=start_s,
            end_s=end_s,
            key=str(key),
            transaction=transaction,
        )
        if appended:
            self.log[partition].append(value)
            if mirrored and self.mirrored[partition] == offset:
                self.mirrored[partition] = offset + 1
        if outcome is Outcome.OK:
            write = replace(write, site=self.active, partition=partition, offset=offset)
        self.told.append(write)
        return value

    def transaction(self, name: str, keys: list[int], step: Step = Step.COMMIT) -> list[str]:
        """A transaction of one write for each key; an aborted one leaves nothing to be read."""
        self.told.append(Transaction("tx", name, Step.BEGIN, Outcome.OK, self.tick()))
        visible = step is Step.COMMIT
        values = [self.write("tx", key=key, transaction=name, appended=visible) for key in keys]
        self.told.append(Transaction("tx", name, step, Outcome.OK, self.tick()))
        return values

    def read(self, client: str = "reader", *, commit: bool = True) -> None:
        """The group gets all that is mirrored and new to it."""
        for partition, log in self.log.items():
            for offset in range(self.handed[partition], self.mirrored[partition]):
                value = log[offset]
                self.told.append(
                    Read(client, GROUP, TOPIC, partition, offset, value, self.tick(), self.active)
                )
            self.handed[partition] = max(self.handed[partition], self.mirrored[partition])
            if commit:
                self.told.append(
                    Commit(client, GROUP, TOPIC, partition, self.handed[partition], self.tick(), Outcome.OK)
                )

    def switchover(self) -> None:
        """A planned move: everything is mirrored before the other site opens."""
        self.event(Happening.FENCED, site=self.active)
        self.mirrored = {partition: len(log) for partition, log in self.log.items()}
        self._open(planned=True)

    def failover(self) -> None:
        """The active is lost; what was not mirrored is salvaged."""
        self.event(Happening.LAG, records=3, seconds=3600.0)
        self.event(Happening.FAULT, "site killed", fault="site-dies", site=self.active)
        self.tick(2.0)
        self.event(Happening.DETECTED)
        for partition, log in self.log.items():
            end = self.mirrored[partition]
            self.salvage += [
                Salvaged(self.active, TOPIC, partition, offset, log[offset])
                for offset in range(end, len(log))
            ]
            del log[end:]
        self._open(planned=False)
        self.event(Happening.HEALED, "site returned", fault="site-dies")

    def _open(self, *, planned: bool) -> None:
        points = {TOPIC: {str(partition): end for partition, end in self.mirrored.items()}}
        self.event(Happening.PROMOTION, site=self.other, planned=planned, points=points)
        self.active = self.other
        self.event(Happening.OPENED, f"{self.active} opened", site=self.active, planned=planned)

    def history(self, change: Callable[[list[Operation]], None] | None = None) -> History:
        """What was told, with a last read of both sites; `change` may plant something in it."""
        finals = [
            Final(site, TOPIC, partition, offset, value, 0)
            for site in ("a", "b")
            for partition, log in self.log.items()
            for offset, value in enumerate(log)
        ]
        extents = [
            Extent(site, TOPIC, partition, 0, len(log))
            for site in ("a", "b")
            for partition, log in self.log.items()
        ]
        last_read = Event(Happening.LAST_READ, self.now_s, "the last read begins", {"sites": ["a", "b"]})
        told: list[Operation] = [*self.told, last_read, *extents, *finals, *self.salvage]
        if change is not None:
            change(told)
        return History.of(told)

    def without(self, value: str, *sites: str) -> History:
        """The history with a value missing from the last read of some sites (of all, if none is named)."""

        def drop(told: list[Operation]) -> None:
            told[:] = [
                one
                for one in told
                if not (isinstance(one, Final) and one.value == value and (not sites or one.site in sites))
            ]

        return self.history(drop)

    def without_site(self, site: str, *, read: bool = True) -> History:
        """The history with nothing found at a site: it was read and is empty, or was not read."""

        def drop(told: list[Operation]) -> None:
            told[:] = [one for one in told if not (isinstance(one, Final) and one.site == site)]
            for place, one in enumerate(told):
                if isinstance(one, Extent) and one.site == site:
                    told[place] = replace(one, end=0)
            if not read:
                told[:] = [one for one in told if not (isinstance(one, Extent) and one.site == site)]

        return self.history(drop)

    def with_value_at(self, offset: int, value: str, *sites: str, partition: int = 0) -> History:
        """The history with another value at a position of the last read."""

        def put(told: list[Operation]) -> None:
            for site in sites or ("a", "b"):
                told[:] = [
                    one
                    for one in told
                    if not (
                        isinstance(one, Final)
                        and (one.site, one.partition, one.offset) == (site, partition, offset)
                    )
                ]
                told.append(Final(site, TOPIC, partition, offset, value, 0))

        return self.history(put)


def only(history: History, kind: Kind) -> Finding:
    """The one thing that was found."""
    findings = found(history)
    assert [finding.kind for finding in findings] == [kind], findings
    return findings[0]


def kinds(history: History) -> dict[Kind, list[str]]:
    """The values that were found, by kind."""
    result: dict[Kind, list[str]] = {}
    for finding in found(history):
        result.setdefault(finding.kind, []).append(finding.value)
    return result


def changed(story: Story, value: str, **fields: object) -> History:
    """The story's history with one write told in another way."""

    def change(told: list[Operation]) -> None:
        for place, one in enumerate(told):
            if isinstance(one, Write) and one.value == value:
                told[place] = replace(one, **fields)  # type: ignore[arg-type]

    return story.history(change)
