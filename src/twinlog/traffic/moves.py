"""Moves: a switchover, a failover, the return of a lost site, each as a list of steps. Pure.

A move is written down before each step is taken, with the step that comes next, so that whoever finds
it can go on; every step may be taken twice. Terms count moves of the active role and never go back.
Until a switchover has opened the other site it can be called off; from then on it only goes forward, and
ends without the old site if that is lost. Its place can be taken by a failover when the active is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

Points = Mapping[str, Mapping[int, int]]  # topic → partition → offset


class Kind(StrEnum):
    """What moves."""

    SWITCHOVER = "switchover"  # planned: nothing is lost
    FAILOVER = "failover"  # the active is lost
    RETURN = "return"  # a lost site comes back as the standby


class Step(StrEnum):
    """What is done next, in the words that people are shown."""

    FENCE = "fence clients out of the old site"
    TRANSACTIONS = "end open transactions"
    DRAIN = "let the standby catch up"
    OFFSETS = "copy the offsets of groups"
    PRODUCERS = "have both sites know producers alike"
    EPOCHS = "raise the other site's leader epochs"
    HOLD = "take the link's right to write"
    POINTS = "note where each partition is taken over"
    FORGET = "forget the lost site's producers"
    LEASE = "have the voters give the other site its lease"
    OPEN = "open the other site"
    REVOKE = "take clients' right to write there"
    STOP = "stop its brokers, so that waiting clients leave"
    START = "start them again"
    RELEASE = "lift the fence"
    LINK = "turn the link around"
    START_CLOSED = "start the lost site with its client ports closed"
    SALVAGE = "salvage what only the lost site has"
    CUT = "cut its logs where the other site took over"  # or have the topics copied whole
    SETTLE = "make the old site the standby"
    DONE = "done"


STEPS: Mapping[Kind, tuple[Step, ...]] = {
    Kind.SWITCHOVER: (
        Step.FENCE,
        Step.REVOKE,
        Step.TRANSACTIONS,
        Step.DRAIN,
        Step.HOLD,
        Step.OFFSETS,
        Step.PRODUCERS,
        Step.EPOCHS,
        Step.LEASE,
        Step.OPEN,
        Step.STOP,
        Step.START,
        Step.SETTLE,
        Step.LINK,  # the fence leaves it alone, and writes with acks=twin wait for it
        Step.RELEASE,
        Step.DONE,
    ),
    Kind.FAILOVER: (
        Step.FENCE,
        Step.HOLD,
        Step.POINTS,
        Step.EPOCHS,
        Step.FORGET,
        Step.LEASE,  # the other site's agent asks for it from the beginning; now it must be there
        Step.OPEN,
        Step.DONE,
    ),
    Kind.RETURN: (
        Step.START_CLOSED,
        Step.REVOKE,
        Step.TRANSACTIONS,
        Step.SALVAGE,
        Step.STOP,
        Step.CUT,
        Step.START,
        Step.FORGET,
        Step.SETTLE,
        Step.LINK,
        Step.RELEASE,  # what a failover fenced while it still answered, or a switchover before it was lost
        Step.DONE,
    ),
}


COMMANDS: Mapping[Kind, str] = {
    Kind.SWITCHOVER: "switchover",
    Kind.FAILOVER: "promote",
    Kind.RETURN: "return",
}  # by which a person begins such a move, or goes on with it


@dataclass(frozen=True)
class Move:
    """One move of a bus, and how far it is."""

    bus: str
    kind: Kind
    source: str  # the site that is no longer active
    target: str  # the site that is active at the end
    term: int  # of the target
    step: Step  # that comes next, or was begun
    begun_at: float = 0.0
    why: str = ""
    by: str = ""  # who carries it out
    called_off: str = ""  # why, if it was or is being undone
    members: Mapping[str, int] = field(default_factory=dict)  # of each group, when clients were fenced out
    points: Points = field(default_factory=dict)  # where the target took over
    salvaged: Mapping[str, Any] = field(default_factory=dict)
    rebuilt: Mapping[str, str] = field(default_factory=dict)  # topics that could not be cut, and why
    lost: str = ""  # why the source was left behind by a switchover, if it was

    @classmethod
    def begin(cls, kind: Kind, bus: str, sites: tuple[str, str], term: int, **rest: Any) -> Self:
        """A move before its first step, from one site to the other."""
        return cls(bus, kind, *sites, term, STEPS[kind][0], **rest)

    @property
    def is_done(self) -> bool:
        """True when nothing is left to do."""
        return self.step is Step.DONE

    @property
    def is_open(self) -> bool:
        """True once the target may be active: the move cannot be called off any more."""
        steps = STEPS[self.kind]
        return Step.LEASE not in steps or self.progress >= steps.index(Step.LEASE)

    @property
    def has_opened(self) -> bool:
        """True once the target was made active by this move."""
        steps = STEPS[self.kind]
        return not self.called_off and Step.OPEN in steps and self.progress > steps.index(Step.OPEN)

    def gives_way(self, active: str) -> bool:
        """True if a failover may take this move's place when the active site is lost.

        That of a switchover which has not opened the other site, or has done so and lost it. In between the
        other site may be active already, so the move goes on, or a person says what is lost.
        """
        if self.kind is not Kind.SWITCHOVER or self.is_done:
            return False
        return active == self.target if self.has_opened else active == self.source and not self.is_open

    def is_told_by_source(self, site: str) -> bool:
        """True for what the old site knows of a switchover while it lasts: others know it better."""
        is_under_way = not self.is_done and not self.called_off
        return self.kind is Kind.SWITCHOVER and is_under_way and self.source == site

    @property
    def closes_gate(self) -> bool:
        """True while there is no site for clients to go to."""
        steps = STEPS[self.kind]
        return Step.OPEN in steps and self.progress <= steps.index(Step.OPEN)

    @property
    def progress(self) -> int:
        """How many steps were taken."""
        return STEPS[self.kind].index(self.step)

    @property
    def rank(self) -> float:
        """How far the move is: once it is being called off, further than any step that can be undone."""
        if self.called_off and not self.is_done:
            return STEPS[self.kind].index(Step.LEASE) - 0.5
        return self.progress

    def after(self) -> Move:
        """The move when its present step has been taken."""
        if self.called_off or self.lost:
            return replace(self, step=Step.DONE)
        return replace(self, step=STEPS[self.kind][self.progress + 1])

    def __str__(self) -> str:
        way = {
            Kind.SWITCHOVER: f"switchover from {self.source} to {self.target}",
            Kind.FAILOVER: f"failover from {self.source} to {self.target}",
            Kind.RETURN: f"return of {self.source} as the standby",
        }[self.kind]
        if self.called_off:
            return f"{way}, {'' if self.is_done else 'being '}called off: {self.called_off}"
        if self.lost:
            way = f"{way}, without site {self.source}, which is lost ({self.lost})"
        return f"{way}, done" if self.is_done else f"{way}: {self.step}"


def encode(move: Move) -> bytes:
    """As it is written down."""
    told = asdict(move)
    if not move.lost:
        del told["lost"]  # older versions know no such field, and understand all other moves
    return json.dumps(told).encode()


def decode(text: bytes | None) -> Move | None:
    """What was written down; None if it is nothing that we understand."""
    try:
        told: Any = json.loads(text or b"")
        told["kind"], told["step"] = Kind(told["kind"]), Step(told["step"])
        STEPS[told["kind"]].index(told["step"])  # else it is not a step of such a move, as far as we know
        told["points"] = {
            topic: {int(partition): int(offset) for partition, offset in points.items()}
            for topic, points in told["points"].items()
        }
        return Move(**told)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
