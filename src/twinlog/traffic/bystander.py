"""The witness as a program that is left behind: `python -m twinlog.traffic.bystander FILE`."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from twinlog.durable import write_text
from twinlog.errors import TwinlogError
from twinlog.sites.home import Home
from twinlog.spec.load import load
from twinlog.traffic import electorate, staff
from twinlog.traffic.votes import WITNESS
from twinlog.traffic.witness import run_witness


def main(file: str) -> int:
    """Be the witness of the bus that this file declares."""
    path = Path(file)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    home = Home(load(path, os.environ).bus, path)
    process = staff.witness(home)

    def log(text: str) -> None:
        print(text, flush=True)
        write_text(process.report, json.dumps({"pid": os.getpid(), "said": text}) + "\n")

    try:
        with process.alone():
            run_witness(electorate.seat(home, WITNESS), electorate.timing(home), stop, log)
    except TwinlogError as error:
        print(f"error: {error}", flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
