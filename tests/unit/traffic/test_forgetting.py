"""Which producers a site has to forget before it may open, and how old they are."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from twinlog.mirror.steps import FIRST_LINK_ID
from twinlog.traffic.forgetting import FORGET_TIMEOUT_S, at_odds, expiration_ms, forgettable, remembered
from twinlog.wire.producers import ProducerState

PLACE = ("orders", 0)
NOW_MS = 1_700_000_000_000
NONE = -1


def plain(sequence: int, *, epoch: int = 0, age_ms: int = 1000) -> ProducerState:
    return ProducerState(epoch, sequence, NOW_MS - age_ms, NONE, NONE)


def transactional(sequence: int) -> ProducerState:
    return ProducerState(0, sequence, NOW_MS, 3, NONE)


def ids(known: Mapping[int, ProducerState], truth: Mapping[int, ProducerState]) -> list[int]:
    return [one.producer_id for one in at_odds({PLACE: known}, {PLACE: truth})]


class Site:
    """A partition that takes batches as brokers do: the next one, or any of a producer that is not known."""

    def __init__(self) -> None:
        self.known: dict[int, ProducerState] = {}

    def takes(self, producer: int, sequence: int) -> bool:
        """Whether the batch was taken, of one record."""
        last = self.known.get(producer)
        if last is not None and last.last_sequence + 1 != sequence:
            return False
        self.known[producer] = plain(sequence)
        return True


def mirrored(batches: list[tuple[int, int]], standby: Site) -> None:
    """Copy batches; those that the standby does not take get the link's name there."""
    for producer, sequence in batches:
        standby.takes(producer, sequence)


@given(
    lacked=st.dictionaries(st.integers(1, 4), st.integers(0, 3), min_size=1),
    written=st.lists(st.integers(1, 4), max_size=12),
    forgets_at_return=st.booleans(),
)
def test_a_producer_goes_home_whatever_the_standby_lacked_of_it_when_its_site_was_lost(
    lacked: dict[int, int], written: list[int], forgets_at_return: bool
) -> None:
    home, away = Site(), Site()
    turns = {producer: 10 for producer in range(1, 5)}
    for producer in turns:
        mirrored([(producer, 9)], home)
        mirrored([(producer, 9)], away)
    for producer, count in lacked.items():
        turns[producer] += count  # acknowledged at home, and cut off when it returned
    away.known.clear()
    since = []
    for producer in written:
        assert away.takes(producer, turns[producer])
        since.append((producer, turns[producer]))
        turns[producer] += 1
    if forgets_at_return:
        home.known.clear()
    mirrored(since, home)
    odd = at_odds({PLACE: home.known}, {PLACE: away.known})
    assert not (forgets_at_return and odd)
    for one in odd:
        del home.known[one.producer_id]
    assert all(home.takes(producer, sequence) for producer, sequence in turns.items())


def test_a_producer_whose_last_batch_both_know_keeps_being_known() -> None:
    assert ids({7: plain(5)}, {7: plain(5)}) == []


def test_one_that_stands_elsewhere_or_is_only_known_there_is_at_odds() -> None:
    assert ids({7: plain(5)}, {7: plain(6)}) == [7]
    assert ids({7: plain(5)}, {7: plain(5, epoch=1)}) == [7]
    assert ids({7: plain(5)}, {}) == [7]
    assert [one.place for one in at_odds({PLACE: {7: plain(5)}}, {("orders", 1): {7: plain(5)}})] == [PLACE]


def test_one_that_the_standby_does_not_know_may_go_on_with_any_sequence() -> None:
    assert ids({}, {7: plain(5)}) == []


def test_links_and_transactional_producers_are_left_alone() -> None:
    assert remembered({PLACE: {FIRST_LINK_ID: plain(5), 8: transactional(3)}}) == []


@given(st.lists(st.integers(0, 10**8), min_size=1), st.integers(0, 10**8))
def test_all_that_are_meant_are_old_enough_and_whoever_wrote_later_is_not(
    ages_ms: list[int], other_ms: int
) -> None:
    meant = remembered({PLACE: {number: plain(1, age_ms=age_ms) for number, age_ms in enumerate(ages_ms)}})
    expiration = expiration_ms(meant, NOW_MS)
    assert all(age_ms + 1 >= expiration for age_ms in ages_ms)  # a millisecond later they go
    if other_ms < min(ages_ms):
        assert other_ms < expiration


def test_a_record_from_the_future_is_not_waited_for() -> None:
    ahead_ms = int(FORGET_TIMEOUT_S * 1000)
    known = {PLACE: {1: plain(1, age_ms=-ahead_ms), 2: plain(1, age_ms=1 - ahead_ms)}}
    assert [one.producer_id for one in forgettable(remembered(known), NOW_MS)] == [2]
    assert expiration_ms(remembered(known), NOW_MS) == 1
