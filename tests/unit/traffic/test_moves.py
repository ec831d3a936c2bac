"""Moves as they are written down, how far each has come, and when clients have nowhere to go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.traffic.crossing import HANDS
from twinlog.traffic.journal import newest, said_by, untold
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
        lost=draw(st.sampled_from(["", "no"])),
    )


def switchover(**changes: object) -> Move:
    return replace(Move.begin(Kind.SWITCHOVER, "bus", ("a", "b"), 2), **changes)  # type: ignore[arg-type]


@given(moves())
def test_a_move_that_was_written_down_is_read_as_it_was(move: Move) -> None:
    assert decode(encode(move)) == move


@given(st.binary())
def test_what_is_no_move_is_read_as_none(text: bytes) -> None:
    assert decode(text) is None


def test_a_step_that_such_a_move_has_not_is_nothing_that_we_understand() -> None:
    failover = Move.begin(Kind.FAILOVER, "orders", ("a", "b"), 2)
    assert decode(encode(failover)) == failover
    assert decode(encode(replace(failover, step=Step.SALVAGE))) is None


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


def test_epochs_are_raised_where_logs_end_for_good_and_before_producers_are_forgotten() -> None:
    """Leaders change with them, and whoever leads in the end must have forgotten."""
    steps = STEPS[Kind.FAILOVER]
    assert steps.index(Step.HOLD) < steps.index(Step.EPOCHS) < steps.index(Step.FORGET)


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


@pytest.mark.parametrize("step", [one for one in STEPS[Kind.SWITCHOVER] if not switchover(step=one).is_open])
def test_a_move_that_is_being_called_off_lets_clients_in_when_that_is_done(step: Step) -> None:
    calling = switchover(step=step, called_off="no")
    assert calling.closes_gate
    assert "being called off: no" in str(calling)
    done = calling.after()
    assert (done.is_done, done.closes_gate, done.has_opened) == (True, False, False)


def test_a_switchover_without_its_old_site_has_nothing_left_to_do() -> None:
    left = switchover(step=Step.START, lost="its disks are gone").after()
    assert left.is_done
    assert "without site a, which is lost (its disks are gone)" in str(left)


def test_an_older_version_understands_a_move_that_has_lost_nothing() -> None:
    assert b"lost" not in encode(switchover())


@pytest.mark.parametrize("step", STEPS[Kind.SWITCHOVER])
def test_a_switchover_gives_way_to_a_failover_from_the_site_that_is_active_for_certain(step: Step) -> None:
    move = switchover(step=step)
    steps = STEPS[Kind.SWITCHOVER]
    before, opened = steps.index(step) < steps.index(Step.LEASE), steps.index(step) > steps.index(Step.OPEN)
    assert move.gives_way("a") == before
    assert move.gives_way("b") == (opened and step is not Step.DONE)


@pytest.mark.parametrize("kind", [Kind.FAILOVER, Kind.RETURN])
def test_other_moves_give_way_to_nothing(kind: Kind) -> None:
    move = Move.begin(kind, "bus", ("a", "b"), 2)
    assert not move.gives_way("a")
    assert not move.gives_way("b")


def test_the_calling_off_is_newer_than_every_step_that_it_undoes_and_than_none_beyond() -> None:
    for step in STEPS[Kind.SWITCHOVER]:
        told, calling = switchover(step=step), switchover(step=Step.DRAIN, called_off="no")
        assert newest([told, calling]) == newest([calling, told]) == (told if told.is_open else calling)


@given(moves())
def test_what_the_old_site_knows_of_a_switchover_under_way_is_left_to_the_other(move: Move) -> None:
    hidden = move.kind is Kind.SWITCHOVER and not move.is_done and move.source == "a"
    assert said_by("a", encode(move)) == (None if hidden else move)
    assert said_by("a", encode(switchover(called_off="no"))) == switchover(called_off="no")


def test_a_site_that_was_away_when_a_switchover_was_called_off_has_to_be_told() -> None:
    off, old = switchover(step=Step.DONE, called_off="no"), switchover(step=Step.DRAIN)
    assert untold({"a": off, "b": old}) == "b"
    assert untold({"a": off, "b": off}) == untold({"a": off, "b": None}) == untold({}) == ""
    assert untold({"a": replace(off, step=Step.DRAIN), "b": old}) == ""  # it is not done
    assert untold({"a": off, "b": switchover(term=3)}) == ""  # a later one


def test_the_newest_telling_has_the_later_term_then_more_steps() -> None:
    old = Move.begin(Kind.FAILOVER, "bus", ("a", "b"), 2, begun_at=9.0)
    new = Move.begin(Kind.SWITCHOVER, "bus", ("b", "a"), 3, begun_at=1.0)
    assert newest([new.after(), old, None, new]) == new.after()
    assert newest([None]) is None
