"""What the journal of moves says becomes events, whoever wrote it and however much of it was missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from twinlog.drills.following import Moves
from twinlog.drills.history import Event, Happening
from twinlog.drills.recording import Recorder, load
from twinlog.traffic.moves import Kind, Move, Step


class Told:
    """Moves, and the events that they become."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "events.jsonl"
        self.recorder = Recorder(self.path)
        self.moves = Moves(self.recorder)

    def events(self, *kinds: Happening) -> list[Event]:
        return [one for one in load([self.path]).events if not kinds or one.what in kinds]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def begin(kind: Kind, term: int = 2) -> Move:
    return Move.begin(kind, "bus", ("a", "b"), term, begun_at=float(term))


def play(told: Told, move: Move) -> None:
    while not move.is_done:
        told.moves.move(move)
        move = move.after()
    told.moves.move(move)


def test_switchover_is_fenced_then_opened_once(told: Told) -> None:
    play(told, begin(Kind.SWITCHOVER))
    fenced, promoted, opened = told.events(Happening.FENCED, Happening.PROMOTION, Happening.OPENED)
    assert fenced.data == {"site": "a"}
    assert promoted.data["planned"] is True
    assert opened.data == {"site": "b", "planned": True}


def test_failover_has_its_points_and_is_remembered_as_a_loss(told: Told) -> None:
    move = begin(Kind.FAILOVER, term=5)
    told.moves.move(move)
    told.moves.move(replace(move, step=Step.DONE, points={"orders": {0: 7}}))
    promoted, opened = told.events(Happening.PROMOTION, Happening.OPENED)
    assert promoted.data == {"site": "b", "planned": False, "points": {"orders": {"0": 7}}}
    assert opened.data["planned"] is False
    assert told.moves.lost == {5: "a"}


def test_steps_that_nobody_saw_are_told_all_the_same(told: Told) -> None:
    move = begin(Kind.SWITCHOVER)
    told.moves.move(replace(move, step=Step.LINK))
    assert [one.what for one in told.events()].count(Happening.OPENED) == 1
    told.moves.move(replace(move, step=Step.LINK, by="another"))
    assert [one.what for one in told.events()].count(Happening.OPENED) == 1


def test_switchover_that_is_called_off_opens_nothing(told: Told) -> None:
    move = begin(Kind.SWITCHOVER)
    told.moves.move(move)
    told.moves.move(replace(move, step=Step.DONE, called_off="it could not drain"))
    assert told.events(Happening.OPENED) == []
    assert "called off" in told.events(Happening.NOTE)[0].text


def test_return_opens_nothing(told: Told) -> None:
    play(told, begin(Kind.FAILOVER))
    play(told, replace(begin(Kind.RETURN), begun_at=9.0))
    assert len(told.events(Happening.OPENED)) == 1


def test_loss_is_detected_once_until_another_site_opens(told: Told) -> None:
    for step in ("Nothing", "ReadyToPromote", "ReadyToPromote"):
        told.moves.decision(step, "a is dead")
    assert told.moves.is_lost
    play(told, begin(Kind.FAILOVER))
    assert not told.moves.is_lost
    assert len(told.events(Happening.DETECTED)) == 1
