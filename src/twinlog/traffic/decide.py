"""What the traffic manager does next: observations and time in, one step and its reason out. Pure.

The manager calls `decide` every turn and takes the step; the reason is log line, status and what tests
assert. What must stay true: unknown is never taken for dead; a standby is promoted only when it is
healthy and its own role record says that it is one; nothing is promoted without saying what would be
lost. Two managers that see different things may decide differently: the voters, not this module, see to
it that only one site is active. Whether a step succeeded is seen in a later turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinlog.spec.model import Promote as Mode
from twinlog.spec.model import Role
from twinlog.traffic.votes import MAJORITY, VOTERS, WITNESS, Answer, voter_of
from twinlog.traffic.watching import Health, Seen

FAR_BEHIND_S = 5.0
LOOK_AGAIN_S = 1.0


@dataclass(frozen=True)
class Site:
    """One site as the manager sees it."""

    canary: Seen
    role: Role | None = None  # as its record said when last read, here or by its agent
    term: int = 0  # of the role record
    quorum_led: bool | None = None
    under_min_isr: int | None = None  # mirrored partitions that would refuse writes
    agent_answers: bool = False
    holds_lease: bool = False  # as its agent says

    @property
    def answers(self) -> bool:
        """True if somebody there can be talked to."""
        return self.canary.health is Health.HEALTHY or self.agent_answers

    @property
    def is_seen(self) -> bool:
        """True if anything is known about the site now."""
        return self.canary.health is not Health.UNKNOWN or self.agent_answers


@dataclass(frozen=True)
class Link:
    """What the standby lacks, as last measured; None is unknown."""

    lag_records: int | None = None
    lag_s: float | None = None

    def loss(self) -> str:
        """What a failover would lose, for people."""
        if self.lag_records is None:
            return "how much the standby lacks is unknown"
        if not self.lag_records:
            return "the standby lacked nothing when last seen"
        noun = "record" if self.lag_records == 1 else "records"
        if self.lag_s is None:
            return f"the standby lacked {self.lag_records} {noun} when last seen"
        far = ", which is far behind" if self.lag_s > FAR_BEHIND_S else ""
        return f"the standby lacked {self.lag_records} {noun} ({self.lag_s:.1f} s) when last seen{far}"


@dataclass(frozen=True)
class Bus:
    """What the manager knows of the bus itself."""

    active: str
    term: int
    promote: Mode
    failover_after_s: float
    move: str = ""  # one that was begun and is not done, in words
    move_term: int = 0  # of that one
    gives_way: bool = False  # it does, to a failover from the active site
    untold: str = ""  # a site that does not know that a switchover was called off
    paused: str = ""  # why; empty: it is not


@dataclass(frozen=True)
class Observation:
    """All that one turn of the manager has seen."""

    bus: Bus
    sites: Mapping[str, Site]
    link: Link = Link()
    votes: Mapping[str, Answer] = field(default_factory=dict)  # what the voters that answered told

    @property
    def standby(self) -> str:
        """The other site; empty in a bus of one."""
        return next((name for name in self.sites if name != self.bus.active), "")

    @property
    def next_term(self) -> int:
        """A term that nobody has heard of."""
        return max(self.bus.term, self.bus.move_term, *(answer.term for answer in self.votes.values()), 0) + 1


@dataclass(frozen=True)
class Nothing:
    """Leave all as it is."""

    why: str


@dataclass(frozen=True)
class Wait:
    """Something is going on; look again, at this time of the manager's clock at the latest."""

    why: str
    until_s: float


@dataclass(frozen=True)
class Resume:
    """Go on with the move that was begun."""

    why: str


@dataclass(frozen=True)
class Tell:
    """Have a site hear of a switchover that was called off while it was away."""

    site: str
    why: str


@dataclass(frozen=True)
class Return:
    """Take a lost site back as the standby."""

    site: str
    why: str


@dataclass(frozen=True)
class ReadyToPromote:
    """A person may say so; nothing is done before."""

    site: str
    term: int
    why: str


@dataclass(frozen=True)
class Promote:
    """Make the site active in this term."""

    site: str
    term: int
    why: str


Step = Nothing | Wait | Resume | Tell | Return | ReadyToPromote | Promote


def decide(seen: Observation, now_s: float) -> Step:
    """The step to take now."""
    bus = seen.bus
    if bus.paused:
        unfinished = f"; not finished: {bus.move}" if bus.move else ""
        return Nothing(f"paused: {bus.paused}{unfinished}")
    if bus.move and not (bus.gives_way and _is_going(seen.sites[bus.active])):
        return Resume(f"not finished: {bus.move}")
    if not any(site.is_seen for site in seen.sites.values()):
        return Nothing("nothing is seen of any site; is this machine cut off?")
    if _was_promoted_elsewhere(seen):
        return Nothing(f"two voters know a later term of site {seen.standby}; the record here is old")
    active = seen.sites[bus.active]
    match active.canary.health:
        case Health.HEALTHY:
            return _while_active_is_healthy(seen)
        case Health.UNKNOWN:
            return Nothing(f"site {bus.active} is unknown ({active.canary.why}); nothing follows from that")
        case Health.FAILING:
            since_s = now_s if active.canary.since_s is None else active.canary.since_s
            why = f"site {bus.active} is failing: {active.canary.why}"
            return Wait(why, max(since_s + bus.failover_after_s, now_s))
        case Health.DEAD:
            return _while_active_is_dead(seen, now_s)


