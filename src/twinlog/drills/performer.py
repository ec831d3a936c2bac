"""One client of a drill's load as a process: `python -m twinlog.drills.performer PART`.

`load` starts it, for clients that are not Java. It plays the part that the file says until SIGTERM; what
it did is in its history, line by line, whatever becomes of it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from twinlog.drills import readers, writers
from twinlog.drills.cast import Part, Program
from twinlog.drills.recording import Recorder
from twinlog.sites.home import Home
from twinlog.spec.load import load


def main(file: str) -> int:
    """Play one part."""
    part = Part.decode(Path(file).read_text())
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    home = Home(load(part.bus_file, os.environ).bus, part.bus_file)
    with Recorder(part.history) as recorder:
        stage = writers.Stage(part, home, recorder, stop)
        match part.client:
            case client if client.program is Program.LIBRARY:
                (writers.write_to_twin if client.writes else readers.read_from_twin)(stage)
            case client if client.transactional:
                writers.write_transactions(stage)
            case client if client.writes:
                writers.write_records(stage)
            case _:
                readers.read_in_group(stage)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
