"""The stories of drills: what is broken, in which order, and when it is mended.

A scenario names its story, the runner tells it on a stage, and a story uses the stage and nothing else.
It ends with everything mended; what is still broken when it ends early the runner mends.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from twinlog.drills import devices, probe
from twinlog.drills.faults import Fault, How
from twinlog.drills.stage import FIT_TIMEOUT_S, Seen, Stage
from twinlog.errors import SiteError
from twinlog.sites import rolling, turns
from twinlog.sites.layout import Node
from twinlog.traffic.moves import STEPS, Kind, Step
from twinlog.wire import quorum
from twinlog.wire.cluster import Cluster

FAILOVER_AFTER_S = 5.0
WATCH_S = 5.0  # so long writes are watched that must not come
SETTLE_S = 15.0  # by then every client has been refused that is going to be
MORTAL_TIMEOUT_S = 120.0
IN_SYNC_S = 120.0
SLOW_WRITES_PER_S = 150  # of which Kafka's smallest append takes three
SLOWER = 2  # times as slow as before, at least: else the drill has shown nothing
LOOK_AGAIN_S = 0.2


def switchover_and_back(stage: Stage) -> None:
    """The active role moves, and moves back, as often as asked for."""
    for _ in range(2 * stage.times):
        stage.switchover()
        stage.rest()


def site_dies(stage: Stage) -> None:
    """The active is killed whole, the standby is promoted, the lost site returns as the standby."""
    replace(stage, _kill(stage))


def site_comes_home(stage: Stage) -> None:
    """The active is killed while the standby is behind, is replaced, returns, and is active again.

    What the standby lacked is a hole in the sequences of producers, which they bring along when they go home.
    """
    stage.fall_behind()
    fault = _kill(stage)
    stage.catch_up()
    replace(stage, fault)
    stage.switchover()
    stage.rest()


def _kill(stage: Stage) -> Fault:
    return stage.faults.site(How.KILL, stage.active, with_agent=True)


def replace(stage: Stage, fault: Fault) -> None:
    """Promote the standby, and have the lost site return."""
    stage.promote()
    stage.rest_without_twin()
    stage.bring_back()
    stage.faults.heal_by_move(fault)
    stage.rest()


def site_hangs(stage: Stage) -> None:
    """The active is stopped whole, replaced, and wakes up again."""
    fault = stage.faults.site(How.HANG, stage.active)
    stage.promote()
    stage.rest_without_twin()
    stage.faults.heal(fault)  # what the promotion has not ended wakes up, and must change nothing
    stage.rest_without_twin()
    stage.bring_back()
    stage.rest()


def broker_dies(stage: Stage) -> None:
    """Every broker of the active dies once, then its leading controller."""
    layout = stage.home.layout(stage.active)
    for node in layout.brokers:
        _die(stage, node)
    with Cluster(stage.home.admin_access(stage.active)) as cluster:
        leader = quorum.describe(cluster).leader_id
    _die(stage, next(node for node in layout.controllers if node.id == leader))


def _die(stage: Stage, node: Node) -> None:
    fault = stage.faults.nodes(How.KILL, node.site, [node])
    stage.rest()
    stage.faults.heal(fault)
    stage.rest()


def under_min_isr(stage: Stage) -> None:
    """All brokers of the active but one die; writers are watched meanwhile."""
    brokers = stage.home.layout(stage.active).brokers
    fault = stage.faults.nodes(How.KILL, stage.active, brokers[1:])
    stage.pause.wait(SETTLE_S)
    writers = [client for client in stage.load.clients if client.acks == "all"]
    before = stage.load.counts()
    found = stage.readable(stage.active)
    stage.pause.wait(WATCH_S)
    after = stage.load.counts()
    answers = stage.probe(stage.active)
    written = sum(after[one.name] - before[one.name] for one in writers)
    stage.seen += [
        Seen("no write with acks=all succeeds meanwhile", written == 0, f"{written} in {WATCH_S:g} s"),
        Seen(
            "writes with acks=all are refused meanwhile, for want of copies in sync",
            set(answers) == {probe.TOO_FEW_REFUSED},
            f"of those tried once: {probe.said(answers)}",
        ),
        Seen("reads go on meanwhile", found > 0, f"{found:,} records read"),
    ]
    stage.faults.heal(fault)
    stage.rest()


def disk_full(stage: Stage) -> None:
    """A broker's disk is full, the broker ends, gets room and comes back: first at the active."""
    for site in (stage.active, stage.standby):
        node = stage.home.layout(site).brokers[0]
        began_s = time.monotonic()
        fault = stage.faults.full_disk(node)
        ended_s = time.monotonic() - began_s
        stage.rest()
        stage.faults.heal(fault)
        stage.seen += [
            Seen(f"{node.name} ends when its disk is full", True, f"after {ended_s:.1f} s"),
            _in_sync_again(stage, node),
        ]
        stage.rest()


