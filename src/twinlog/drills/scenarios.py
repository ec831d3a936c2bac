"""The scenarios: how large the bus is, who takes part, what is broken, and what is promised.

`drill list` shows them, the runner plays one. A scenario is data and a short story; stories use the stage
and nothing else. Promises are about what clients see; what a scenario does not mention must not occur.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from twinlog.drills.cast import EVERYBODY, TWIN_READER, Client
from twinlog.drills.faults import How
from twinlog.drills.figures import READS
from twinlog.drills.finding import Finding, Kind
from twinlog.drills.history import Outcome
from twinlog.drills.promises import (
    ALWAYS,
    WITHOUT_FAILOVER,
    AtMost,
    Facts,
    Judged,
    Listed,
    LostWithinLag,
    Promise,
    Within,
)
from twinlog.drills.stage import Seen, Stage
from twinlog.errors import SiteError, UsageError
from twinlog.sites.layout import Node
from twinlog.traffic.moves import STEPS, Step
from twinlog.traffic.moves import Kind as MoveKind
from twinlog.wire import quorum
from twinlog.wire.cluster import Cluster

ALL, ONE, TWINS = frozenset({"all"}), frozenset({"1"}), frozenset({"twin"})
LIBRARY = frozenset({TWIN_READER.figure})  # it needs a standby, and so does what it reads
FAILOVER_AFTER_S = 5.0
WATCH_S = 5.0  # so long writes are watched that must not come
SETTLE_S = 15.0  # by then every client has been refused that is going to be
MORTAL_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Size:
    """How large the bus is."""

    brokers: int = 1  # of the site that is active first
    controllers: int = 1
    standby_brokers: int = 1


@dataclass(frozen=True)
class Scenario:
    """One drill as it is declared."""

    name: str
    says: str  # one line, for the list
    story: Callable[[Stage], None]
    promises: tuple[Promise, ...]
    size: Size = Size()
    clients: tuple[Client, ...] = EVERYBODY
    seconds: float = 30.0
    rests: int = 2


@dataclass(frozen=True)
class NoError:
    """No write of some acks levels is refused, or ends without an answer."""

    says: str
    acks: frozenset[str]

    def covers(self, finding: Finding) -> bool:
        """It speaks of answers, not of records."""
        return False

    def judge(self, facts: Facts) -> Judged:
        """Count the answers that were none."""
        bad = [
            write
            for write in facts.index.history.writes
            if write.acks in self.acks and write.outcome is not Outcome.OK
        ]
        said = "0" if not bad else f"{len(bad)}, first {bad[0].value}"
        return Judged(self.says, not bad and facts.acknowledged(self.acks) > 0, said)


# Where a site is lost: what the standby did not have is lost for a while, and groups may repeat.
WITH_FAILOVER: tuple[Promise, ...] = (
    LostWithinLag("only writes within the lag are lost, and all are salvaged", ALL | ONE),
    AtMost("groups skip nothing", frozenset({Kind.SKIPPED})),
    AtMost("what was read with read=twin stays", frozenset({Kind.VANISHED})),
    Listed("what groups read or committed twice", frozenset({Kind.REWOUND, Kind.REREAD})),
    Listed("transactions that a failover tore", frozenset({Kind.TORN})),
)


def _switchover_and_back(stage: Stage) -> None:
    for _ in range(2 * stage.times):
        stage.switchover()
        stage.rest()


def _site_dies(stage: Stage) -> None:
    fault = stage.faults.site(How.KILL, stage.active)
    stage.promote()
    stage.rest_without_twin()
    stage.bring_back()
    stage.faults.heal_by_move(fault)
    stage.rest()


def _site_hangs(stage: Stage) -> None:
    fault = stage.faults.site(How.HANG, stage.active)
    stage.promote()
    stage.rest_without_twin()
    stage.faults.heal(fault)  # what the promotion has not ended wakes up, and must change nothing
    stage.rest_without_twin()
    stage.bring_back()
    stage.rest()


def _broker_dies(stage: Stage) -> None:
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


def _under_min_isr(stage: Stage) -> None:
    brokers = stage.home.layout(stage.active).brokers
    fault = stage.faults.nodes(How.KILL, stage.active, brokers[1:])
    stage.pause.wait(SETTLE_S)
    writers = [client for client in stage.load.clients if client.acks == "all"]
    before = stage.load.counts()
    found = stage.readable(stage.active)
    stage.pause.wait(WATCH_S)
    after = stage.load.counts()
    written = sum(after[one.name] - before[one.name] for one in writers)
    stage.seen += [
        Seen("writes with acks=all are refused meanwhile", written == 0, f"{written} in {WATCH_S:g} s"),
        Seen("reads go on meanwhile", found > 0, f"{found:,} records read"),
    ]
    stage.faults.heal(fault)
    stage.rest()


def _mirror_dies(stage: Stage) -> None:
    workers = stage.faults.workers(How.KILL)
    stage.faults.heal(workers)
    stage.rest()
    for how in (How.KILL, How.HANG):
        driver = stage.faults.mirror(how)
        stage.rest_without_twin()
        stage.faults.heal(driver)
        stage.rest()


def _manager_dies(stage: Stage) -> None:
    steps = STEPS[MoveKind.SWITCHOVER]
    for step in stage.random.sample(steps[1:-1], k=min(2 * stage.times, len(steps) - 2)):
        _die_before(stage, step)
        stage.ended()
        stage.rest()
    manager = stage.faults.manager(How.KILL)
    stage.rest()
    stage.faults.heal(manager)
    stage.rest()


def _die_before(stage: Stage, step: Step) -> None:
    """Let a process begin a switchover and be killed before a step; the manager has to end it."""
    command = [sys.executable, "-m", "twinlog.drills.mortal", str(stage.home.file), step]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=MORTAL_TIMEOUT_S, check=False)
    if ended.returncode != -signal.SIGKILL:
        raise SiteError(f"the switchover was not interrupted: {ended.stderr.strip()[-500:]}")


def _random(stage: Stage) -> None:
    turns: tuple[Callable[[Stage], None], ...] = (
        _switch,
        _site_dies,
        _site_hangs,
        _any_broker,
        _any_mirror,
        _any_manager,
    )
    while not stage.is_over:
        stage.random.choice(turns)(stage)


def _switch(stage: Stage) -> None:
    stage.switchover()
    stage.rest()


def _any_broker(stage: Stage) -> None:
    site = stage.random.choice(list(stage.home.bus.sites))
    node = stage.random.choice(stage.home.layout(site).brokers)
    how = stage.random.choice(list(How))
    fault = stage.faults.nodes(how, site, [node])
    stage.pause.wait(stage.random.uniform(0.5, FAILOVER_AFTER_S / 2))
    stage.faults.heal(fault)
    stage.rest()


def _any_mirror(stage: Stage) -> None:
    fault = stage.random.choice((stage.faults.mirror, stage.faults.workers))(How.KILL)
    stage.pause.wait(stage.random.uniform(0.5, FAILOVER_AFTER_S))
    stage.faults.heal(fault)
    stage.rest()


def _any_manager(stage: Stage) -> None:
    fault = stage.faults.manager(stage.random.choice(list(How)))
    stage.pause.wait(stage.random.uniform(0.5, FAILOVER_AFTER_S))
    stage.faults.heal(fault)
    stage.rest()


SCENARIOS: Mapping[str, Scenario] = {
    one.name: one
    for one in (
        Scenario(
            "switchover-and-back",
            "the active role moves to the other site and back, as planned",
            _switchover_and_back,
            (
                *ALWAYS,
                *WITHOUT_FAILOVER,
                Within(
                    "writers wait at most 10 s, half of them at most 5 s",
                    10.0,
                    5.0,
                    by_outage=True,
                    acks=ALL | ONE,
                ),
                Within("groups go on within 20 s", 20.0, does=READS, by_outage=True, apart=LIBRARY),
                Within(
                    "with acks=twin they write as soon as there is a standby", 60.0, acks=frozenset({"twin"})
                ),
            ),
            rests=3,
        ),
        Scenario(
            "site-dies",
            "the whole active site is killed, the standby takes over, the lost site returns",
            _site_dies,
            (
                *ALWAYS,
                *WITH_FAILOVER,
                Within(
                    f"writers are back {FAILOVER_AFTER_S + 3:g} s after the site died",
                    FAILOVER_AFTER_S + 3.0,
                    acks=ALL | ONE,
                ),
            ),
            rests=3,
        ),
        Scenario(
            "site-hangs",
            "the whole active site is stopped (SIGSTOP), is replaced, and wakes up again",
            _site_hangs,
            (
                *ALWAYS,
                *WITH_FAILOVER,
                Within("writers are back 20 s after the site stopped", 20.0, acks=ALL | ONE),
            ),
            rests=4,
        ),
        Scenario(
            "broker-dies",
            "each broker of the active is killed, one after another, and its leading controller",
            _broker_dies,
            (
                *ALWAYS,
                AtMost("no write acknowledged with acks=all is lost", frozenset({Kind.LOST, Kind.TORN}), ALL),
                Listed("writes with acks=1 that their leader took along", frozenset({Kind.LOST}), ONE),
                WITHOUT_FAILOVER[1],
                NoError("no error reaches a writer with acks=all", ALL),
            ),
            Size(brokers=3, controllers=3),
            seconds=60.0,
            rests=9,
        ),
        Scenario(
            "under-min-isr",
            "too few brokers are left for acks=all: writes are refused, reads go on, writes return",
            _under_min_isr,
            (
                *ALWAYS,
                AtMost("no write acknowledged with acks=all is lost", frozenset({Kind.LOST, Kind.TORN}), ALL),
                Listed("writes with acks=1 that their leader took along", frozenset({Kind.LOST}), ONE),
                WITHOUT_FAILOVER[1],
            ),
            Size(brokers=3),
        ),
        Scenario(
            "mirror-dies",
            "the mirror's workers and its driver are killed, then stopped for a while",
            _mirror_dies,
            (*ALWAYS, *WITHOUT_FAILOVER, NoError("no error reaches a writer with acks=all", ALL)),
            seconds=60.0,
            rests=6,
        ),
        Scenario(
            "manager-dies",
            "whoever carries out a switchover is killed, the manager ends it, and is killed itself",
            _manager_dies,
            (*ALWAYS, *WITHOUT_FAILOVER),
            seconds=40.0,
            rests=5,
        ),
        Scenario(
            "random",
            "faults and moves in an order that a seed decides, for minutes",
            _random,
            (*ALWAYS, *WITH_FAILOVER),
            Size(brokers=1),
            seconds=300.0,
            rests=30,
        ),
    )
}


def scenario(name: str) -> Scenario:
    """A scenario by its name."""
    if name not in SCENARIOS:
        raise UsageError(f"there is no drill '{name}'", hint="twinlog drill list")
    return SCENARIOS[name]
