"""Leases kept alive among three real voters over TLS, with short leases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.running.traffic.loopback import wait_until
from twinlog.sites.pki import Pki
from twinlog.traffic.poll import Papers
from twinlog.traffic.tenure import Tenure
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import WITNESS, Memory, voter_of
from twinlog.traffic.witness import Seat, Voting, enrol, read_memory
from twinlog.wire.addresses import HostPort

TIMING = Timing(2.0)  # a busy machine answers within a quarter of this
TIMEOUT_S = 30.0
ANYWHERE = HostPort("127.0.0.1", 0)
VOTERS = (voter_of("a"), voter_of("b"), WITNESS)


class Polls:
    """Three voters that can be stopped one by one."""

    def __init__(self, directory: Path, pki: Pki) -> None:
        self.directory = directory
        self.papers = {name: Papers.issue(pki, "orders", name) for name in VOTERS}
        self.running: dict[str, ExitStack] = {}
        self.addresses: dict[str, HostPort] = {}
        for name in VOTERS:
            enrol(self.path(name), Memory(1, "a", TIMING.lease_s, released=True))
            self.start(name)

    def path(self, name: str) -> Path:
        return self.directory / f"{name}.json"

    def start(self, name: str) -> None:
        self.running[name] = ExitStack()
        seat = Seat(name, self.addresses.get(name, ANYWHERE), self.path(name), self.papers[name], {})
        self.addresses[name] = self.running[name].enter_context(Voting(seat, TIMING)).address

    def stop(self, name: str) -> None:
        self.running.pop(name).close()

    @contextmanager
    def tenure(self, site: str) -> Iterator[Tenure]:
        with Tenure(site, TIMING, self.addresses, self.papers[voter_of(site)]) as tenure:
            yield tenure

    def terms(self) -> list[int]:
        return [memory.term for name in VOTERS if (memory := read_memory(self.path(name))) is not None]


@pytest.fixture
def polls(tmp_path: Path, pki: Pki) -> Iterator[Polls]:
    polls = Polls(tmp_path, pki)
    yield polls
    for name in list(polls.running):
        polls.stop(name)


def test_order_to_take_a_term_is_a_lease_at_once(polls: Polls) -> None:
    with polls.tenure("a") as tenure:
        assert tenure.state().why == "site a was given no term"
        tenure.take(2)
        state = tenure.wait_until_valid(TIMEOUT_S)
        assert (state.valid, state.term) == (True, 2)
        wait_until(lambda: polls.terms() == [2, 2, 2], TIMEOUT_S)


def test_order_repeated_while_the_lease_is_held_changes_nothing(polls: Polls) -> None:
    with polls.tenure("a") as tenure:
        tenure.take(2)
        assert tenure.wait_until_valid(TIMEOUT_S).valid
        for term in (2, 3):
            tenure.take(term)
            assert tenure.state().valid and tenure.state().term == 2


def test_one_voter_lost_the_lease_goes_on_past_its_length(polls: Polls) -> None:
    with polls.tenure("a") as tenure:
        tenure.take(2)
        first = tenure.wait_until_valid(TIMEOUT_S)
        polls.stop(WITNESS)
        wait_until(
            lambda: tenure.state().until_s > first.until_s + 2 * TIMING.lease_s or not tenure.state().valid,
            TIMEOUT_S,
        )
        assert tenure.state().valid
        assert list(tenure.silent()) == [WITNESS]
        polls.start(WITNESS)
        wait_until(lambda: not tenure.silent(), TIMEOUT_S)


def test_two_voters_lost_the_lease_ends_and_comes_back_with_one(polls: Polls) -> None:
    with polls.tenure("a") as tenure:
        tenure.take(2)
        assert tenure.wait_until_valid(TIMEOUT_S).valid
        polls.stop(WITNESS)
        polls.stop(voter_of("b"))
        wait_until(lambda: not tenure.state().valid, TIMEOUT_S)
        assert tenure.state().why.startswith("site a has fewer than two grants")
        polls.start(WITNESS)
        assert tenure.wait_until_valid(TIMEOUT_S).term == 2


def test_other_site_waits_for_a_lease_that_is_held_and_not_for_one_given_back(polls: Polls) -> None:
    with polls.tenure("a") as a, polls.tenure("b") as b:
        a.take(2)
        assert a.wait_until_valid(TIMEOUT_S).valid
        b.take(3)
        wait_until(lambda: f"{WITNESS} knows term 2 of site a" in b.state().why, TIMEOUT_S)
        assert a.give_back(TIMEOUT_S) >= 2
        assert not a.state().valid
        assert b.wait_until_valid(TIMEOUT_S).term == 3
        assert a.state().why == "site a gave its lease back"


def test_holder_gone_the_other_site_has_it_when_the_lease_is_over(polls: Polls) -> None:
    with polls.tenure("a") as a:
        a.take(2)
        assert a.wait_until_valid(TIMEOUT_S).valid
    with polls.tenure("b") as b:
        b.take(3)
        assert not b.state().valid
        state = b.wait_until_valid(TIMEOUT_S)
        assert state.term == 3
        assert not a.state().valid, "its own lease was over before"


def test_order_that_fails_in_time_is_dropped(polls: Polls) -> None:
    with polls.tenure("a") as a, polls.tenure("b") as b:
        a.take(2)
        assert a.wait_until_valid(TIMEOUT_S).valid
        b.take(3, within_s=0.3)
        assert not b.wait_until_valid(0.5).valid
        a.give_back(TIMEOUT_S)
        assert not b.wait_until_valid(0.5).valid, "it would be there in a fifth of a second"


def test_nothing_taken_nothing_is_given_back(polls: Polls) -> None:
    with polls.tenure("a") as tenure:
        assert tenure.give_back(TIMEOUT_S) == 0


def test_voters_without_memory_refuse_and_say_so(polls: Polls) -> None:
    for name in VOTERS[1:]:
        polls.stop(name)
        polls.path(name).unlink()
        polls.start(name)
    with polls.tenure("a") as tenure:
        tenure.take(2)
        wait_until(
            lambda: "witness has no memory and must first hear both others" in tenure.state().why, TIMEOUT_S
        )
