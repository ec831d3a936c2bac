"""Keeps a site's lease alive: asks the voters in time and tells what the site may rely on.

An agent has one `Tenure` for its site. `take` begins a lease (on the manager's order, or with the term
that the site was active in when the agent starts), `state` is what the agent looks at before it starts
brokers and, without pause, while they run; `give_back` comes when they are fenced or ended. What must stay
true: the time of a request is taken before it is sent, and the answers are told to the lease as they come,
so that a voter that hangs holds up nothing. The rules themselves are those of `lease`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Self

from twinlog.errors import SiteError
from twinlog.traffic.clock import clock_s
from twinlog.traffic.lease import Lease, State
from twinlog.traffic.poll import Papers, ask_all, collect
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import MAJORITY, Answer, Request
from twinlog.wire.addresses import HostPort


class Tenure:
    """One site's lease over time, with a thread that renews it, from `with` until its end."""

    def __init__(
        self,
        site: str,
        timing: Timing,
        voters: Mapping[str, HostPort],
        papers: Papers,
        clock: Callable[[], float] = clock_s,
    ) -> None:
        self._site = site
        self._timing = timing
        self._voters = voters
        self._papers = papers
        self._clock = clock
        self._changed = threading.Condition()
        self._lease: Lease | None = None
        self._silent: dict[str, str] = {}
        self._ask_at_s = math.inf
        self._closed = False
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def take(self, term: int, *, within_s: float = math.inf) -> None:
        """Begin a lease in this term; an order that has not succeeded in time is dropped.

        A site that holds a lease keeps it as it is, so an order may be repeated.
        """
        with self._changed:
            now_s = self._clock()
            if self._lease is not None and self._lease.state(now_s).valid:
                return
            self._lease = Lease(self._site, term, self._timing, now_s, now_s + within_s)
            self._ask_at_s = now_s
            self._changed.notify_all()

    def state(self) -> State:
        """What the site may rely on now."""
        with self._changed:
            now_s = self._clock()
            if self._lease is None:
                return State(False, 0, now_s, f"site {self._site} was given no term")
            return self._lease.state(now_s)

    def silent(self) -> dict[str, str]:
        """The voters that did not answer when last asked, and why."""
        with self._changed:
            return dict(self._silent)

    def wait_until_valid(self, timeout_s: float) -> State:
        """Wait until there is a lease, or this long; the state at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self.state().valid, timeout_s)
        return self.state()

    def give_back(self, timeout_s: float) -> int:
        """Tell all voters that the site is fenced and needs its lease no longer; how many took note.

        With two the other site need not wait. The lease is over here before anybody is told.
        """
        with self._changed:
            if self._lease is None:
                return 0
            self._lease, request = self._lease.give_back()
            self._ask_at_s = math.inf
            self._changed.notify_all()
        told = collect(
            self._voters, request, self._papers, timeout_s, lambda told: _granting(told) >= MAJORITY
        )
        return _granting(told)

    def drop(self) -> None:
        """Ask for nothing any more; what was granted runs out by itself."""
        with self._changed:
            self._lease = None
            self._ask_at_s = math.inf

    def _renew(self) -> None:
        while True:
            with self._changed:
                if not self._closed and not self._is_due():
                    self._changed.wait(self._until_due_s())
                if self._closed:
                    return
                if not self._is_due():
                    continue  # woken because something changed, perhaps when it is due
                sent_s = self._clock()
                request = self._lease.request(sent_s) if self._lease is not None else None
                self._ask_at_s = sent_s + self._timing.renew_s if request is not None else math.inf
            if request is not None:
                self._ask(request, sent_s)

    def _is_due(self) -> bool:
        return self._clock() >= self._ask_at_s

    def _until_due_s(self) -> float | None:
        return None if self._ask_at_s == math.inf else max(0.0, self._ask_at_s - self._clock())

    def _ask(self, request: Request, sent_s: float) -> None:
        def heard(voter: str, answer: Answer | SiteError) -> None:
            with self._changed:
                self._hear(voter, request, answer, sent_s)

        ask_all(self._voters, request, self._papers, self._timing.late_s, heard)

    def _hear(self, voter: str, request: Request, answer: Answer | SiteError, sent_s: float) -> None:
        now_s = self._clock()
        if isinstance(answer, SiteError):
            self._silent[voter] = str(answer)
        else:
            self._silent.pop(voter, None)
        if self._lease is None or self._lease.given_back:
            return
        if isinstance(answer, Answer):
            self._lease = self._lease.heard(request, answer, sent_s, now_s)
        # Only sooner than planned: the answers of a round must not put the next one off.
        self._ask_at_s = min(self._ask_at_s, now_s + self._lease.pause_s(request, now_s))
        self._changed.notify_all()


def _granting(told: Mapping[str, Answer]) -> int:
    return sum(answer.granted for answer in told.values())
