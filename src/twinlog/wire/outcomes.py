"""How a write ended. Pure: what a canary tells, and what the futures of the client library hold.

A write ends in exactly one of these. Nothing that may be in a log is called NotDone, and nothing is
called Done that was not seen to be: what is left between the two is Unknown. Most writes are Done, so that
one is a tuple: it is made three times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Position(NamedTuple):
    """A place in a topic."""

    partition: int
    offset: int


class Done(NamedTuple):
    """Every in-sync replica of the active has the record at this offset; with `twin`, of the standby too."""

    partition: int
    offset: int
    twin: bool = False


@dataclass(frozen=True)
class NotDone:
    """The record is certainly in no log: sending it again cannot make it two."""

    reason: str
    hint: str = ""


@dataclass(frozen=True)
class Unknown:
    """The record may be in the active's log or not, and so at the standby; where, if that was heard."""

    reason: str
    hint: str = ""
    position: Position | None = None
