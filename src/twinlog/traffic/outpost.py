"""The witness's bundle: one directory with all that it needs on a machine that has nothing else of the bus.

Written by `twinlog witness --bundle`, used there by `twinlog witness --at`. It holds the witness's own
certificate and whom to believe, never the authority's key, and where the other voters are. Written again
after a renewal or a change of addresses, it leaves the memory alone: a witness that lost it has to hear
both others before it votes.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from twinlog.durable import make_private_directory, write_secret, write_text
from twinlog.errors import SiteError, UsageError
from twinlog.sites.home import Home
from twinlog.traffic import electorate
from twinlog.traffic.poll import Papers
from twinlog.traffic.timing import Timing
from twinlog.traffic.votes import WITNESS
from twinlog.traffic.witness import Seat
from twinlog.wire.addresses import HostPort

FILE = "voter.json"
STORE, TRUST, MEMORY = "voter.pem", "link-trust.crt", "witness.vote"
START, README = "start.sh", "README.txt"
EXECUTABLE_MODE = 0o755


def write(home: Home, directory: Path) -> list[str]:
    """Write the bundle, or what has changed of it; returns the names of its files."""
    if not electorate.is_used(home):
        raise UsageError(
            "this bus has no voters: a person promotes its standby",
            where=str(home.file),
            hint="gate: {promote: automatic, witness: host:port}",
        )
    if directory.exists() and any(directory.iterdir()) and not (directory / FILE).exists():
        raise UsageError("the directory is not empty and holds no witness's bundle", where=str(directory))
    seat, timing = electorate.seat(home, WITNESS), electorate.timing(home)
    make_private_directory(directory)
    told = {
        "bus": home.bus.bus,
        "address": str(seat.address),
        "others": {name: str(place) for name, place in seat.others.items()},
        "lease_s": timing.lease_s,
    }
    write_secret(directory / STORE, seat.papers.store.read_text())
    write_text(directory / TRUST, seat.papers.trust.read_text())
    write_text(directory / FILE, json.dumps(told, indent=2) + "\n")
    unit = f"twinlog-{home.bus.bus}-witness.service"
    texts = {START: _start_script(), unit: _unit(home.bus.bus), README: _readme(home.bus.bus, unit, seat)}
    for name, text in texts.items():
        write_text(directory / name, text)
    (directory / START).chmod(EXECUTABLE_MODE)
    return [FILE, STORE, TRUST, *texts]


def read(directory: Path) -> tuple[Seat, Timing]:
    """The seat that a bundle describes, with its memory in the bundle, and how long leases last."""
    path = directory / FILE
    try:
        told: dict[str, Any] = json.loads(path.read_text())
        others = {name: HostPort.parse(place) for name, place in told["others"].items()}
        address, lease_s = HostPort.parse(told["address"]), float(told["lease_s"])
        papers = Papers(str(told["bus"]), directory / STORE, directory / TRUST)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SiteError(
            f"this is no witness's bundle: {error!r}",
            where=str(path),
            hint="write it where the bus is: twinlog witness --bundle DIRECTORY",
        ) from error
    return Seat(WITNESS, address, directory / MEMORY, papers, others), Timing(lease_s)


def _start_script() -> str:
    return f"""\
#!/bin/sh
# Runs the witness of this directory until it is told to end. Written by `twinlog witness --bundle`.
set -eu
cd "$(dirname "$0")"
command -v twinlog >/dev/null || {{
    echo "error: twinlog is not installed here" >&2
    echo "  hint: {shlex.quote("pip install twinlog")}" >&2
    exit 1
}}
exec twinlog witness --at .
"""


def _unit(bus: str) -> str:
    return f"""\
[Unit]
Description=The witness of the Twinlog bus '{bus}'
Wants=network-online.target
After=network-online.target

[Service]
User=@USER@
ExecStart=/bin/sh "@ROOT@/{START}"
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
"""


def _readme(bus: str, unit: str, seat: Seat) -> str:
    others = ", ".join(f"{name} at {place}" for name, place in seat.others.items())
    return f"""\
The witness of the bus '{bus}', asked at {seat.address}; the other voters are {others}.

1. Copy this directory to a machine that neither site runs on, keeping modes (cp -a, rsync -a, tar -p).
   It holds a private key. It is for one machine only: two witnesses would be one vote too many.
2. Install twinlog there, and let both sites reach {seat.address}; it must reach the other voters.
3. Run ./{START}. It keeps a small memory here ({MEMORY}); a new witness votes when both others answered.
4. As a service, as the user who owns these files:
   sed "s|@ROOT@|$PWD|; s|@USER@|$(id -un)|" {unit} | sudo tee /etc/systemd/system/{unit}
   sudo systemctl enable --now {unit}

After `twinlog certs renew`: write the bundle again and copy it over this directory. No restart is needed,
and {MEMORY} stays.
"""