def disk_slow(stage: Stage) -> None:
    """A broker's disk takes few writes a second for a while, then all: first at the active."""
    for site in (stage.active, stage.standby):
        node = stage.home.layout(site).brokers[0]
        disk = node.data[0].parent
        before_s = devices.write_s(disk)
        fault = stage.faults.slow_disk(node, SLOW_WRITES_PER_S)
        stage.rest()
        slow_s = devices.write_s(disk)
        stage.faults.heal(fault)
        measured = f"a write takes {slow_s * 1e3:.0f} ms, {before_s * 1e3:.1f} ms before"
        stage.seen += [
            Seen(f"the disk of {node.name} is slow", slow_s >= SLOWER * before_s, measured),
            _in_sync_again(stage, node, "its disk is as fast as before"),
        ]
        stage.rest()


def _in_sync_again(stage: Stage, node: Node, when: str = "it has room") -> Seen:
    """Whether a broker has all copies in sync after a while."""
    began_s = time.monotonic()
    with Cluster(stage.home.admin_access(node.site)) as cluster:
        while (lacking := turns.unwell(rolling.look(cluster))) and time.monotonic() < began_s + IN_SYNC_S:
            stage.pause.wait(LOOK_AGAIN_S)
    took_s = time.monotonic() - began_s
    says = f"{node.name} is in sync again when {when}"
    return Seen(says, not lacking, lacking or f"after {took_s:.1f} s")


def mirror_dies(stage: Stage) -> None:
    """The mirror's workers die, then its driver; then it hangs for a while."""
    workers = stage.faults.workers(How.KILL)
    stage.faults.heal(workers)
    stage.rest()
    for how in (How.KILL, How.HANG):
        driver = stage.faults.mirror(how)
        stage.rest_without_twin()
        stage.faults.heal(driver)
        stage.rest()


def manager_dies(stage: Stage) -> None:
    """Whoever carries out a switchover dies before a step; then the manager does."""
    steps = STEPS[Kind.SWITCHOVER]
    for step in stage.random.sample(steps[1:-1], k=min(2 * stage.times, len(steps) - 2)):
        die_before(stage, step)
        stage.ended()
        stage.rest()
    manager = stage.faults.manager(How.KILL)
    stage.rest()
    stage.faults.heal(manager)
    stage.rest()


def die_before(stage: Stage, step: Step) -> None:
    """Let a process begin a switchover and be killed before a step; the manager has to end it."""
    command = [sys.executable, "-m", "twinlog.drills.mortal", str(stage.home.file), step]
    end_s = time.monotonic() + FIT_TIMEOUT_S
    while True:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=MORTAL_TIMEOUT_S, check=False)
        if ended.returncode == -signal.SIGKILL:
            return
        # One that did not begin may soon: another command held the bus, or a site was not ready yet.
        if ended.returncode == 0 or time.monotonic() > end_s:
            raise SiteError(f"the switchover was not interrupted: {ended.stderr.strip()[-500:]}")
        stage.pause.wait(LOOK_AGAIN_S)
