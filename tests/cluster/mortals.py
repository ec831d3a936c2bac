"""Processes that carry out a move and are killed in it, one after another: every step is taken twice.

The first begins the move, takes its first step, and is gone. Each that follows takes the step that the one
before it took last, because nobody wrote down that it was done, then one more, and is gone as well. Tests use
them in place of a traffic manager that is killed: they run what it runs.
"""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.cluster.conftest import Bus
from twinlog.traffic.moves import STEPS, Kind

# Takes the step that was begun, if there is one, and the next one; is gone before it has written that down.
ONE_STEP = """
import os, signal, sys
from pathlib import Path
from twinlog.progress import Silent
from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.traffic import beginning, crossing
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Kind

path, kind = Path(sys.argv[1]), Kind(sys.argv[2])
begin = {
    Kind.SWITCHOVER: beginning.switchover,
    Kind.FAILOVER: lambda ground: beginning.failover(ground, "a test"),
    Kind.RETURN: lambda ground: beginning.returning(ground, yes=True),
}[kind]
taken = []


def mortal(hand):
    def take(ground, move):
        after = hand(ground, move)
        taken.append(move.step)
        if len(taken) == last:
            print(move.step, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return after

    return take


hands = crossing.HANDS[kind]
crossing.HANDS = {kind: {step: mortal(hand) for step, hand in hands.items()}}
with Ground(Home(load(path, os.environ).bus, path), Silent()) as ground:
    begun = beginning.unfinished(ground, kind)
    last = 1 if begun is None else 2
    crossing.carry_out(ground, begun or begin(ground))
"""


def one_step(bus: Bus, kind: Kind) -> tuple[int, str]:
    """Let a process take the step that was begun and one more, and die; its exit code and last step."""
    ended = subprocess.run(
        [sys.executable, "-c", ONE_STEP, str(bus.file), kind],
        env=bus.environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode, ended.stdout.strip()


def killed_at_every_step(bus: Bus, kind: Kind) -> None:
    """Carry a move out by processes of which each is killed; every step is taken twice."""
    died_after = []
    while True:
        code, step = one_step(bus, kind)
        if code == 0:
            break
        died_after.append(step)
    # Each was the last step of one and the first of the next; the last step's second time ended the move.
    assert died_after == [str(step) for step in STEPS[kind][:-1]]
