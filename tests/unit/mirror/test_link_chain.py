"""Under which epoch and sequence a link goes on in a partition."""

from __future__ import annotations

from twinlog.mirror.start import LAST_EPOCH, link_chain
from twinlog.mirror.steps import Chain
from twinlog.wire.producers import ProducerState

LINK = 1 << 62


def known(**states: tuple[int, int]) -> dict[int, ProducerState]:
    """Producers by their distance from the link's id: epoch and last sequence."""
    return {
        LINK + int(name.removeprefix("plus_")): ProducerState(epoch, last_sequence, 0, -1, -1)
        for name, (epoch, last_sequence) in states.items()
    }


def test_partition_that_has_not_seen_the_link_it_begins() -> None:
    others = {5: ProducerState(3, 9, 0, -1, -1), LINK + (1 << 16): ProducerState(3, 9, 0, -1, -1)}
    for raise_epoch in (True, False):
        assert link_chain(others, LINK, raise_epoch=raise_epoch) == (Chain(LINK, 0), 0)


def test_orderly_hand_over_the_sequence_goes_on() -> None:
    assert link_chain(known(plus_0=(3, 41)), LINK, raise_epoch=False) == (Chain(LINK, 3), 42)


def test_last_sequence_it_wraps() -> None:
    assert link_chain(known(plus_0=(3, 2**31 - 1)), LINK, raise_epoch=False) == (Chain(LINK, 3), 0)


def test_nothing_but_markers_in_an_epoch_the_sequence_begins() -> None:
    assert link_chain(known(plus_0=(3, -1)), LINK, raise_epoch=False) == (Chain(LINK, 3), 0)


def test_take_over_the_next_epoch_begins() -> None:
    assert link_chain(known(plus_0=(3, 41)), LINK, raise_epoch=True) == (Chain(LINK, 4), 0)


def test_epochs_run_out_the_link_takes_its_next_id() -> None:
    assert link_chain(known(plus_0=(LAST_EPOCH, 41)), LINK, raise_epoch=True) == (Chain(LINK + 1, 0), 0)


def test_several_ids_of_the_link_the_latest_counts() -> None:
    states = known(plus_0=(LAST_EPOCH, 41), plus_1=(2, 6))
    assert link_chain(states, LINK, raise_epoch=False) == (Chain(LINK + 1, 2), 7)


def test_epoch_that_the_standby_has_not_seen_yet_is_used_again() -> None:
    # What was sent in it may still arrive: it must be the same batch, or it would be taken twice.
    states, last = known(plus_0=(3, 41)), (Chain(LINK, 4), 0)
    assert link_chain(states, LINK, raise_epoch=False, last=last) == last


def test_link_forgotten_at_the_standby_goes_on_from_what_it_remembers() -> None:
    last = (Chain(LINK, 4), 17)
    assert link_chain({}, LINK, raise_epoch=False, last=last) == last
    assert link_chain({}, LINK, raise_epoch=True, last=last) == (Chain(LINK, 5), 0)


def test_standby_further_than_the_last_answer_its_word_counts() -> None:
    last = (Chain(LINK, 4), 17)
    assert link_chain(known(plus_0=(4, 20)), LINK, raise_epoch=False, last=last) == (Chain(LINK, 4), 21)


def test_raised_epoch_is_above_both_what_was_used_and_what_is_known() -> None:
    last = (Chain(LINK, 4), 0)
    assert link_chain(known(plus_0=(3, 41)), LINK, raise_epoch=True, last=last) == (Chain(LINK, 5), 0)
    assert link_chain(known(plus_0=(6, 41)), LINK, raise_epoch=True, last=last) == (Chain(LINK, 7), 0)


def test_standby_has_lost_an_epoch_that_was_answered_the_next_one_begins() -> None:
    last = (Chain(LINK, 4), 17)
    assert link_chain(known(plus_0=(3, 41)), LINK, raise_epoch=False, last=last) == (Chain(LINK, 5), 0)
