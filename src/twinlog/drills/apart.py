"""Drills on machines of their own in which no line between the sites breaks.

Clients on a machine beside no site lose sight of the active while everybody else sees it: the bus is healthy,
so nothing may be promoted for them, and they go on when the line is mended. And a site sleeps, its agent with
it, until it was replaced, and wakes up: its brokers believe that they are the active's until the agent has
looked at its lease. What they acknowledge in that moment is counted, and all of it is salvaged.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace

from twinlog.drills.cast import GROUP, IDEMPOTENT, JAVA_ALL, JAVA_CLASSIC, JAVA_ONE, PLAIN, TWIN, Client
from twinlog.drills.partition import AT_ALL, writers
from twinlog.drills.spread import AWAY, Spread
from twinlog.drills.stage import BACK_TIMEOUT_S, LOOK_AGAIN_S, Seen, Stage
from twinlog.sites import processes
from twinlog.traffic import manager

ARRIVED_S = 2.0  # by then nothing is on its way any more that passed before the cut
CUT_S = 20.0  # four times as long as a dead site is waited for
AWAKE_TIMEOUT_S = 60.0


def _away(client: Client) -> Client:
    """The same on the machine of clients."""
    return replace(
        client, name=f"{client.name}-{AWAY}", group=f"{client.group}-{AWAY}" if client.group else ""
    )


# Two stay beside the active: that they go on is how clients know that the bus is healthy.
CLIENTS = (TWIN, PLAIN, *map(_away, (JAVA_ALL, JAVA_ONE, IDEMPOTENT, TWIN, GROUP, JAVA_CLASSIC)))


def clients_cut_off(stage: Stage) -> None:
    """A machine of clients loses the active, and nobody else does."""
    assert stage.spread is not None, "the scenario is declared on machines of its own"
    active = stage.active
    near = writers(stage, active)
    away = [one for one in stage.load.clients if one not in near]
    fault = stage.faults.cut_clients(stage.spread.network, AWAY, active)
    stage.pause.wait(ARRIVED_S)
    before = stage.load.counts()
    said = _watched(stage)
    after = stage.load.counts()
    stage.seen += [
        Seen(
            "while the sites see each other the bus is healthy, and nothing is promoted",
            stage.active == active and not said,
            said or f"{active} is active; the manager: {_manager_says(stage)}",
        ),
        _went_on(before, after, near, f"whoever is beside {active} goes on writing"),
        _silent(before, after, away),
    ]
    stage.faults.heal(fault)
    began_s = time.monotonic()
    waiting = stage.load.wait_until_going_on(BACK_TIMEOUT_S, away, more=AT_ALL)
    took_s = time.monotonic() - began_s
    measured = f"never: {', '.join(waiting)}" if waiting else f"all {len(away)} within {took_s:.1f} s"
    stage.seen.append(Seen("when the line is mended they go on by themselves", not waiting, measured))
    stage.rest()


def _watched(stage: Stage) -> str:
    """Let the cut last; what was said meanwhile of a loss of the active, if anything."""
    end_s, said = time.monotonic() + CUT_S, ""
    while time.monotonic() < end_s:
        if stage.following.moves.is_lost:
            said = said or f"the active was taken for lost: {_manager_says(stage)}"
        stage.pause.wait(LOOK_AGAIN_S)
    return said


def _manager_says(stage: Stage) -> str:
    return str(json.loads(manager.background(stage.home).report.read_bytes())["why"])


def _went_on(before: dict[str, int], after: dict[str, int], clients: list[Client], says: str) -> Seen:
    silent = [one.name for one in clients if after[one.name] <= before[one.name] + AT_ALL]
    return Seen(says, not silent, f"silent: {', '.join(silent)}" if silent else f"all {len(clients)}")


def _silent(before: dict[str, int], after: dict[str, int], clients: list[Client]) -> Seen:
    """Without this the cut would have cut nothing."""
    going = [one.name for one in clients if after[one.name] > before[one.name]]
    measured = f"went on: {', '.join(going)}" if going else f"all {len(clients)} waited for {CUT_S:g} s"
    return Seen("whoever is cut off is told of nothing meanwhile", not going, measured)


def site_wakes(stage: Stage) -> None:
    """The active and its agent sleep until the other site has taken over, and wake up."""
    assert stage.spread is not None, "the scenario is declared on machines of its own"
    spread, active, standby = stage.spread, stage.active, stage.standby
    fault = stage.faults.site_sleeps(active, spread.agent(active))
    stage.promote()
    stage.rest_without_twin()
    # A manager that saw the lost site's agent again would take the site back itself, from another machine.
    spread.stop_watching()
    stage.faults.heal(fault)
    stage.seen.append(_ended_by_agent(stage, active))
    stage.rest_without_twin()
    says = f"what woke up at {active} changes nothing"
    stage.seen.append(Seen(says, stage.active == standby, f"{stage.active} is active"))
    _return(stage, spread, active)


def _ended_by_agent(stage: Stage, site: str) -> Seen:
    """Whether the brokers of a site that woke up are ended, and how soon."""
    brokers, began_s = stage.home.layout(site).brokers, time.monotonic()
    while processes.find(brokers) and time.monotonic() < began_s + AWAKE_TIMEOUT_S:
        stage.pause.wait(LOOK_AGAIN_S)
    took_s, left = time.monotonic() - began_s, processes.find(brokers)
    measured = "they run" if left else f"{took_s:.1f} s after they woke up"
    return Seen(f"the agent of {site} ends the brokers that slept through the loss", not left, measured)


def _return(stage: Stage, spread: Spread, site: str) -> None:
    """Take the lost site back, and have somebody watch again."""
    spread.bring_back(site)
    spread.watch_from(site)
    stage.rest()
