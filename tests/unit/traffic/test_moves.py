"""Moves as they are written down, how far each has come, and when clients have nowhere to go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.traffic.crossing import HANDS
from twinlog.traffic.journal import newest
from twinlog.traffic.moves import STEPS, Kind, Move, Step, decode, encode

names = st.sampled_from(["a", "b"])
points = st.dictionaries(st.text(min_size=1), st.dictionaries(st.integers(0, 9), st.integers(0)))


@st.composite
def moves(draw: st.DrawFn) -> Move:
    kind = draw(st.sampled_from(Kind))
    return Move(
        "bus",
        kind,
        draw(names),
        draw(names),
        draw(st.integers(1, 5)),
        draw(st.sampled_from(STEPS[kind])),
        draw(st.floats(0, 10)),
        draw(st.text()),
        members=draw(st.dictionaries(st.text(), st.integers(1))),
        points=draw(points),
    )


def switchover(**changes: object) -> Move:
    return replace(Move.begin(Kind.SWITCHOVER, "bus", ("a", "b"), 2), **changes)  # type: ignore[arg-type]


@given(moves())
def test_a_move_that_was_written_down_is_read_as_it_was(move: Move) -> None:
    assert decode(encode(move)) == move


@given(st.binary())
def test_what_is_no_move_is_read_as_none(text: bytes) -> None:
    assert decode(text) is None


@pytest.mark.parametrize("kind", Kind)
def test_a_move_comes_to_its_end_and_every_step_has_a_hand(kind: Kind) -> None:
    move, taken = Move.begin(kind, "bus", ("a", "b"), 2), []
    while not move.is_done:
        taken.append(move.step)
        move = move.after()
    assert taken == list(HANDS[kind])


def test_the_other_site_opens_only_after_fence_rights_drain_and_link() -> None:
    steps = STEPS[Kind.SWITCHOVER]
    before = (Step.FENCE, Step.REVOKE, Step.TRANSACTIONS, Step.DRAIN, Step.HOLD)
    after = (Step.OFFSETS, Step.PRODUCERS, Step.EPOCHS, Step.LEASE, Step.OPEN)
    assert steps[: len(before) + len(after)] == (*before, *after)


def test_offsets_are_copied_when_the_mirror_can_set_none_any_more() -> None:
    """Else an old copy of its own could arrive behind the last one."""
    steps = STEPS[Kind.SWITCHOVER]
    assert steps.index(Step.HOLD) < steps.index(Step.OFFSETS) < steps.index(Step.OPEN)


def test_clients_are_let_into_the_old_site_last() -> None:
    """Writes with acks=twin wait for the link, and nobody for the standby's client ports."""
    assert STEPS[Kind.SWITCHOVER][-3:] == (Step.LINK, Step.RELEASE, Step.DONE)


def test_a_lost_site_is_called_standby_only_when_its_logs_were_cut() -> None:
    steps = STEPS[Kind.RETURN]
    assert steps.index(Step.SALVAGE) < steps.index(Step.CUT) < steps.index(Step.SETTLE)


def test_a_lost_site_forgets_producers_after_its_start_and_before_the_mirror_writes_there() -> None:
    """Its brokers know what their logs say when they start, and the mirror's batches follow a hole."""
    steps = STEPS[Kind.RETURN]
    assert steps.index(Step.START) < steps.index(Step.FORGET) < steps.index(Step.LINK)


def test_the_gate_is_closed_until_the_other_site_is_open() -> None:
    move, closed = switchover(), []
    while not move.is_done:
        closed.append((move.step, move.closes_gate))
        move = move.after()
    opened = [step for step, is_closed in closed if not is_closed]
    assert opened[0] is Step.STOP
    assert not move.closes_gate


def test_a_switchover_can_be_called_off_until_the_other_site_has_its_lease() -> None:
    assert not switchover(step=Step.OFFSETS).is_open
    assert switchover(step=Step.LEASE).is_open  # the voters may have given it to the other site


def test_a_move_that_was_called_off_closes_nothing() -> None:
    assert not switchover(step=Step.DONE, called_off="no").closes_gate


def test_the_newest_telling_has_the_later_term_then_more_steps() -> None:
    old = Move.begin(Kind.FAILOVER, "bus", ("a", "b"), 2, begun_at=9.0)
    new = Move.begin(Kind.SWITCHOVER, "bus", ("b", "a"), 3, begun_at=1.0)
    assert newest([new.after(), old, None, new]) == new.after()
    assert newest([None]) is None
