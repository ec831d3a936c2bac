"""The drill in which chance decides: turns that were drawn from the seed, played until the time is over.

What is drawn is in `lots`, and the history says each turn before it is played, so that a run can be held
against its seed. A turn finds the bus whole and leaves it whole, with every client back at work. Faults of
part of a site end before anybody would promote the other one; where voters decide, the only broker of the
active is the site, and its loss ends as that of a site does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict

from twinlog.drills import lots, stories
from twinlog.drills.faults import Fault, How
from twinlog.drills.history import Happening
from twinlog.drills.lots import Deed, Turn
from twinlog.drills.stage import CLOSE_TIMEOUT_S, Stage
from twinlog.drills.stories import FAILOVER_AFTER_S


def random_faults(stage: Stage) -> None:
    """Whatever the seed says, until the time is over."""
    drawn = lots.turns(stage.random, voters=stage.is_automatic)
    for number, turn in enumerate(drawn, start=1):
        if stage.is_over:
            return
        stage.recorder.event(Happening.NOTE, f"turn {number}: {turn}", turn=asdict(turn))
        PLAYED[turn.deed](stage, turn)


def _switch(stage: Stage, _: Turn) -> None:
    stage.switchover()
    stage.rest()


def _lose_mover(stage: Stage, turn: Turn) -> None:
    stage.wait(lambda: stage.is_close, CLOSE_TIMEOUT_S, "the standby catches up")
    stories.die_before(stage, turn.step)
    stage.ended()
    stage.rest()


def _lose_active(stage: Stage, turn: Turn) -> None:
    how = _how(turn)
    if how is How.HANG:
        stories.site_hangs(stage)
    else:
        stories.replace(stage, stage.faults.site(how, stage.active, with_agent=True))


def _lose_standby(stage: Stage, turn: Turn) -> None:
    _last(stage, turn, stage.faults.site(_how(turn), stage.standby), FAILOVER_AFTER_S)


def _lose_broker(stage: Stage, turn: Turn) -> None:
    site = stage.active if turn.at_active else stage.standby
    brokers = stage.home.layout(site).brokers
    how = _how(turn)
    fault = stage.faults.nodes(how, site, [brokers[turn.index(len(brokers))]])
    if stage.is_automatic and turn.at_active and how is not How.HANG and len(brokers) == 1:
        stories.replace(stage, fault)  # before the broker had started again, the voters would have decided
    else:
        _last(stage, turn, fault, FAILOVER_AFTER_S / 2)


def _lose_agent(stage: Stage, turn: Turn) -> None:
    site = stage.active if turn.at_active else stage.standby
    _last(stage, turn, stage.faults.agent(_how(turn), site), FAILOVER_AFTER_S)


def _lose(hit: Callable[[Stage, How], Fault]) -> Callable[[Stage, Turn], None]:
    """A turn that hits something of which there is one, for a while."""
    return lambda stage, turn: _last(stage, turn, hit(stage, _how(turn)), FAILOVER_AFTER_S)


def _last(stage: Stage, turn: Turn, fault: Fault, longest_s: float) -> None:
    """Let a fault last as long as the turn says, and heal it."""
    stage.pause.wait(turn.lasts_s(longest_s))
    stage.faults.heal(fault)
    stage.rest()


def _how(turn: Turn) -> How:
    assert turn.how is not None, "whatever is hit is hit in one of its ways"
    return turn.how


PLAYED: Mapping[Deed, Callable[[Stage, Turn], None]] = {
    Deed.SWITCHOVER: _switch,
    Deed.MOVER: _lose_mover,
    Deed.ACTIVE: _lose_active,
    Deed.STANDBY: _lose_standby,
    Deed.BROKER: _lose_broker,
    Deed.MIRROR: _lose(lambda stage, how: stage.faults.mirror(how)),
    Deed.WORKERS: _lose(lambda stage, how: stage.faults.workers(how)),
    Deed.MANAGER: _lose(lambda stage, how: stage.faults.manager(how)),
    Deed.AGENT: _lose_agent,
    Deed.WITNESS: _lose(lambda stage, how: stage.faults.witness(how)),
}
