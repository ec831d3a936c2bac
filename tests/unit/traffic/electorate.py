"""Three voters, two agents, managers that order anything, and a network that does what it likes: a model.

The voters and leases are the real ones; time, disks and messages are simulated. `Choices` decide what
happens next: a calm moment, or time without messages, a message late or lost, a cut or a healed link, an
order to either site, a lease given back, voters that die and come back with their file or without, agents
that die or are paused. Clocks run up to the permitted error too fast or too slow. After every event the
promises are looked at; the first broken one raises `Broken`. Sites whose agents are paused cannot keep
them, which is counted apart.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from tests.unit.mirror.choices import Choices
from twinlog.traffic.lease import Lease
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import WITNESS, Answer, Memory, Request, Voter, Wish, voter_of

SITES = ("a", "b")
VOTERS = (voter_of("a"), voter_of("b"), WITNESS)
TIMING = Timing(4.0)
RATES = (1.0, 0.99, 1.01)  # of clocks: the error that the margin is for
END_BROKERS_S = 0.5
CALM_S = 0.2
LULLS_S = (0.05, 0.5, 1.0, 2.0, 4.0, 4.7)
FIRST = Memory(term=1, holder="a", lease_s=TIMING.lease_s)


class Broken(AssertionError):
    """A promise does not hold."""


@dataclass(frozen=True)
class Rules:
    """What the model builds with; a test leaves one out to see that it is missed."""

    voter: type[Voter] = Voter
    lease: type[Lease] = Lease
    writes_before_it_answers: bool = True
    counts_from_before_sending: bool = True
    ends_itself_before_giving_back: bool = True
    knows_which_lease_was_answered: bool = True


@dataclass
class VoterAtWork:
    """A voter, its disk and its clock."""

    name: str
    rate: float
    disk: Memory | None = FIRST
    voter: Voter | None = None  # None while it is down
    run: int = 0  # what was sent to an earlier run never arrives
    told: dict[str, Answer] = field(default_factory=dict)


@dataclass
class AgentAtWork:
    """An agent, what it was last ordered, and until when its brokers may write."""

    site: str
    rate: float
    order: int = 0
    ordered_at_s: float = -math.inf
    lease: Lease | None = None
    run: int = 0
    up: bool = True
    paused: bool = False
    ask_at_s: float = 0.0  # by its own clock
    writes_until_s: float = -math.inf  # these two in true time
    valid_at_s: float = -math.inf
    unread: list[Callable[[], None]] = field(default_factory=list)  # what came while it was paused


@dataclass(frozen=True)
class Parcel:
    """Something on its way; `arrive` is what happens when it is there."""

    sender: str
    receiver: str
    arrive: Callable[[], None]

    @property
    def ends(self) -> frozenset[str]:
        """The link that it takes."""
        return frozenset((self.sender, self.receiver))


class Electorate:
    """The whole model; `run` lets things happen until the choices are over."""

    def __init__(self, choices: Choices, rules: Rules = Rules()) -> None:  # noqa: B008  frozen
        self.now_s = 1000.0
        self.choices = choices
        self.rules = rules
        self.pending: list[Parcel] = []
        self.cuts: set[frozenset[str]] = set()
        self.voters = {name: VoterAtWork(name, choices.of(RATES)) for name in VOTERS}
        self.agents = {site: AgentAtWork(site, choices.of(RATES)) for site in SITES}
        self.owners: dict[int, str] = {}  # term → the site that was active in it
        self.last_active = ("", 0)
        self.changes = 0  # of the active site
        self.overlaps_while_paused = 0
        for voter in self.voters.values():
            self.start_voter(voter.name)
        self.give_order("a", FIRST.term)

    def run(self) -> None:
        """Let things happen until nothing surprising is left."""
        often = [self.calm] * 5 + [self.order] * 2 + [self.give_back] + [self.lull, self.late] * 2
        happenings = [*often, self.lose, self.cut, self.shake_voter, self.shake_agent, self.pause]
        while not self.choices.are_over:
            self.choices.of(happenings)()
            self._check()

    def branch(self) -> Self:
        """The same again, to go on otherwise. Nothing may be on its way: it would arrive here."""
        assert not self.pending and not any(agent.unread for agent in self.agents.values())
        other = copy.copy(self)
        other.voters = {name: replace(one, told=dict(one.told)) for name, one in self.voters.items()}
        other.agents = {site: replace(one) for site, one in self.agents.items()}
        other.pending, other.cuts, other.owners = [], set(self.cuts), dict(self.owners)
        return other

    @property
    def outlook(self) -> str:
        """All that what can happen next depends on, while nothing is on its way."""
        voters = [(one.rate, one.disk, one.voter, one.told) for one in self.voters.values()]
        agents = [replace(one, run=0) for one in self.agents.values()]
        cuts = sorted(map(sorted, self.cuts))
        return repr((self.now_s, cuts, voters, agents, self.owners, self.last_active))

    # What can happen.

    def calm(self, length_s: float = CALM_S) -> None:
        """A moment in which everything that can arrive arrives, and everybody does its work."""
        self.now_s += length_s
        self._check()
        for agent in self.agents.values():
            if agent.up and not agent.paused and self._clock(agent) >= agent.ask_at_s:
                self._ask(agent)
        for voter in self.voters.values():
            self._ask_others(voter)
        while self.pending:
            self._arrive(self.pending.pop(0))

    def lull(self) -> None:
        """Time passes, and nothing arrives; what was asked meanwhile is on its way."""
        for agent in self.agents.values():
            if agent.up and not agent.paused:
                self._ask(agent)
        self.now_s += self.choices.of(LULLS_S)

    def late(self) -> None:
        """One thing of those on their way arrives before the others."""
        if self.pending:
            self._arrive(self.pending.pop(self.choices.below(len(self.pending))))

    def lose(self) -> None:
        """One thing never arrives."""
        if self.pending:
            self.pending.pop(self.choices.below(len(self.pending)))

    def cut(self) -> None:
        """A link is cut, or heals; with two cut the next one heals."""
        if len(self.cuts) > 1:
            self.cuts.discard(self.choices.of(sorted(self.cuts, key=sorted)))
            return
        ends = [f"agent-{site}" for site in SITES]
        others = [frozenset((end, voter)) for end in ends for voter in VOTERS]
        among = [frozenset((one, two)) for one in VOTERS for two in VOTERS if one < two]
        self.cuts ^= {self.choices.of([*others, *among])}

    def order(self) -> None:
        """A manager, which may know little, has a site take a term."""
        known = [voter.disk.term for voter in self.voters.values() if voter.disk is not None]
        site = self.choices.of(SITES)
        if self.agents[site].up and known:
            self.give_order(site, self.choices.of(sorted(known, reverse=True)) + 1 + self.choices.below(2))

    def give_back(self) -> None:
        """A site that was fenced gives its lease back."""
        self.have_given_back(self.choices.of(SITES))

    def shake_voter(self) -> None:
        """A voter dies, perhaps with its file, or comes back."""
        down = [voter for voter in self.voters.values() if voter.voter is None]
        if down:
            self.start_voter(down[0].name)
            return
        # With two lost memories nothing ever happens again, which is right and teaches nothing.
        all_remember = all(voter.disk is not None for voter in self.voters.values())
        self.stop_voter(self.choices.of(VOTERS), lose_file=self.choices.one_in(2) and all_remember)

    def shake_agent(self) -> None:
        """An agent dies, and its brokers with it, or comes back."""
        down = [site for site in SITES if not self.agents[site].up]
        if down:
            self.start_agent(down[0])
        else:
            self.stop_agent(self.choices.of(SITES))

    def pause(self) -> None:
        """An agent is stopped, and its brokers are not; or it goes on."""
        stopped = [agent for agent in self.agents.values() if agent.paused]
        agent = stopped[0] if stopped else self.agents[self.choices.of(SITES)]
        if not agent.up:
            return
        agent.paused = not agent.paused
        running = agent.writes_until_s > self.now_s
        if agent.paused:
            agent.writes_until_s = math.inf if running else agent.writes_until_s
        elif running:
            # The first thing that it does is to look at its clock.
            agent.writes_until_s = max(self._true_end(agent), self.now_s)
        while not agent.paused and agent.unread:
            agent.unread.pop(0)()

    # What a test can have happen by name.

    def have_given_back(self, site: str) -> None:
        """Have a site end its writing and give its lease back."""
        agent = self.agents[site]
        if not agent.up or agent.paused or agent.lease is None:
            return
        ended, request = agent.lease.give_back()
        if self.rules.ends_itself_before_giving_back:
            agent.lease = ended
            agent.writes_until_s = min(agent.writes_until_s, self.now_s)
        agent.order = 0
        self._send_to_voters(agent, request)

    def give_order(self, site: str, term: int) -> None:
        """Have a site take a term; its agent refuses while it runs on a lease."""
        agent = self.agents[site]
        if agent.paused or (agent.lease is not None and agent.lease.state(self._clock(agent)).valid):
            return
        agent.order, agent.ordered_at_s = term, self.now_s
        agent.lease = self._lease(agent, term)
        agent.ask_at_s = 0.0

    def stop_voter(self, name: str, *, lose_file: bool = False) -> None:
        """Kill a voter."""
        voter = self.voters[name]
        voter.voter = None
        voter.run += 1
        if lose_file:
            voter.disk = None

    def start_voter(self, name: str) -> None:
        """Start a voter with what is on its disk."""
        voter = self.voters[name]
        voter.run += 1
        voter.told = {}
        voter.voter = self.rules.voter.started(name, TIMING, voter.disk, self._clock(voter))

    def stop_agent(self, site: str) -> None:
        """Kill an agent; its brokers die with it."""
        agent = self.agents[site]
        agent.run += 1
        agent.up = agent.paused = False
        agent.unread.clear()
        agent.lease = None
        agent.writes_until_s = min(agent.writes_until_s, self.now_s)

    def start_agent(self, site: str) -> None:
        """Start an agent, which goes on with the term that it was last ordered to take."""
        agent = self.agents[site]
        agent.up = True
        if agent.order:
            agent.lease = self._lease(agent, agent.order)
            agent.ask_at_s = 0.0

    def is_active(self, site: str) -> bool:
        """True if the site holds a lease."""
        agent = self.agents[site]
        return agent.lease is not None and agent.lease.state(self._clock(agent)).valid

    def ask(self, site: str) -> None:
        """Have an agent ask all voters now."""
        self._ask(self.agents[site])

    def let_arrive(self, sender: str, receiver: str) -> None:
        """Let one thing arrive out of its order."""
        parcel = next(one for one in self.pending if (one.sender, one.receiver) == (sender, receiver))
        self.pending.remove(parcel)
        self._arrive(parcel)

    # How it works.

    def _clock(self, one: AgentAtWork | VoterAtWork) -> float:
        return self.now_s * one.rate

    def _lease(self, agent: AgentAtWork, term: int) -> Lease:
        begun_s = self._clock(agent) if self.rules.knows_which_lease_was_answered else -math.inf
        return self.rules.lease(agent.site, term, TIMING, begun_s)

    def _ask(self, agent: AgentAtWork) -> None:
        now_s = self._clock(agent)
        request = agent.lease.request(now_s) if agent.lease is not None else None
        if agent.lease is None or request is None:
            return
        agent.ask_at_s = now_s + (TIMING.renew_s if agent.lease.state(now_s).valid else 0.0)
        self._send_to_voters(agent, request)

    def _send_to_voters(self, agent: AgentAtWork, request: Request) -> None:
        sent_s, run = self._clock(agent), agent.run
        for voter in self.voters.values():

            def heard(answer: Answer) -> None:
                if agent.run == run:
                    self._hear(agent, request, answer, sent_s)

            self._put_question(f"agent-{agent.site}", voter, request, heard)

    def _put_question(
        self, asker: str, voter: VoterAtWork, request: Request, heard: Callable[[Answer], None]
    ) -> None:
        run = voter.run

        def arrive() -> None:
            if voter.voter is None or voter.run != run:
                return
            voter.voter, answer = voter.voter.consider(request, self._clock(voter))
            if self.rules.writes_before_it_answers:
                voter.disk = voter.voter.memory
            self._send(Parcel(voter.name, asker, lambda: heard(answer)))

        self._send(Parcel(asker, voter.name, arrive))

    def _ask_others(self, voter: VoterAtWork) -> None:
        if voter.voter is None or not voter.voter.wants_to_learn(self._clock(voter)):
            return
        run = voter.run

        def heard(answer: Answer) -> None:
            if voter.voter is not None and voter.run == run:
                voter.told[answer.voter] = answer
                voter.voter = voter.voter.learned(voter.told, self._clock(voter))
                voter.disk = voter.voter.memory

        for other in self.voters.values():
            if other is not voter:
                self._put_question(voter.name, other, Request(Wish.TELL), heard)

    def _send(self, parcel: Parcel) -> None:
        if parcel.ends not in self.cuts:
            self.pending.append(parcel)

    def _arrive(self, parcel: Parcel) -> None:
        parcel.arrive()
        self._check()

    def _hear(self, agent: AgentAtWork, request: Request, answer: Answer, sent_s: float) -> None:
        if agent.lease is None or request.wish is Wish.RELEASE:
            return
        if agent.paused:
            # It lies in the agent's buffer until it goes on.
            agent.unread.append(lambda: self._hear(agent, request, answer, sent_s))
            return
        counted_s = sent_s if self.rules.counts_from_before_sending else self._clock(agent)
        agent.lease = agent.lease.heard(request, answer, counted_s, self._clock(agent))
        if request.wish is Wish.TRY:
            agent.ask_at_s = 0.0
        self._note_active(agent)

    def _true_end(self, agent: AgentAtWork) -> float:
        state = agent.lease.state(self._clock(agent)) if agent.lease is not None else None
        return state.until_s / agent.rate + END_BROKERS_S if state is not None and state.valid else -math.inf

    def _note_active(self, agent: AgentAtWork) -> None:
        state = agent.lease.state(self._clock(agent)) if agent.lease is not None else None
        if state is None or not state.valid:
            return
        agent.writes_until_s = self._true_end(agent)
        owner = self.owners.setdefault(state.term, agent.site)
        if owner != agent.site:
            raise Broken(f"term {state.term} belongs to {owner} and to {agent.site}")
        before, term = self.last_active
        if before not in ("", agent.site):
            self.changes += 1
            if state.term <= term:
                raise Broken(f"{agent.site} is active in term {state.term} after {before} in {term}")
            if agent.ordered_at_s < agent.valid_at_s:
                raise Broken(f"{agent.site} is active again after {before}, and nobody ordered it")
        self.last_active = (agent.site, state.term)
        agent.valid_at_s = self.now_s

    def _check(self) -> None:
        writing = [agent for agent in self.agents.values() if agent.writes_until_s > self.now_s]
        if len(writing) < len(SITES):
            return
        if any(agent.paused for agent in writing):
            self.overlaps_while_paused += 1
            return
        raise Broken(f"both sites write in terms {_terms(writing)}")


def _terms(agents: Iterable[AgentAtWork]) -> list[int]:
    return [agent.lease.ordered for agent in agents if agent.lease is not None]
