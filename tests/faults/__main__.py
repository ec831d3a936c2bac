"""Faults of the mirror, at random moments under load: `python -m tests.faults --minutes 10`.

Run by `make mirror-faults` and `make drills`. One bus, one long run: every slice takes some faults under
load, then everything is mended, drained and verified, and the slice is added to the results file. Which
faults come depends on the seed and on what the file has already: the run goes on where the last one
ended. It stops at the first slice with a finding and keeps the bus, with dumps of both sites' logs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from tests.faults import reading, results
from tests.faults.hands import Hands
from tests.faults.kinds import WANTED, Kind
from tests.faults.load import Load
from tests.faults.plan import Planned, plan
from tests.faults.results import Taken, Verification
from tests.faults.world import ACTIVE, STANDBY, World, say, wait_for
from twinlog.errors import TwinlogError

LOCAL, CLUSTER = "local", "local-cluster[2,2,512]"
DRAIN_TIMEOUT_S = 600.0
EXIT_FINDINGS = 3
TROUBLES = (TwinlogError, TimeoutError, RuntimeError, OSError)


def options() -> argparse.Namespace:
    """How long, how large, and what."""
    parser = argparse.ArgumentParser(prog="tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="no slice begins later")
    parser.add_argument("--slice", type=int, default=10, help="faults between two verifications")
    parser.add_argument("--brokers", type=int, default=2, help="of each site")
    parser.add_argument("--seed", type=int, default=None, help="by default another one each time")
    parser.add_argument("--master", default="", help="of Spark; by default what lags behind most needs")
    parser.add_argument("--only", default="", help="names of kinds, as DRIVER,WORKER")
    parser.add_argument("--results", type=Path, default=results.FILE)
    parser.add_argument("--table", action="store_true", help="print what the results file has, and end")
    return parser.parse_args()


def master_of(chosen: argparse.Namespace) -> str:
    """Spark's master: executors are processes of their own in a local-cluster only, which costs more."""
    if chosen.master:
        return str(chosen.master)
    counted = results.counted(results.read(chosen.results))
    others = [counted[kind] for kind in Kind if not kind.needs_executors]
    lagging = any(counted[kind] < min(WANTED, *others) for kind in Kind if kind.needs_executors)
    return CLUSTER if lagging else LOCAL


def kinds_of(chosen: argparse.Namespace) -> list[Kind]:
    """The kinds that are asked for and possible."""
    names = [name for name in chosen.only.split(",") if name]
    asked = [Kind[name] for name in names] if names else list(Kind)
    clustered = chosen.master.startswith("local-cluster")
    return [kind for kind in asked if clustered or not kind.needs_executors]


class Run:
    """All slices on one bus."""

    def __init__(self, world: World, chosen: argparse.Namespace, seed: int) -> None:
        self._world = world
        self._chosen = chosen
        self._minutes: float = chosen.minutes
        self._seed = seed
        self._random = Random(seed)
        self._began = time.monotonic()
        self._slice = 0

    @property
    def is_over(self) -> bool:
        """True when no slice may begin any more."""
        return time.monotonic() - self._began > self._minutes * 60

    def slice(self) -> bool:
        """One slice; True if nothing was found."""
        counted = results.counted(results.read(self._chosen.results))
        planned = plan(self._random, counted, self._chosen.slice, kinds_of(self._chosen))
        first = self._world.ends(STANDBY)
        load = Load(self._world, f"{self._seed}.{self._slice}-", self._random.getrandbits(30))
        hands = Hands(self._world, load)
        taken: list[Taken] = []
        try:
            load.start()
            wait_for("the load has begun", lambda: load.has_begun)
            for one in planned:
                if taken and self.is_over:
                    break
                threading.Event().wait(one.wait_s)
                hands.go_on()
                taken.append(self._take(hands, one))
            self._settle(hands, load)
            seen = reading.verify(self._world, load, first, f"faults-{self._slice}")
        except TROUBLES as error:
            seen = Verification(findings=(f"could not go on: {type(error).__name__}: {error}",))
        finally:
            hands.let_go()
            load.kill()
        seen = replace(seen, findings=(*seen.findings, *hands.findings))
        results.append(self._chosen.results, [replace(one, verification=seen) for one in taken])
        self._tell(taken, seen, load)
        self._slice += 1
        return seen.passed

    def _take(self, hands: Hands, planned: Planned) -> Taken:
        began = time.monotonic()
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        say(planned.kind)
        told = hands.take(planned)
        settings = {**self._world.settings, "load_average": round(os.getloadavg()[0], 1)}
        seconds = time.monotonic() - began
        missed = "" if told.hit else ", missed"
        say(f"  {told.what}, {seconds:.1f} s{missed} {told.told}".rstrip())
        return Taken(
            planned.kind,
            self._seed,
            self._slice,
            at,
            round(began - self._began, 3),
            told.what,
            told.hit,
            told.leader,
            told.told,
            round(seconds, 1),
            settings,
        )

    def _settle(self, hands: Hands, load: Load) -> None:
        """Mend what is left, let the load end and the standby catch up."""
        hands.go_on(wait=True)
        for site in (ACTIVE, STANDBY):
            self._world.mend(site)
        self._world.start_mirror()
        load.stop()
        wait_for("the standby has all", self._world.is_drained, DRAIN_TIMEOUT_S, every_s=0.5)

    def _tell(self, taken: list[Taken], seen: Verification, load: Load) -> None:
        counted = results.counted(results.read(self._chosen.results))
        say(
            f"slice {self._slice}: {len(taken)} faults, {seen.lines} lines, {seen.acknowledged} acknowledged,"
            f" {load.replaced} producers replaced: {'equal' if seen.passed else 'NOT EQUAL'}"
        )
        for finding in seen.findings:
            say(f"  {finding}")
        say("  " + ", ".join(f"{kind.name} {counted[kind]}/{WANTED}" for kind in Kind))


def main() -> int:
    """Slices until the time is over, or something is found."""
    chosen = options()
    if chosen.table:
        print(results.table(results.read(chosen.results)))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    seed = chosen.seed if chosen.seed is not None else time.time_ns() % 10**6
    chosen.master = master_of(chosen)
    world = World(chosen.brokers, chosen.master)
    say(f"seed {seed}, in {world.directory}")
    keep = True
    try:
        world.bring_up()
        run = Run(world, chosen, seed)
        while not run.is_over:
            if not run.slice():
                reading.dump(world)
                return EXIT_FINDINGS
        keep = False
    except KeyboardInterrupt:
        say("interrupted")
        keep = False
        return 130
    finally:
        world.take_down(keep=keep)
        if keep:
            say(f"kept: {world.directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
