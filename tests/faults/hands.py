"""Takes faults, one at a time, and mends what they broke.

Each returns what was done, for the results file. What is wrong already at that moment (a write that was
acknowledged with acks=twin and is not at the standby, a mirror that should have ended and has not) is
added to the findings of the slice.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psutil

from tests.faults.kinds import Kind
from tests.faults.lines import MOST_FINDINGS, Place
from tests.faults.load import Gap, Load
from tests.faults.plan import Planned
from tests.faults.world import ACTIVE, CROWD, PARTITIONS, PROMISED, STANDBY, World, wait_for
from twinlog.mirror import stretch
from twinlog.sites import processes
from twinlog.wire import configs, offsets, topics
from twinlog.wire.contents import contents

CROWDED = Place(CROWD, 0)
STOPPED_S = 60.0  # so long a stopped mirror stays so, at least
STILL_S = (1.0, 6.0)  # so long the link stands still before the active is killed
DOWN_S = (0.0, 4.0)  # so long a broker stays away
GAP = 4_000  # at first; longer if the mirror was through before anybody looked
GAP_TRIES = 4
TOO_SMALL_BYTES = "150"
LIMIT = "max.message.bytes"
END_TIMEOUT_S = 180.0


class Told(NamedTuple):
    """What a fault was."""

    what: str
    hit: bool = True
    leader: bool | None = None
    told: str = ""


@dataclass
class Stopped:
    """A mirror that stands still until its time has come."""

    family: list[psutil.Process]
    until: float


@dataclass
class Hands:
    """Everything that can be done to a world under load."""

    world: World
    load: Load
    findings: list[str] = field(default_factory=list)
    stopped: Stopped | None = None

    def take(self, planned: Planned) -> Told:
        """Take one fault and mend it; a stopped mirror is left for `go_on`."""
        take: Mapping[Kind, Callable[[int], Told]] = {
            Kind.WORKER: self._worker,
            Kind.EXECUTOR: self._executor,
            Kind.DRIVER: self._driver,
            Kind.ACTIVE_BROKER: lambda chance: self._broker(ACTIVE, chance),
            Kind.STANDBY_BROKER: lambda chance: self._broker(STANDBY, chance),
            Kind.TASKS_IN_FILL: self._tasks_in_fill,
            Kind.STANDBY_ENDED_IN_FILL: lambda _: self._standby_in_fill(signal.SIGTERM),
            Kind.STANDBY_KILLED_IN_FILL: lambda _: self._standby_in_fill(signal.SIGKILL),
            Kind.TWO_MIRRORS: self._two_mirrors,
            Kind.STOPPED: self._stop,
            Kind.MESSAGE_LIMIT: self._message_limit,
            Kind.DISK_FULL: self._disk_full,
            Kind.ACTIVE_SITE: self._active_site,
            Kind.LINK_STILL: self._link_still,
        }
        return take[planned.kind](planned.chance)

    def go_on(self, *, wait: bool = False) -> None:
        """Continue a stopped mirror when its time has come; it must find that it was replaced, and end."""
        stopped = self.stopped
        if stopped is None or (not wait and time.monotonic() < stopped.until):
            return
        threading.Event().wait(max(0.0, stopped.until - time.monotonic()))
        processes.end(stopped.family, signal.SIGCONT)
        self.stopped = None
        if processes.wait(stopped.family[:1], END_TIMEOUT_S):
            self.findings.append(
                f"a mirror that was replaced still runs {END_TIMEOUT_S:g} s after it was continued"
            )

    def let_go(self) -> None:
        """Continue whatever stands still, because the world ends."""
        if self.stopped is not None:
            processes.end(self.stopped.family, signal.SIGCONT)

    # The mirror

    def _worker(self, chance: int) -> Told:
        found = self._some(self.world.workers)
        worker = found[chance % len(found)]
        self.world.kill([worker])
        return Told(f"Python worker {worker.pid}, one of {len(found)}")

    def _executor(self, chance: int) -> Told:
        found = self._some(self.world.executors)
        executor = found[chance % len(found)]
        self.world.kill([executor])
        return Told(f"executor {executor.pid}, one of {len(found)}")

    def _driver(self, _: int) -> Told:
        driver = self.world.family()[0]  # its children, orphans then, are left to find that out
        self.world.kill([driver])
        self.world.start_mirror()
        return Told(f"driver {driver.pid}")

    def _two_mirrors(self, _: int) -> Told:
        first = self.world.family()[0]
        self.world.start_second_mirror()
        if processes.wait([first], END_TIMEOUT_S):
            self.findings.append(f"two mirrors still run {END_TIMEOUT_S:g} s after the second one began")
        return Told(f"a second mirror beside {first.pid}, which ended")

    def _stop(self, _: int) -> Told:
        self.go_on(wait=True)  # one at a time
        family = self.world.family()
        processes.end(family, signal.SIGSTOP)
        self.stopped = Stopped(family, time.monotonic() + STOPPED_S)
        self.world.start_second_mirror()
        return Told(f"driver {family[0].pid} and {len(family) - 1} processes of its own")

    def _some(self, look: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
        """Processes of the mirror; after another fault they may have to be waited for."""
        found: list[psutil.Process] = []

        def there() -> bool:
            found[:] = look()
            return bool(found)

        wait_for("the mirror has processes to be killed", there, every_s=0.5)
        return found

    # Brokers

    def _broker(self, site: str, chance: int) -> Told:
        running, leader = self.world.brokers(site), self.world.leader(site, CROWDED)
        others = [number for number in sorted(running) if number != leader]
        # Two times of three the leader: of the others, the mirror hears less.
        chosen = others[chance % len(others)] if others and chance % 3 == 0 else leader
        self.world.kill([running[chosen]])
        _rest(DOWN_S, chance)
        self.world.mend(site)
        return Told(f"broker {chosen} of {site}", leader=chosen == leader)

    def _message_limit(self, _: int) -> Told:
        with self.world.cluster(STANDBY) as standby:
            before = configs.describe(standby, configs.Kind.TOPIC, CROWD)[LIMIT].value
            configs.alter(standby, configs.Kind.TOPIC, CROWD, values={LIMIT: TOO_SMALL_BYTES})
        told = self._reason()
        with self.world.cluster(STANDBY) as standby:
            configs.alter(standby, configs.Kind.TOPIC, CROWD, values={LIMIT: str(before)})
        wait_for("the mirror goes on", lambda: not self.world.trouble(CROWDED))
        return Told(f"{LIMIT}={TOO_SMALL_BYTES} at the standby", LIMIT in told, told=told)

    def _disk_full(self, _: int) -> Told:
        found = self.world.brokers(STANDBY)
        for process in found.values():
            process.rlimit(psutil.RLIMIT_FSIZE, (1, process.rlimit(psutil.RLIMIT_FSIZE)[1]))
        left = processes.wait(list(found.values()), END_TIMEOUT_S)
        told = self._reason()
        self.world.kill(left)
        self.world.mend(STANDBY)
        wait_for("the mirror goes on", lambda: not self.world.trouble(CROWDED))
        return Told(f"all {len(found)} brokers of the standby may not write", not left, told=told)

    def _reason(self) -> str:
        """What the mirror says when it cannot go on."""
        wait_for("the mirror says why it stands still", lambda: bool(self.world.trouble(CROWDED)))
        return self.world.trouble(CROWDED)

    # In the middle of a fill

    def _tasks_in_fill(self, _: int) -> Told:
        found = self._some(self.world.workers)
        where = self._inside_a_gap()
        processes.end(found, signal.SIGKILL)
        return Told(f"{len(found)} Python workers {where or '(the fill was over)'}", bool(where))

    def _standby_in_fill(self, how: signal.Signals) -> Told:
        found = self.world.brokers(STANDBY)
        where = self._inside_a_gap()
        self.world.kill(found.values(), how)
        self.world.mend(STANDBY)
        return Told(f"{len(found)} brokers, {how.name} {where or '(the fill was over)'}", bool(where))

    def _inside_a_gap(self) -> str:
        """Make a gap and return while the mirror fills it, with where it is; empty if it was too quick."""
        wait_for("the mirror copies", self.world.is_copying, every_s=0.5)
        with self.world.cluster(STANDBY) as standby:
            for turn in range(1, GAP_TRIES + 1):
                first, last = Gap(self.world).make(turn * GAP)
                end = [0]

                def begun(first: int = first, end: list[int] = end) -> bool:
                    end[0] = offsets.log_ends(standby, [CROWDED])[CROWDED]
                    return end[0] > first

                wait_for("the mirror reaches a gap", begun, every_s=0.005)
                if end[0] < last:
                    return f"at offset {end[0]} of a gap from {first} to {last}"
        return ""

    # acks=twin

    def _active_site(self, _: int) -> Told:
        return self._kill_active("")

    def _link_still(self, chance: int) -> Told:
        family = self.world.family()
        processes.end(family, signal.SIGSTOP)
        try:
            _rest(STILL_S, chance)
            return self._kill_active(f", {len(family)} processes of the mirror standing still")
        finally:
            processes.end(family, signal.SIGCONT)

    def _kill_active(self, more: str) -> Told:
        found = self.world.brokers(ACTIVE)
        self.world.kill(found.values())
        promised = dict(self.load.promised)
        lost = self._lost(promised)
        self.findings += [f"acknowledged by both sites, and lost with the active: {value}" for value in lost]
        self.world.mend(ACTIVE)
        return Told(
            f"{len(found)} brokers of the active{more}",
            told=f"{len(promised)} acknowledged, {len(lost)} lost",
        )

    def _lost(self, promised: Mapping[str, tuple[str, int, int]]) -> Sequence[str]:
        """What was acknowledged with acks=twin and does not stand in its place at the standby."""
        there: dict[tuple[int, int], bytes | None] = {}
        places = [(PROMISED, number) for number in range(PARTITIONS[PROMISED])]
        with self.world.cluster(STANDBY) as standby:
            ids = {topic.name: topic.id for topic in topics.describe(standby, [PROMISED])}
            firsts, ends = offsets.start_offsets(standby, places), offsets.end_offsets(standby, places)
            for place in places:
                records: dict[int, Any] = stretch.records(standby, ids, *place, firsts[place], ends[place])
                for offset, record in records.items():
                    there[place[1], offset] = contents(record.content).value
        wrong = [value for value, (_, *at) in promised.items() if there.get((at[0], at[1])) != value.encode()]
        return wrong[:MOST_FINDINGS]


def _rest(between: tuple[float, float], chance: int) -> None:
    first, last = between
    threading.Event().wait(first + (last - first) * (chance % 1000) / 1000)
