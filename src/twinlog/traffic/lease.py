"""The holder's side of a lease: may this site be active now? Pure; the agent has the hands and the clock.

An agent beside a site's brokers asks all three voters (`poll`), tells each answer to its `Lease`, and
ends the brokers when `state` says that it is over. What must stay true: a grant counts from the moment
before its request was sent; two voters make a lease; after a gap only a term is asked for that was
ordered or held, since the other site may have been active in between. While the lease is valid nobody
else can have been active, so a voter that knows a higher term, from an attempt that failed, is won back
with one higher still. A lease that was given back never comes back; the next one has a higher term.
The clock must go on while the machine sleeps (`clock`). A paused agent is what this cannot protect from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import MAJORITY, Answer, Request, Wish


@dataclass(frozen=True)
class Grant:
    """One voter's promise to this site."""

    term: int
    until_s: float


@dataclass(frozen=True)
class State:
    """What a site may rely on, and why, in a sentence for people."""

    valid: bool
    term: int
    until_s: float
    why: str


@dataclass(frozen=True)
class Lease:
    """One site's lease, from the order to take a term until it is given back."""

    site: str
    ordered: int  # the term that it was told to take, or had when its agent started
    timing: Timing
    begun_s: float  # answers to what was asked before belong to an earlier lease
    try_until_s: float = math.inf  # an order that has not succeeded by then is dropped
    wanted: int = 0  # to win a voter back that knows a higher term; 0: nothing beyond `held`
    held: int = 0  # the highest term in which it was valid
    given_back: bool = False
    grants: Mapping[str, Grant] = field(default_factory=dict)
    trials: Mapping[str, float] = field(default_factory=dict)  # voter → until when its "I would" counts
    refusals: Mapping[str, Answer] = field(default_factory=dict)

    def state(self, now_s: float) -> State:
        """Whether this site may be active now, and until when."""
        current = self._current(now_s)
        if len(current) < MAJORITY:
            return State(False, 0, now_s, self._why_not())
        until_s = sorted(grant.until_s for grant in current.values())[-MAJORITY]
        term = sorted(grant.term for grant in current.values())[-MAJORITY]
        names = " and ".join(sorted(current))
        return State(True, term, until_s, f"site {self.site} holds term {term} by {names}")

    def request(self, now_s: float) -> Request | None:
        """What to ask every voter now; None when there is nothing to ask for any more."""
        if self.given_back:
            return None
        if self.state(now_s).valid:
            return Request(Wish.GRANT, self.site, self._term_if_valid)
        if now_s >= self.try_until_s and not self.held:
            return None
        # Asked for in earnest only with two in sight: a lone grant would cost the other site a voter.
        in_sight = {voter for voter, until_s in self.trials.items() if until_s > now_s}
        ready = len(in_sight | self._current(now_s).keys()) >= MAJORITY
        return Request(Wish.GRANT if ready else Wish.TRY, self.site, self._term_after_a_gap)

    def heard(self, request: Request, answer: Answer, sent_s: float, now_s: float) -> Lease:
        """The lease after an answer to a request; `sent_s` was taken before it was sent."""
        if self.given_back or sent_s < self.begun_s:
            return self
        if not answer.granted:
            return self._refused(answer, now_s)
        refusals = {name: refusal for name, refusal in self.refusals.items() if name != answer.voter}
        if request.wish is Wish.TRY:
            trials = {**self.trials, answer.voter: now_s + self.timing.renew_s}
            return replace(self, trials=trials, refusals=refusals)
        until_s = sent_s + min(answer.lease_s, self.timing.lease_s)
        before = self.grants.get(answer.voter, Grant(0, -math.inf))
        grant = Grant(max(request.term, before.term), max(until_s, before.until_s))
        after = replace(self, grants={**self.grants, answer.voter: grant}, refusals=refusals)
        return replace(after, held=max(after.held, after.state(now_s).term))

    def pause_s(self, answered: Request, now_s: float) -> float:
        """How long to wait, after an answer to this request, before the voters are asked again."""
        if self.state(now_s).valid:
            return self.timing.renew_s
        following = self.request(now_s)
        if answered.wish is Wish.TRY and following is not None and following.wish is Wish.GRANT:
            return 0.0
        hints = [answer.wait_s for answer in self.refusals.values() if answer.wait_s]
        return max(min([self.timing.retry_s, *hints]), self.timing.retry_s / 4)

    def give_back(self) -> tuple[Lease, Request]:
        """The lease when the site is fenced and needs it no longer, and what to tell every voter."""
        highest = max(self.ordered, self.held, self.wanted)
        return replace(self, given_back=True, grants={}), Request(Wish.RELEASE, self.site, highest)

    @property
    def _term_after_a_gap(self) -> int:
        return max(self.ordered, self.held)

    @property
    def _term_if_valid(self) -> int:
        return max(self._term_after_a_gap, self.wanted)

    def _current(self, now_s: float) -> dict[str, Grant]:
        return {voter: grant for voter, grant in self.grants.items() if grant.until_s > now_s}

    def _refused(self, answer: Answer, now_s: float) -> Lease:
        trials = {name: until_s for name, until_s in self.trials.items() if name != answer.voter}
        after = replace(self, refusals={**self.refusals, answer.voter: answer}, trials=trials)
        if answer.term < self._term_if_valid or answer.holder == self.site:
            return after
        return replace(after, wanted=answer.term + 1) if self.state(now_s).valid else after

    def _why_not(self) -> str:
        if self.given_back:
            return f"site {self.site} gave its lease back"
        said = "; ".join(f"{name}: {answer.why}" for name, answer in sorted(self.refusals.items()))
        return f"site {self.site} has fewer than two grants" + (f" ({said})" if said else "")
