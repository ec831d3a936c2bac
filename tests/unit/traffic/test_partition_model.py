"""Never two active sites, whatever happens to voters, agents, clocks and the network between them.

The model (`electorate`) runs the real voters and leases. Anything may happen in any order; each rule is
then left out, by chance or in an accident that was written down, and must be missed. At the end what must
go on: losing one voter, or every manager, stops nothing.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mirror.choices import Choices
from tests.unit.traffic.electorate import FIRST, RATES, TIMING, VOTERS, Broken, Electorate, Rules
from twinlog.traffic import lease as leases
from twinlog.traffic import timing as timings
from twinlog.traffic.lease import Lease
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import WITNESS, Answer, Memory, Request, Voter, Wish

RUNS = 250
MANY_RUNS = 10_000
SURELY_FOUND_IN = 1500  # the rarest of these comes once in a hundred runs
EVENTS = 400  # bytes of choices: about a minute of the model's time
A, B = "site-a", "site-b"
ORDINARY = Rules()


def happened(seed: int, rules: Rules = ORDINARY) -> Electorate:
    electorate = Electorate(Choices(random.Random(seed).randbytes(EVENTS)), rules)
    electorate.run()
    return electorate


@settings(max_examples=60, deadline=None)
@given(happens=st.binary(min_size=EVENTS // 2, max_size=EVENTS))
def test_anything_in_any_order_one_site_is_active_at_most(happens: bytes) -> None:
    Electorate(Choices(happens)).run()


def test_many_random_runs_one_site_is_active_at_most_and_roles_do_change() -> None:
    runs = [happened(seed) for seed in range(RUNS)]
    assert sum(run.changes for run in runs) > RUNS / 2, "a model in which nothing happens proves nothing"


@pytest.mark.slow
def test_thousands_of_random_runs_one_site_is_active_at_most() -> None:
    for seed in range(MANY_RUNS):
        happened(seed)


def next_term(electorate: Electorate) -> int:
    return 1 + max(voter.disk.term for voter in electorate.voters.values() if voter.disk is not None)


def toggle_cuts(electorate: Electorate, *links: tuple[str, str]) -> None:
    electorate.cuts ^= {frozenset(link) for link in links}


def toggle_agent(electorate: Electorate, site: str) -> None:
    (electorate.stop_agent if electorate.agents[site].up else electorate.start_agent)(site)


def restart_voter(electorate: Electorate, name: str, *, lose_file: bool) -> None:
    others_remember = all(voter.disk is not None for voter in electorate.voters.values())
    electorate.stop_voter(name, lose_file=lose_file and others_remember)
    electorate.start_voter(name)


def hold_back(electorate: Electorate) -> None:
    """Both ask, and what they asked arrives a second later."""
    for site in ("a", "b"):
        electorate.ask(site)
    electorate.now_s += 1.0


HAPPENINGS: list[Callable[[Electorate], None]] = [
    lambda one: run_for(one, 5),
    lambda one: toggle_cuts(one, ("agent-a", B), ("agent-a", WITNESS)),
    lambda one: toggle_cuts(one, ("agent-b", A), ("agent-b", WITNESS)),
    lambda one: toggle_cuts(one, ("agent-a", WITNESS)),
    lambda one: one.give_order("b", next_term(one)),
    lambda one: one.give_order("a", next_term(one)),
    lambda one: one.have_given_back("a"),
    lambda one: one.have_given_back("b"),
    lambda one: toggle_agent(one, "a"),
    lambda one: toggle_agent(one, "b"),
    lambda one: restart_voter(one, WITNESS, lose_file=False),
    lambda one: restart_voter(one, WITNESS, lose_file=True),
    lambda one: restart_voter(one, B, lose_file=True),
    hold_back,
]


def every_order_of(length: int, rules: Rules = ORDINARY) -> int:
    """Run every sequence of so many events, a moment after each and a lease at the end.

    Sequences that come to the same go on as one: many an event changes nothing where it happens.
    """
    reached = [started(rules)]
    for _ in range(length):
        branches: dict[str, Electorate] = {}
        for electorate, event in itertools.product(reached, HAPPENINGS):
            branch = electorate.branch()
            event(branch)
            branch.calm()
            branches.setdefault(branch.outlook, branch)
        reached = list(branches.values())
    for electorate in reached:
        run_for(electorate, 5, step_s=0.5)
    return sum(electorate.changes for electorate in reached)


def test_every_order_of_three_events_one_site_is_active_at_most() -> None:
    assert every_order_of(3) > 0
    with pytest.raises(Broken):
        every_order_of(3, Rules(voter=TurnsAtOnce))


@pytest.mark.slow
def test_every_order_of_four_events_one_site_is_active_at_most() -> None:
    assert every_order_of(4) > 0


def test_agent_paused_past_its_lease_both_sites_write_and_it_is_counted() -> None:
    electorate = started(ORDINARY)
    electorate.pause()  # the agent of site a
    electorate.give_order("b", 2)
    run_until(electorate, lambda: electorate.is_active("b"))
    assert electorate.overlaps_while_paused > 0
    electorate.pause()
    assert electorate.agents["a"].writes_until_s <= electorate.now_s


# Each rule left out, found by chance.


class TurnsAtOnce(Voter):
    """Does not wait until the lease that it granted is over."""

    def _refusal(self, request: Request, now_s: float) -> str:
        return super()._refusal(request, math.inf)


class ForgetsWhatOthersKnow(Voter):
    """Begins anew when its memory is lost."""

    @classmethod
    def started(cls, name: str, timing: Timing, memory: Memory | None, now_s: float) -> Voter:  # type: ignore[override]
        voter = super().started(name, timing, memory, now_s)
        return replace(voter, memory=memory or Memory())


class BelievesOneOther(Voter):
    """Learns from one voter what two should tell."""

    def learned(self, told: Mapping[str, Answer], now_s: float) -> Voter:
        known = [answer for answer in told.values() if not answer.blank]
        return super().learned({"one": known[0], "two": known[0]}, now_s) if known else self


class GoesBack(Voter):
    """Grants an earlier term when the lease is over."""

    def _refusal(self, request: Request, now_s: float) -> str:
        over = self.memory is not None and now_s >= self.free_at_s
        return "" if over else super()._refusal(request, now_s)


class GivesATermTwice(Voter):
    """Grants its term to the other site too when the lease is over."""

    def _refusal(self, request: Request, now_s: float) -> str:
        over = self.memory is not None and now_s >= self.free_at_s
        same = self.memory is not None and request.term == self.memory.term
        return "" if over and same else super()._refusal(request, now_s)


class RaisesWithoutALease(Lease):
    """Outbids a higher term, though the other site may have been active in it."""

    def _refused(self, answer: Answer, now_s: float) -> Lease:
        after = super()._refused(answer, now_s)
        outbid = answer.holder != self.site and answer.term >= self._term_if_valid
        return replace(after, ordered=answer.term + 1) if outbid else after


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(Rules(voter=TurnsAtOnce), id="a voter waits until the lease is over"),
        pytest.param(Rules(voter=ForgetsWhatOthersKnow), id="a voter without memory asks the others"),
        pytest.param(Rules(voter=BelievesOneOther), id="it needs both others"),
        pytest.param(Rules(voter=GoesBack), id="terms never go back"),
        pytest.param(Rules(voter=GivesATermTwice), id="a term belongs to one site"),
        pytest.param(Rules(lease=RaisesWithoutALease), id="a term is raised only while the lease is valid"),
        pytest.param(Rules(writes_before_it_answers=False), id="memory is on disk before the answer"),
        pytest.param(Rules(ends_itself_before_giving_back=False), id="a site ends before it gives back"),
    ],
)
def test_rule_left_out_the_model_finds_it(rules: Rules) -> None:
    assert is_found(rules)


def test_one_grant_for_a_lease_the_model_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "MAJORITY", 1)
    assert is_found(ORDINARY)


def is_found(rules: Rules) -> bool:
    for seed in range(SURELY_FOUND_IN):
        try:
            happened(seed, rules)
        except Broken:
            return True
    return False


# Accidents that chance brings seldom, each with the rule that it is about.


def started(rules: Rules) -> Electorate:
    electorate = Electorate(Choices(b""), rules)
    run_until(electorate, lambda: electorate.is_active("a"))
    return electorate


def run_until(electorate: Electorate, condition: Callable[[], bool], within_s: float = 15.0) -> None:
    end_s = electorate.now_s + within_s
    while not condition():
        assert electorate.now_s < end_s, "it does not come to that"
        electorate.calm()


def run_for(electorate: Electorate, length_s: float, step_s: float = 0.2) -> None:
    for _ in range(round(length_s / step_s)):
        electorate.calm(step_s)


def cut(electorate: Electorate, *links: tuple[str, str]) -> None:
    electorate.cuts |= {frozenset(link) for link in links}


def voter_restarts_just_after_it_granted(rules: Rules) -> None:
    electorate = started(rules)
    cut(electorate, ("agent-a", B))
    run_for(electorate, 5)  # site b's voter is free; site a lives on its own and the witness
    assert electorate.is_active("a")
    electorate.stop_voter(WITNESS)
    electorate.start_voter(WITNESS)
    cut(electorate, ("agent-a", WITNESS))
    electorate.give_order("b", 2)
    run_for(electorate, 6)


def answers_take_long(rules: Rules) -> None:
    electorate = started(rules)
    run_for(electorate, 2)
    electorate.ask("a")
    for voter in (B, WITNESS):
        electorate.let_arrive("agent-a", voter)
    electorate.now_s += 3.5
    for voter in (B, WITNESS):
        electorate.let_arrive(voter, "agent-a")
    cut(electorate, *(("agent-a", voter) for voter in VOTERS))
    electorate.give_order("b", 2)
    run_for(electorate, 6)


def answer_to_a_lease_that_was_given_back(rules: Rules) -> None:
    electorate = started(rules)
    electorate.ask("a")
    for voter in (B, WITNESS):
        electorate.let_arrive("agent-a", voter)
    late = [parcel for parcel in electorate.pending if parcel.receiver == "agent-a"]
    electorate.pending.clear()
    electorate.have_given_back("a")
    electorate.give_order("b", 2)
    run_until(electorate, lambda: electorate.is_active("b"))
    electorate.give_order("a", 3)
    electorate.pending.extend(late)
    run_for(electorate, 1)


def memory_is_lost_while_an_answer_is_on_its_way(rules: Rules) -> None:
    electorate = started(rules)
    electorate.stop_agent("a")
    run_for(electorate, 6)
    electorate.give_order("b", 2)
    electorate.calm()  # both say that they would
    electorate.ask("b")
    electorate.let_arrive("agent-b", WITNESS)
    electorate.stop_voter(WITNESS, lose_file=True)
    electorate.start_voter(WITNESS)
    on_their_way = list(electorate.pending)
    electorate.pending.clear()
    electorate.agents["b"].ask_at_s = math.inf
    run_for(electorate, 0.4)  # here a voter that does not wait asks the others
    electorate.pending.extend(on_their_way)
    electorate.let_arrive("agent-b", B)
    for voter in (B, WITNESS):
        electorate.let_arrive(voter, "agent-b")
    electorate.pending.clear()
    assert electorate.is_active("b")
    electorate.stop_agent("b")
    run_for(electorate, 6)
    electorate.start_agent("a")
    run_for(electorate, 2)


def raised_term_is_wanted_after_a_gap(rules: Rules) -> None:
    electorate = started(rules)
    away = (("agent-a", B), ("agent-a", WITNESS))
    cut(electorate, *away)
    run_for(electorate, 6)
    electorate.give_order("b", 2)
    electorate.calm()
    electorate.ask("b")
    electorate.let_arrive("agent-b", WITNESS)  # a lone grant
    electorate.pending.clear()
    electorate.agents["b"].ask_at_s = math.inf
    electorate.cuts.clear()
    run_until(electorate, lambda: electorate.is_active("a"))
    cut(electorate, *away)
    run_for(electorate, 1.6)  # site a asks for term 3, and only its own voter hears it
    assert electorate.voters[A].disk == Memory(3, "a", TIMING.lease_s)
    run_for(electorate, 5)
    electorate.agents["b"].ask_at_s = 0
    run_until(electorate, lambda: electorate.is_active("b"))
    electorate.stop_agent("b")
    run_for(electorate, 6)
    electorate.cuts.clear()
    run_for(electorate, 2)


def site_is_cut_off_and_clocks_differ(rules: Rules) -> None:
    electorate = started(rules)
    electorate.agents["a"].rate = min(RATES)
    for voter in VOTERS:
        electorate.voters[voter].rate = max(RATES)
        electorate.stop_voter(voter)
        electorate.start_voter(voter)
    electorate.stop_agent("a")
    electorate.start_agent("a")
    run_until(electorate, lambda: electorate.is_active("a"))
    cut(electorate, *(("agent-a", voter) for voter in VOTERS))
    electorate.give_order("b", 2)
    run_for(electorate, 6, step_s=0.01)
    assert electorate.is_active("b")


class RemembersNoGrant(Voter):
    """Takes it after a start that nothing was granted just before."""

    @classmethod
    def started(cls, name: str, timing: Timing, memory: Memory | None, now_s: float) -> Voter:  # type: ignore[override]
        return cls(name, timing, memory, now_s)


class AsksTheOthersAtOnce(Voter):
    """Learns while what it granted may still become a lease."""

    def wants_to_learn(self, now_s: float) -> bool:
        return self.memory is None


class WantsMoreAfterAGap(Lease):
    """Asks after a gap for a term that it never had."""

    @property
    def _term_after_a_gap(self) -> int:
        return max(self.ordered, self.held, self.wanted)


Accident = Callable[[Rules], None]
ACCIDENTS: list[tuple[Accident, Rules]] = [
    (voter_restarts_just_after_it_granted, Rules(voter=RemembersNoGrant)),
    (answers_take_long, Rules(counts_from_before_sending=False)),
    (answer_to_a_lease_that_was_given_back, Rules(knows_which_lease_was_answered=False)),
    (memory_is_lost_while_an_answer_is_on_its_way, Rules(voter=AsksTheOthersAtOnce)),
    (raised_term_is_wanted_after_a_gap, Rules(lease=WantsMoreAfterAGap)),
]


@pytest.mark.parametrize(("accident", "rules"), ACCIDENTS, ids=lambda one: getattr(one, "__name__", ""))
def test_accident_with_and_without_its_rule_is_harmless_and_not(accident: Accident, rules: Rules) -> None:
    accident(ORDINARY)
    with pytest.raises(Broken):
        accident(rules)


@pytest.mark.parametrize("margin", ["CLOCK_RATE_ERROR", "END_BROKERS_S"])
def test_cut_off_site_without_a_margin_both_sites_write(margin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    site_is_cut_off_and_clocks_differ(ORDINARY)
    monkeypatch.setattr(timings, margin, 0.0)
    with pytest.raises(Broken):
        site_is_cut_off_and_clocks_differ(ORDINARY)


# What must go on.


@pytest.mark.parametrize("lost", VOTERS)
@pytest.mark.parametrize("rates", [RATES, RATES[::-1]])
def test_one_voter_and_every_manager_lost_the_lease_is_kept(lost: str, rates: tuple[float, ...]) -> None:
    electorate = started(ORDINARY)
    for voter, rate in zip(VOTERS, rates, strict=True):
        electorate.voters[voter].rate = rate
        electorate.stop_voter(voter)
        electorate.start_voter(voter)
        run_for(electorate, 1)
    electorate.stop_voter(lost)
    for _ in range(300):
        electorate.calm()
        assert electorate.is_active("a")


@pytest.mark.parametrize("lost", VOTERS)
def test_voter_without_its_memory_votes_again_when_the_others_have_told(lost: str) -> None:
    electorate = started(ORDINARY)
    electorate.stop_voter(lost, lose_file=True)
    electorate.start_voter(lost)
    run_for(electorate, 6)
    assert electorate.voters[lost].disk == FIRST
    electorate.stop_voter(next(voter for voter in VOTERS if voter != lost))
    run_for(electorate, 10)
    assert electorate.is_active("a"), "it lives on the voter that learned and the last one"


def test_two_voters_without_memory_nobody_gets_a_lease() -> None:
    electorate = started(ORDINARY)
    for voter in (A, WITNESS):
        electorate.stop_voter(voter, lose_file=True)
        electorate.start_voter(voter)
    electorate.give_order("b", 2)
    run_for(electorate, 30)
    assert not electorate.is_active("a") and not electorate.is_active("b")


def test_attempt_that_failed_the_holder_wins_the_voter_back() -> None:
    electorate = started(ORDINARY)
    cut(electorate, ("agent-a", WITNESS))
    run_for(electorate, 6)
    electorate.voters[WITNESS].disk = Memory(2, "b", TIMING.lease_s)
    electorate.stop_voter(WITNESS)
    electorate.start_voter(WITNESS)
    electorate.cuts.clear()
    run_for(electorate, 8)
    assert electorate.voters[WITNESS].disk == Memory(3, "a", TIMING.lease_s)
    electorate.stop_voter(B)
    run_for(electorate, 10)
    assert electorate.is_active("a")


def test_site_that_dies_whole_the_other_has_the_lease_before_it_is_called_dead() -> None:
    electorate = started(ORDINARY)
    run_for(electorate, 3)
    electorate.stop_agent("a")
    electorate.stop_voter(A)
    died_s = electorate.now_s
    electorate.give_order("b", 2)
    run_until(electorate, lambda: electorate.is_active("b"))
    assert electorate.now_s - died_s <= 5.0, "failover_after, from which this lease was made"


def test_lease_given_back_the_other_site_need_not_wait() -> None:
    electorate = started(ORDINARY)
    run_for(electorate, 3)
    electorate.have_given_back("a")
    electorate.give_order("b", 2)
    run_for(electorate, 0.8)
    assert electorate.is_active("b")


def test_order_for_a_site_while_the_other_is_well_costs_it_no_voter() -> None:
    electorate = started(ORDINARY)
    electorate.give_order("b", 2)
    run_for(electorate, 10)
    assert electorate.is_active("a")
    assert {voter.disk for voter in electorate.voters.values()} == {FIRST}


def test_trial_promises_nothing_so_the_holder_keeps_its_voters() -> None:
    voter = Voter.started(WITNESS, TIMING, Memory(), 0.0)
    after, answer = voter.consider(Request(Wish.TRY, "b", 2), 1.0)
    assert (after, answer.granted) == (voter, True)
