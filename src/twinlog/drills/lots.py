"""What the drill `random` does, as its seed decides: one turn after another, each with all that chance says.

Pure: the row of turns is a function of the seed and of whether there are voters, and of nothing that
happens while it is played; only how far the drill gets in its time is not. Every kind of turn comes once
before any comes again, in an order that is drawn anew each time, so that a drill of minutes has most of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from twinlog.drills.faults import How
from twinlog.traffic.moves import STEPS, Kind, Step

SHORTEST_S = 0.5
ALL = tuple(How)
GONE = (How.KILL, How.END)


class Deed(StrEnum):
    """What a turn is about, in the words of the history."""

    SWITCHOVER = "switchover"
    MOVER = "whoever carries out a switchover"
    ACTIVE = "the active site"
    STANDBY = "the standby site"
    BROKER = "a broker"
    MIRROR = "the mirror"
    WORKERS = "the mirror's workers"
    MANAGER = "the traffic manager with its gate"
    AGENT = "an agent"
    WITNESS = "the witness"


# The ways in which each may be hit; a switchover is a move, and nothing is hit.
WAYS: Mapping[Deed, tuple[How | None, ...]] = {
    Deed.SWITCHOVER: (None,),
    Deed.MOVER: (How.KILL,),
    Deed.ACTIVE: ALL,
    Deed.STANDBY: ALL,
    Deed.BROKER: ALL,
    Deed.MIRROR: ALL,
    Deed.WORKERS: (How.KILL,),
    Deed.MANAGER: ALL,
    # One that hangs while its site is replaced breaks the promise by its nature: that is `agent-hangs`.
    Deed.AGENT: GONE,
    Deed.WITNESS: ALL,
}
OF_VOTERS = frozenset({Deed.AGENT, Deed.WITNESS})


@dataclass(frozen=True)
class Turn:
    """One turn: what is hit, how, where, and for how long."""

    deed: Deed
    how: How | None
    at_active: bool  # of the two sites, for a broker or an agent
    place: float  # among the brokers of that site, from 0 up to 1
    share: float  # of the longest time that such a fault may last, from 0 up to 1
    step: Step  # of a switchover, before which whoever carries it out is killed

    def __str__(self) -> str:
        """As the history says it."""
        where = ""
        if self.deed in (Deed.BROKER, Deed.AGENT):
            where = f" of the {'active' if self.at_active else 'standby'}"
        before = f" before '{self.step}'" if self.deed is Deed.MOVER else ""
        return f"{self.deed}{where}{f': {self.how}' if self.how else ''}{before}"

    def index(self, count: int) -> int:
        """Which of so many it is."""
        return int(self.place * count)

    def lasts_s(self, longest_s: float) -> float:
        """How long it lasts where it may last so long."""
        return SHORTEST_S + self.share * (longest_s - SHORTEST_S)


def turns(random: Random, *, voters: bool) -> Iterator[Turn]:
    """All turns that follow from a seed, without an end."""
    ways = [(deed, how) for deed, found in WAYS.items() if voters or deed not in OF_VOTERS for how in found]
    steps = STEPS[Kind.SWITCHOVER][1:-1]  # before the first nothing has begun, after the last nothing is left
    while True:
        for deed, how in random.sample(ways, k=len(ways)):
            yield Turn(
                deed,
                how,
                at_active=random.random() < 0.5,
                place=random.random(),
                share=random.random(),
                step=random.choice(steps),
            )
