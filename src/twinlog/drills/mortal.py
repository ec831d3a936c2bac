"""A process that carries out a switchover and is killed in the middle: `… mortal FILE STEP`.

The scenario `manager-dies` starts it. Before the named step is taken, and after it was written down, the
process kills itself with SIGKILL; whoever is left has to end the move.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from twinlog.progress import Silent
from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.traffic import beginning
from twinlog.traffic.crossing import carry_out
from twinlog.traffic.ground import Ground
from twinlog.traffic.moves import Move, Step


def main(file: str, step: str) -> int:
    """Begin a switchover, and die before a step."""
    path, last = Path(file), Step(step)

    def watch(move: Move) -> None:
        if move.step is last:
            os.kill(os.getpid(), signal.SIGKILL)

    home = Home(load(path, os.environ).bus, path)
    with home.state_file.locked("drill"), Ground(home, Silent()) as ground:
        carry_out(ground, beginning.switchover(ground), watch=watch)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
