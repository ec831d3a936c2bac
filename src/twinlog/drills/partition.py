"""The drill in which the sites are cut apart: who writes on which side, and what happens.

Twice, so that each site is the one that is cut off once, the second when the active role has moved there and
back as planned; the manager and the mirror are on the standby's machine each time, the witness on one of its
own. First the two sites lose sight of each other alone: the
witness still sees both, and nothing may be promoted. Then the active is cut off from everybody else while
its brokers and the clients beside it live: its agent has to end them before the other site opens. In
a drill of its own the agent hangs when that happens, so nobody ends them: what they acknowledge is counted.
"""

from __future__ import annotations

import time

from twinlog.drills.cast import GROUP, IDEMPOTENT, JAVA_ONE, TWIN, Client, Program
from twinlog.drills.faults import Fault
from twinlog.drills.history import Happening
from twinlog.drills.spread import Spread, side_of
from twinlog.drills.stage import CLOSE_TIMEOUT_S, MOVE_TIMEOUT_S, Seen, Stage
from twinlog.traffic.votes import WITNESS

CLIENTS = (
    IDEMPOTENT,
    JAVA_ONE,
    TWIN,
    Client("rd-plain-b", Program.LIBRDKAFKA, acks="all", idempotent=False),
    Client("java-all-b", Program.JAVA, acks="all"),
    Client("library-twin-b", Program.LIBRARY, acks="twin"),
)
# Readers on both sides too; each group is on one, because members of one that cannot meet are no group.
WITH_GROUPS = (*CLIENTS, GROUP, Client("rd-group-b", Program.LIBRDKAFKA, group="rd-group-b"))
# They wait for a site that hangs, and write there when it wakes up.
UNTUNED = (
    Client("rd-default", Program.LIBRDKAFKA, acks="all", idempotent=False, tuned=False),
    Client("java-default", Program.JAVA, acks="all", tuned=False),
)
ROUNDS = 2
ONE_CUT_S = 15.0  # three times as long as a dead site is waited for
AT_ALL = 3  # writes: what was on its way is not taken for more


def sites_cut_apart(stage: Stage) -> None:
    """Each site in turn is cut off while it is active, and comes back."""
    assert stage.spread is not None, "the scenario is declared on machines of its own"
    for number in range(ROUNDS):
        if number:
            stage.spread.watch_from(stage.standby)
            stage.rest()
            _there_and_back(stage, stage.spread)
        _lose_sight(stage, stage.spread)
        _cut_off(stage, stage.spread)
        stage.rest()


def _there_and_back(stage: Stage, spread: Spread) -> None:
    for _ in range(2):
        stage.wait(lambda: stage.is_close, CLOSE_TIMEOUT_S, "the standby catches up")
        spread.switch_over(stage.active)
        stage.rest()


def agent_hangs(stage: Stage) -> None:
    """The active is cut off while its agent hangs, its brokers go on; later all is well again."""
    assert stage.spread is not None, "the scenario is declared on machines of its own"
    active = stage.active
    stage.rest()
    _cut_off(stage, stage.spread, stage.faults.agent_hangs(active, stage.spread.agent(active)))
    stage.rest()


def _lose_sight(stage: Stage, spread: Spread) -> None:
    """The sites do not see each other, the witness sees both: all stays as it is."""
    active = stage.active
    stage.rest()
    stage.recorder.event(Happening.NOTE, f"{active} and {stage.standby} are cut apart; the witness sees both")
    before = stage.load.counts()
    spread.network.cut(active, stage.standby)
    stage.pause.wait(ONE_CUT_S)
    near = [one for one in writers(stage, active) if one.program is not Program.LIBRARY]
    written = stage.load.not_going_on({one.name: before[one.name] + AT_ALL for one in near}, near)
    spread.network.heal()
    stage.recorder.event(Happening.NOTE, f"{active} and {stage.standby} see each other again")
    stage.seen += [
        Seen(
            f"while the witness sees {active}, nothing is promoted", stage.active == active, f"{stage.active}"
        ),
        Seen(
            f"and whoever is beside {active} goes on writing",
            not written,
            f"silent: {', '.join(written)}" if written else f"all of {len(near)}",
        ),
    ]
    stage.rest()


def _cut_off(stage: Stage, spread: Spread, hangs: Fault | None = None) -> None:
    """The active is cut off from the other site and from the witness; what hangs wakes up first."""
    active, standby = stage.active, stage.standby
    began_s = time.monotonic()
    fault = stage.faults.cut(spread.network, active, standby, WITNESS)
    stage.wait(lambda: stage.active != active, MOVE_TIMEOUT_S, "the manager promotes the standby")
    far = [one for one in writers(stage, standby) if one.program is not Program.LIBRARY]
    waiting = stage.load.wait_until_going_on(MOVE_TIMEOUT_S, far, more=AT_ALL)
    back_s = time.monotonic() - began_s
    stage.seen.append(
        Seen(
            f"writers beside {standby} go on there after the cut",
            not waiting,
            f"never: {', '.join(waiting)}" if waiting else f"all after {back_s:.1f} s",
        )
    )
    stage.ended()
    stage.pause.wait(ONE_CUT_S)
    # A manager that saw the lost site's agent again would take the site back itself, from another machine.
    spread.stop_watching()
    if hangs is not None:
        stage.faults.heal(hangs)
    stage.faults.heal(fault)
    spread.bring_back(active)


def writers(stage: Stage, machine: str) -> list[Client]:
    """The writers on one machine."""
    sites = tuple(stage.home.bus.sites)
    return [one for one in stage.load.clients if one.writes and side_of(one, sites) == machine]