def _is_going(site: Site) -> bool:
    """True of a site that nobody should wait for: what needs it does not go on."""
    return site.canary.health in (Health.FAILING, Health.DEAD)


def _was_promoted_elsewhere(seen: Observation) -> bool:
    later = [v for v in seen.votes.values() if v.term > seen.bus.term and v.holder == seen.standby]
    return bool(seen.standby) and len(later) >= MAJORITY


def _while_active_is_healthy(seen: Observation) -> Step:
    active, standby = seen.bus.active, seen.standby
    good = f"site {active} is active and healthy"
    if not standby:
        return Nothing(f"{good}; there is no other site")
    if untold := seen.bus.untold:
        return Tell(untold, f"{good}; site {untold} has not heard that a switchover was called off")
    other = seen.sites[standby]
    if other.role is not None and not _is_standby(other, seen.bus) and other.answers:
        was = f"{other.role} of term {other.term}"
        return Return(standby, f"{good}; site {standby} answers and was {was}: it must be taken back")
    unfit = _unfit(standby, other, seen.bus)
    if unfit:
        return Nothing(f"{good}; no failover is possible: {unfit}")
    missing = _votes_missing(seen)
    if missing:
        return Nothing(f"{good}; site {standby} is ready, but needs a person to be promoted: {missing}")
    return Nothing(f"{good}; site {standby} is ready; {seen.link.loss()}")


def _votes_missing(seen: Observation) -> str:
    """Why there would be no majority if the active site and its voter were lost; empty if there would be."""
    if seen.bus.promote is not Mode.AUTOMATIC:
        return ""
    others = (voter_of(seen.standby), WITNESS)
    silent = [voter for voter in others if voter not in seen.votes]
    blank = [voter for voter in others if voter in seen.votes and seen.votes[voter].blank]
    said = [f"{' and '.join(silent)} told nothing"] if silent else []
    said += [f"{' and '.join(blank)} without memory"] if blank else []
    return "; ".join(said)


def _while_active_is_dead(seen: Observation, now_s: float) -> Step:
    active, standby = seen.bus.active, seen.standby
    lost = f"site {active} is dead: {seen.sites[active].canary.why}"
    if seen.bus.move:
        lost = f"{lost}; not finished: {seen.bus.move}"
    if not standby:
        return Nothing(f"{lost}; there is no other site")
    unfit = _unfit(standby, seen.sites[standby], seen.bus)
    if unfit:
        return _without_standby(seen, f"{lost}; no failover is possible: {unfit}")
    refusing = seen.sites[standby].under_min_isr
    if refusing is None:
        short = f"; whether all partitions of site {standby} take writes is unknown"
    else:
        short = f"; {refusing} partitions of site {standby} would refuse writes" if refusing else ""
    why = f"{lost}; {seen.link.loss()}{short}"
    if seen.bus.promote is Mode.ASK:
        return ReadyToPromote(standby, seen.next_term, why)
    return _promote_by_vote(seen, why, now_s)


def _promote_by_vote(seen: Observation, why: str, now_s: float) -> Step:
    active, standby, term = seen.bus.active, seen.standby, seen.next_term
    remember = [answer for answer in seen.votes.values() if not answer.blank]
    if len(remember) < MAJORITY:
        few = f"{len(remember)} of {VOTERS} voters can answer, so a person must say that it is"
        return ReadyToPromote(standby, term, f"{why}; {few}")
    if sum(answer.would_grant(standby, term) for answer in remember) >= MAJORITY:
        return Promote(standby, term, why)
    if seen.sites[active].agent_answers:
        # It sees the brokers from nearby, and alone ends them: to whoever is only cut off from them, they
        # are dead too.
        itself = "its agent answers, and gives the lease back when it finds that no broker takes writes"
        return Wait(f"{why}; {itself}", now_s + LOOK_AGAIN_S)
    waits = sorted(answer.wait_s for answer in remember if not answer.would_grant(standby, term))
    held = f"voters keep it for site {active} for {waits[0]:.1f} s yet"
    return Wait(f"{why}; {held}", now_s + min(waits[0], LOOK_AGAIN_S))


def _without_standby(seen: Observation, why: str) -> Step:
    """A site that stands still for want of a term that others have passed can go on, if a person agrees."""
    active = seen.sites[seen.bus.active]
    passed = seen.next_term > seen.bus.term + 1
    if passed and active.agent_answers and not active.holds_lease:
        behind = f"voters know a later term than {seen.bus.term}"
        ask = f"was site {seen.standby} never active in it? Then site {seen.bus.active} can go on"
        return ReadyToPromote(seen.bus.active, seen.next_term, f"{why}; {behind}; {ask}")
    return Nothing(why)


def _is_standby(site: Site, bus: Bus) -> bool:
    return site.role is Role.STANDBY and site.term == bus.term


def _unfit(name: str, site: Site, bus: Bus) -> str:
    """Why a site cannot be promoted; empty if it can."""
    if site.canary.health is not Health.HEALTHY:
        return f"site {name} is {site.canary.health} ({site.canary.why})"
    if not site.quorum_led:
        return f"the quorum of site {name} " + ("is unknown" if site.quorum_led is None else "has no leader")
    if not _is_standby(site, bus):
        was = "unknown" if site.role is None else f"{site.role} of term {site.term}"
        return f"the role of site {name} is {was}, not standby of term {bus.term}"
    return ""
