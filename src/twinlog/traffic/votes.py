"""A voter: who may be active, as one of three sees it. Pure; `witness` keeps its memory and its time.

The voters are one beside each site and the witness; two grants make a lease (`lease`). What must stay
true: memory is on disk before the answer leaves; terms never go back; another site gets nothing before
the lease that was granted is over, by this voter's own clock, or was given back. A voter that starts
again has forgotten when it last granted and takes that to be just now. One that lost its memory first
lets every lease pass that it may have granted, and only then asks both others what they know: whatever
was held by its votes until then, one of them knows. Two without memory need a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Self

from twinlog.traffic.timing import Timing, wait_after

WITNESS = "witness"
VOTERS = 3
MAJORITY = 2


def voter_of(site: str) -> str:
    """The name of the voter beside a site; no site can make it the witness's."""
    return f"site-{site}"


class Wish(StrEnum):
    """What is asked of a voter."""

    TRY = "try"  # would you grant it? Nothing is promised
    GRANT = "grant"
    RELEASE = "release"  # the holder gives its lease back, for good
    TELL = "tell"  # what do you know?


@dataclass(frozen=True)
class Request:
    """One question to a voter."""

    wish: Wish
    site: str = ""
    term: int = 0


@dataclass(frozen=True)
class Answer:
    """What a voter says: yes or no and why, and always what it knows."""

    voter: str
    granted: bool
    why: str
    term: int = 0
    holder: str = ""
    lease_s: float = 0.0  # what was granted
    wait_s: float = 0.0  # so long nobody but the holder gets anything
    blank: bool = False  # it has no memory

    def would_grant(self, site: str, term: int) -> bool:
        """True if the voter, as it was, grants this site a term that is new to it."""
        return not self.blank and term > self.term and (self.holder == site or not self.wait_s)


@dataclass(frozen=True)
class Memory:
    """What a voter never forgets."""

    term: int = 0
    holder: str = ""  # the site that has, or last had, this term
    lease_s: float = 0.0  # the longest lease granted in it
    released: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """What the file says; ValueError, KeyError or TypeError if it is not one of ours."""
        released = told["released"]
        if not isinstance(released, bool):
            raise TypeError("released must be true or false")
        return cls(int(told["term"]), str(told["holder"]), float(told["lease_s"]), released)


@dataclass(frozen=True)
class Voter:
    """One voter between two questions; times are of its own clock."""

    name: str
    timing: Timing
    memory: Memory | None  # None: it was lost, or there never was one
    free_at_s: float  # before this, nobody but the holder gets anything

    @classmethod
    def started(cls, name: str, timing: Timing, memory: Memory | None, now_s: float) -> Self:
        """A voter after a start, which is taken to have granted a whole lease just before."""
        lease_s = max(timing.lease_s, memory.lease_s if memory is not None else 0.0)
        nothing_is_out = memory is not None and (memory.released or not memory.holder)
        return cls(name, timing, memory, now_s if nothing_is_out else now_s + wait_after(lease_s))

    def consider(self, request: Request, now_s: float) -> tuple[Voter, Answer]:
        """The voter after a question, and its answer."""
        match request.wish:
            case Wish.TELL:
                return self, self._answer(False, self._knowledge(), now_s)
            case Wish.RELEASE:
                return self._release(request, now_s)
            case Wish.TRY | Wish.GRANT:
                refusal = self._refusal(request, now_s)
                if refusal:
                    return self, self._answer(False, refusal, now_s)
                if request.wish is Wish.TRY:
                    return self, self._answer(True, f"would grant term {request.term}", now_s)
                return self._grant(request, now_s)

    def wants_to_learn(self, now_s: float) -> bool:
        """True when a voter without memory may ask the others: nothing that it granted holds any more."""
        return self.memory is None and now_s >= self.free_at_s

    def learned(self, told: Mapping[str, Answer], now_s: float) -> Voter:
        """The voter after both others told what they know, asked after `wants_to_learn` was true."""
        known = [answer for name, answer in told.items() if name != self.name and not answer.blank]
        if not self.wants_to_learn(now_s) or len(known) < VOTERS - 1:
            return self
        newest = max(known, key=lambda answer: answer.term)
        return replace(self, memory=Memory(newest.term, newest.holder, self.timing.lease_s))

    def _refusal(self, request: Request, now_s: float) -> str:
        memory = self.memory
        if memory is None or request.term < memory.term:
            return self._knowledge()
        # The same site may have a new term at any time: what it was granted excludes only the other.
        same_site, same_term = request.site == memory.holder, request.term == memory.term
        if same_site:
            return f"term {memory.term} was given back" if same_term and memory.released else ""
        if same_term:
            return self._knowledge()
        if now_s < self.free_at_s:
            return f"{self._knowledge()}, for {self.free_at_s - now_s:.1f} s yet"
        return ""

    def _grant(self, request: Request, now_s: float) -> tuple[Voter, Answer]:
        assert self.memory is not None, "a voter without memory refuses"
        lease_s = self.timing.lease_s
        longest_s = max(lease_s, self.memory.lease_s) if self.memory.holder == request.site else lease_s
        after = replace(
            self,
            memory=Memory(request.term, request.site, longest_s),
            free_at_s=max(self.free_at_s, now_s + self.timing.wait_s),
        )
        answer = after._answer(True, f"grants term {request.term} to site {request.site}", now_s)
        return after, replace(answer, lease_s=lease_s)

    def _release(self, request: Request, now_s: float) -> tuple[Voter, Answer]:
        memory = self.memory
        if memory is None or memory.holder != request.site or memory.term > request.term:
            return self, self._answer(False, self._knowledge(), now_s)
        # The higher term is kept, so that a request that was overtaken brings nothing back.
        after = replace(
            self,
            memory=replace(memory, term=request.term, released=True),
            free_at_s=min(self.free_at_s, now_s),
        )
        return after, after._answer(True, f"site {request.site} gave term {request.term} back", now_s)

    def _answer(self, granted: bool, why: str, now_s: float) -> Answer:
        memory = self.memory or Memory()
        wait_s = max(0.0, self.free_at_s - now_s)
        return Answer(
            self.name, granted, why, memory.term, memory.holder, wait_s=wait_s, blank=self.memory is None
        )

    def _knowledge(self) -> str:
        if self.memory is None:
            return f"{self.name} has no memory and must first hear both others"
        if not self.memory.holder:
            return "nobody was granted anything yet"
        return f"{self.name} knows term {self.memory.term} of site {self.memory.holder}"
